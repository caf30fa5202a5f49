//! What bytes claim to be, read from their outermost sections in microseconds, before anything is compiled.
//!
//! Deliberately not a validator: wasmtime's compiler is that. This tells people what they handed in.

use wasmparser::{Chunk, Encoding, Parser, Payload};

/// The names that a component imports and exports, as they are written in it.
#[derive(Debug, Default)]
pub(crate) struct Surface {
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
}

/// Why bytes are no component.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoComponent {
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
pub(crate) fn inspect(bytes: &[u8]) -> Result<Surface, NoComponent> {
    if bytes.len() < 4 || !bytes.starts_with(b"\0asm") {
        return Err(NoComponent::NotWasm);
    }
    let mut surface = Surface::default();
    let mut parser = Parser::new(0);
    let mut offset = 0;
    while offset < bytes.len() {
        // To the parser more bytes may follow: it says when it misses some, in place of a syntax error.
        let (consumed, payload) = match parser.parse(&bytes[offset..], false) {
            Ok(Chunk::Parsed { consumed, payload }) => (consumed, payload),
            Ok(Chunk::NeedMoreData(_)) => return Err(NoComponent::Truncated { offset }),
            Err(error) => return Err(NoComponent::Malformed(error.to_string())),
        };
        offset += consumed;
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } => return Err(NoComponent::CoreModule),
            Payload::ModuleSection { unchecked_range, .. }
            | Payload::ComponentSection { unchecked_range, .. } => {
                if unchecked_range.end > bytes.len() {
                    return Err(NoComponent::Truncated { offset });
                }
                offset = unchecked_range.end;
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import.map_err(|e| NoComponent::Malformed(e.to_string()))?;
                    surface.imports.push(import.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export.map_err(|e| NoComponent::Malformed(e.to_string()))?;
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
    /// Takes a name apart; none for plain names, such as that of a function exported by the world itself.
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
    fn bytes_are_told_apart() {
        assert_eq!(inspect(b"").unwrap_err(), NoComponent::NotWasm);
        assert_eq!(inspect(b"#!/bin/sh\n").unwrap_err(), NoComponent::NotWasm);
        assert_eq!(inspect(b"\0asm\x01\0\0\0").unwrap_err(), NoComponent::CoreModule);
        assert_eq!(inspect(b"\0asm\x0d\0").unwrap_err(), NoComponent::Truncated { offset: 0 });
        assert!(inspect(b"\0asm\x0d\0\x01\0").unwrap().exports.is_empty());
        assert!(matches!(inspect(b"\0asm\x0d\0\x01\0\xff\x00").unwrap_err(), NoComponent::Malformed(_)));
    }

    #[test]
    fn names_come_apart() {
        let name = InterfaceName::parse("oarlock:plugin/handler@0.1.0").unwrap();
        assert_eq!(name, InterfaceName { package: "oarlock:plugin", interface: "handler", version: "0.1.0" });
        assert_eq!(InterfaceName::parse("a:b/c").unwrap().version, "");
        assert_eq!(InterfaceName::parse("run"), None);
    }
}
