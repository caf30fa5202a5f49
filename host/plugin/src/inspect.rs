//! Reads the outermost sections of a component, in microseconds, before it is compiled.
//!
//! Deliberately not a validator, which wasmtime's compiler is. It finds out what a file is, for clear errors.

use wasmparser::{Chunk, Encoding, Parser, Payload};

/// The full names of a component's imports and exports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surface {
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
}

/// Why bytes are not a component.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotComponent {
    NotWasm,
    CoreModule,
    Truncated { offset: usize },
    Malformed(String),
}

/// The parts of a name such as `oarlock:plugin/handler@0.1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InterfaceName<'a> {
    /// Such as `oarlock:plugin`.
    pub(crate) package: &'a str,
    /// Such as `handler`.
    pub(crate) interface: &'a str,
    /// Such as `0.1.0`; empty if the package has none.
    pub(crate) version: &'a str,
}

/// Reads the outermost sections.
pub(crate) fn inspect(bytes: &[u8]) -> Result<Surface, NotComponent> {
    if bytes.len() < 4 || !bytes.starts_with(b"\0asm") {
        return Err(NotComponent::NotWasm);
    }
    let mut surface = Surface::default();
    let mut parser = Parser::new(0);
    let mut offset = 0;
    while offset < bytes.len() {
        // The parser believes that more bytes follow. So it reports missing bytes instead of a syntax error.
        let (consumed, payload) = match parser.parse(&bytes[offset..], false) {
            Ok(Chunk::Parsed { consumed, payload }) => (consumed, payload),
            Ok(Chunk::NeedMoreData(_)) => return Err(NotComponent::Truncated { offset }),
            Err(error) => return Err(NotComponent::Malformed(error.to_string())),
        };
        offset += consumed;
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } => return Err(NotComponent::CoreModule),
            Payload::ModuleSection { unchecked_range, .. }
            | Payload::ComponentSection { unchecked_range, .. } => {
                if unchecked_range.end > bytes.len() {
                    return Err(NotComponent::Truncated { offset });
                }
                offset = unchecked_range.end;
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import.map_err(|e| NotComponent::Malformed(e.to_string()))?;
                    surface.imports.push(import.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export.map_err(|e| NotComponent::Malformed(e.to_string()))?;
                    surface.exports.push(export.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(surface)
}

// === impl InterfaceName ===

impl<'a> InterfaceName<'a> {
    /// Splits a name into its parts. Returns `None` for a plain name, such as that of a function that a world
    /// exports.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let (package, rest) = name.split_once('/')?;
        let (interface, version) = rest.split_once('@').unwrap_or((rest, ""));
        Some(Self { package, interface, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_modules_and_other_files_are_distinguished() {
        assert_eq!(inspect(b"").unwrap_err(), NotComponent::NotWasm);
        assert_eq!(inspect(b"#!/bin/sh\n").unwrap_err(), NotComponent::NotWasm);
        assert_eq!(inspect(b"\0asm\x01\0\0\0").unwrap_err(), NotComponent::CoreModule);
        assert_eq!(inspect(b"\0asm\x0d\0").unwrap_err(), NotComponent::Truncated { offset: 0 });
        assert!(inspect(b"\0asm\x0d\0\x01\0").unwrap().exports.is_empty());
        assert!(matches!(inspect(b"\0asm\x0d\0\x01\0\xff\x00").unwrap_err(), NotComponent::Malformed(_)));
    }

    #[test]
    fn names_of_interfaces_are_split() {
        let name = InterfaceName::parse("oarlock:plugin/handler@0.1.0").unwrap();
        assert_eq!(name, InterfaceName { package: "oarlock:plugin", interface: "handler", version: "0.1.0" });
        assert_eq!(InterfaceName::parse("a:b/c").unwrap().version, "");
        assert_eq!(InterfaceName::parse("run"), None);
    }
}
