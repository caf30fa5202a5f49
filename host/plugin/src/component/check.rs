//! Compares the names of a component's imports and exports with the contract. Its errors are clearer than
//! wasmtime's.

use std::fmt::Write as _;

use super::Error;
use crate::call_error;
use crate::guest::{self, text::Bounded};
use crate::inspect::{InterfaceName, Surface};

/// The package of the contract that the host supports.
const PACKAGE: &str = "oarlock:plugin";
const VERSION: &str = "0.1.0";
const WANTED: &str = "oarlock:plugin@0.1.0";

/// Every interface of the contract that a component may import.
const IMPORTS: [&str; 10] =
    ["types", "event", "cache", "client", "work-queue", "events", "log", "clock", "config", "metrics"];

/// Every interface of WASI of which a component gets the empty version, by package.
const WASI: [(&str, &[&str]); 6] = [
    (
        "wasi:cli",
        &[
            "environment",
            "exit",
            "stderr",
            "stdin",
            "stdout",
            "terminal-input",
            "terminal-output",
            "terminal-stderr",
            "terminal-stdin",
            "terminal-stdout",
        ],
    ),
    ("wasi:clocks", &["monotonic-clock", "wall-clock"]),
    ("wasi:filesystem", &["preopens", "types"]),
    ("wasi:io", &["error", "poll", "streams"]),
    ("wasi:random", &["insecure", "insecure-seed", "random"]),
    (
        "wasi:sockets",
        &[
            "instance-network",
            "ip-name-lookup",
            "network",
            "tcp",
            "tcp-create-socket",
            "udp",
            "udp-create-socket",
        ],
    ),
];

/// The maximum length of a list of a component's names, and of a version in its names.
const MAX_NAMES_BYTES: usize = 2 << 10;
const MAX_VERSION_BYTES: usize = 64;

/// The interfaces that a component imports or exports, judging by names.
#[derive(Debug)]
pub(super) struct Interfaces {
    pub(super) handler: bool,
    pub(super) reconciler: bool,
    pub(super) wasi: bool,
}

pub(super) fn check(surface: &Surface) -> Result<Interfaces, Error> {
    check_version(surface)?;
    let exports = |interface: &str| surface.exports.iter().any(|name| is_ours(name, interface));
    let (handler, reconciler) = (exports("handler"), exports("reconciler"));
    let mut missing = Vec::new();
    if !exports("metadata") {
        missing.push("`metadata`");
    }
    if !handler && !reconciler {
        missing.push("`handler` or `reconciler`");
    }
    if !missing.is_empty() {
        return Err(Error::WrongWorld {
            missing: missing.join(" and "),
            exports: list(surface.exports.iter()).unwrap_or_else(|| "nothing".to_owned()),
            wanted: WANTED,
        });
    }
    check_imports(surface)?;
    let wasi = surface.imports.iter().any(|name| name.starts_with("wasi:"));
    Ok(Interfaces { handler, reconciler, wasi })
}

/// Wraps an error of wasmtime about functions and types.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn mismatch(error: wasmtime::Error) -> Error {
    Error::Mismatch { reason: call_error::text(&error), wanted: WANTED }
}

fn check_version(surface: &Surface) -> Result<(), Error> {
    let other = surface
        .exports
        .iter()
        .chain(&surface.imports)
        .filter_map(|name| InterfaceName::parse(name))
        .find(|name| name.package == PACKAGE && name.version != VERSION);
    match other {
        Some(name) => Err(Error::WrongVersion {
            found: match name.version {
                "" => format!("{PACKAGE} without a version"),
                version => format!("{PACKAGE}@{}", guest::text::line(version, MAX_VERSION_BYTES)),
            },
            wanted: WANTED,
        }),
        None => Ok(()),
    }
}

fn check_imports(surface: &Surface) -> Result<(), Error> {
    let unknown = list(surface.imports.iter().filter(|name| !is_provided(name)));
    match unknown {
        None => Ok(()),
        Some(imports) => Err(Error::UnknownImports {
            hint: if imports.contains("wasi:http") {
                "a plugin has no network; use `client` to reach the API server"
            } else {
                "a plugin gets the interfaces of the world `plugin`, and of WASI 0.2 cli, clocks, filesystem, io, random and sockets (all empty)"
            },
            imports,
        }),
    }
}

fn is_provided(name: &str) -> bool {
    IMPORTS.iter().any(|interface| is_ours(name, interface))
        || InterfaceName::parse(name)
            .is_some_and(|name| name.version.starts_with("0.2.") && is_wasi(name.package, name.interface))
}

fn is_wasi(package: &str, interface: &str) -> bool {
    WASI.iter().any(|(name, interfaces)| *name == package && interfaces.contains(&interface))
}

fn is_ours(name: &str, interface: &str) -> bool {
    InterfaceName::parse(name)
        .is_some_and(|name| name.package == PACKAGE && name.interface == interface && name.version == VERSION)
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut names = names.map(|name| format!("`{name}`")).peekable();
    names.peek()?;
    let mut text = Bounded::new(MAX_NAMES_BYTES, false);
    // Fails when the text is full.
    let _ = text.write_str(&names.next()?).and_then(|()| names.try_for_each(|name| write!(text, ", {name}")));
    Some(text.into_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(imports: &[&str], exports: &[&str]) -> Surface {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Surface { imports: owned(imports), exports: owned(exports) }
    }

    const METADATA: &str = "oarlock:plugin/metadata@0.1.0";
    const HANDLER: &str = "oarlock:plugin/handler@0.1.0";
    const RECONCILER: &str = "oarlock:plugin/reconciler@0.1.0";

    #[test]
    fn the_lists_of_names_match_the_wit_files() {
        let worlds = include_str!("../../../../wit/worlds.wit");
        assert!(worlds.contains(&format!("package {WANTED};")));
        assert_eq!(WANTED, format!("{PACKAGE}@{VERSION}"));
        let imports: Vec<_> = worlds
            .lines()
            .filter_map(|line| line.trim().strip_prefix("import ")?.strip_suffix(';'))
            .collect();
        assert!(!imports.is_empty());
        // An interface that uses the types imports them.
        assert_eq!(imports, IMPORTS[1..]);
    }

    #[test]
    fn one_of_handler_and_reconciler_is_enough() {
        let interfaces = check(&surface(&["wasi:io/streams@0.2.6"], &[METADATA, HANDLER])).unwrap();
        assert!(interfaces.handler && !interfaces.reconciler && interfaces.wasi);
        let interfaces = check(&surface(&["oarlock:plugin/log@0.1.0"], &[METADATA, RECONCILER])).unwrap();
        assert!(!interfaces.handler && interfaces.reconciler && !interfaces.wasi);
    }

    #[test]
    fn an_error_says_what_to_change() {
        let refusal = |imports: &[&str], exports: &[&str]| check(&surface(imports, exports)).unwrap_err();
        insta::assert_snapshot!(refusal(&[], &["wasi:cli/run@0.2.6"]), @"not an Oarlock plugin: it lacks `metadata` and `handler` or `reconciler`; it exports `wasi:cli/run@0.2.6`. A plugin exports `metadata` and `handler`, `reconciler` or both, of oarlock:plugin@0.1.0");
        insta::assert_snapshot!(refusal(&[], &[METADATA]), @"not an Oarlock plugin: it lacks `handler` or `reconciler`; it exports `oarlock:plugin/metadata@0.1.0`. A plugin exports `metadata` and `handler`, `reconciler` or both, of oarlock:plugin@0.1.0");
        insta::assert_snapshot!(refusal(&[], &[]), @"not an Oarlock plugin: it lacks `metadata` and `handler` or `reconciler`; it exports nothing. A plugin exports `metadata` and `handler`, `reconciler` or both, of oarlock:plugin@0.1.0");
        insta::assert_snapshot!(refusal(&["oarlock:plugin/log@0.2.0"], &["oarlock:plugin/metadata@0.2.0"]), @"built for oarlock:plugin@0.2.0, this host supports oarlock:plugin@0.1.0: build the plugin again with the wit/ folder of this version (wit/CHANGELOG.md lists the changes)");
        insta::assert_snapshot!(refusal(&["wasi:http/outgoing-handler@0.2.6", "oarlock:plugin/log@0.1.0"], &[METADATA, HANDLER]), @"it imports `wasi:http/outgoing-handler@0.2.6`, which this host does not provide: a plugin has no network; use `client` to reach the API server");
        insta::assert_snapshot!(refusal(&["my:own/thing", "oarlock:plugin/magic@0.1.0"], &[METADATA, HANDLER]), @"it imports `my:own/thing`, `oarlock:plugin/magic@0.1.0`, which this host does not provide: a plugin gets the interfaces of the world `plugin`, and of WASI 0.2 cli, clocks, filesystem, io, random and sockets (all empty)");
    }

    #[test]
    fn promise_4_long_names_are_refused_with_a_short_message() {
        let evil = format!("my:own/\u{1b}[2J\n{}", "x".repeat(100_000));
        let names: Vec<&str> = std::iter::repeat_n(evil.as_str(), 100).collect();
        let version = format!("oarlock:plugin/log@{evil}");
        for surface in [
            surface(&names, &[METADATA, HANDLER]),
            surface(&[], &names),
            surface(&[&version], &[METADATA, HANDLER]),
        ] {
            let text = check(&surface).unwrap_err().to_string();
            assert!(text.len() < 3 << 10 && !text.contains(char::is_control), "{text}");
        }
    }

    #[test]
    fn a_component_that_imports_sockets_is_accepted() {
        let sockets = ["wasi:sockets/tcp@0.2.0", "wasi:sockets/udp-create-socket@0.2.12"];
        assert!(check(&surface(&sockets, &[METADATA, HANDLER])).unwrap().wasi);
        check(&surface(&["wasi:sockets/tcp-like@0.2.0"], &[METADATA, HANDLER])).unwrap_err();
        check(&surface(&["wasi:sockets/tcp@0.3.0"], &[METADATA, HANDLER])).unwrap_err();
    }
}
