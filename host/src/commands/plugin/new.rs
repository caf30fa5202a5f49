//! `oarlock plugin new`: writes a plugin from a template.

use std::{io::Write, path::Path};

use oarlock_guest_build::{
    doctor::{self, State, Tool},
    new::{self, Kind, NewPlugin},
};

use super::super::schemas;
use crate::{
    args::NewArgs,
    failure::{Ended, Failure},
};

pub(super) fn run(args: NewArgs) -> Ended {
    let NewArgs { name, lang, handler: _, reconciler, watch } = args;
    let folder = Path::new(name.as_str());
    if !new::is_free(folder).map_err(Failure::caller)? {
        let exists = anyhow::anyhow!("{name} exists already, and is not an empty folder");
        return Err(Failure::caller(exists).hint("choose another name, or remove it"));
    }
    let kind = if reconciler { Kind::Reconciler } else { Kind::Handler };
    let plugin = NewPlugin { name: name.clone(), language: lang.0, kind, watch };
    let paths = plugin.write(folder).map_err(Failure::running)?;
    schemas::write(folder).map_err(Failure::running)?;
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    let text = text(&plugin, &paths, &doctor::tools(lang.0));
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::output)
}

/// Returns what was written, what is missing, and the next commands.
fn text(plugin: &NewPlugin, paths: &[String], tools: &[Tool]) -> String {
    let NewPlugin { name, language, kind, watch } = plugin;
    let kind = match kind {
        Kind::Handler => "handler",
        Kind::Reconciler => "reconciler",
    };
    let mut text = format!("{name}: a {kind} in {language} that watches {watch}\n");
    for path in paths {
        text += &format!("  {name}/{path}\n");
    }
    text += "\nNext:\n";
    for Tool { tool, wanted, state, .. } in tools {
        if let State::Missing { command, .. } = state {
            text += &format!("  {command}    # {tool} ({wanted}) is missing\n");
        }
    }
    text + &format!("  cd {name}\n  oarlock dev .\n  oarlock plugin test\n")
}

#[cfg(test)]
mod tests {
    use oarlock_guest_build::Language;

    use super::*;

    #[test]
    fn the_next_commands_begin_with_what_is_missing() {
        let plugin = NewPlugin {
            name: "web-watcher".parse().unwrap(),
            language: Language::Python,
            kind: Kind::Handler,
            watch: "v1/pods".parse().unwrap(),
        };
        let missing = Tool {
            language: "python",
            tool: "python3 with pip",
            wanted: "3.10 or newer".to_owned(),
            state: State::Missing { version: None, command: "brew install python".to_owned() },
        };
        insta::assert_snapshot!(text(&plugin, &["plugin.py".to_owned()], &[missing]), @r"
        web-watcher: a handler in Python that watches v1/pods
          web-watcher/plugin.py

        Next:
          brew install python    # python3 with pip (3.10 or newer) is missing
          cd web-watcher
          oarlock dev .
          oarlock plugin test
        ");
    }
}
