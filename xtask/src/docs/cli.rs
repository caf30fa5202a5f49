//! docs/reference/cli.md: the command line, from the help of the binary.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::toolchain::command;

const HEAD: &str = "\
<!-- Generated from the help of `oarlock` by `cargo xtask docs`. -->

# The command line

What `oarlock --help`, and `--help` of each command, print. [Operating a host](../operating.md) explains the commands that
ask or command a running host, and [kubectl oarlock](../kubectl.md) those of the program under the name `kubectl-oarlock`.
";

/// The names of the program: that of its file, and that in its help.
const NAMES: [(&str, &str); 2] = [("oarlock", "oarlock"), ("kubectl-oarlock", "kubectl oarlock")];

/// Returns the page. `program` is the binary `oarlock`.
pub(super) fn page(program: &Path) -> Result<String> {
    let mut page = String::from(HEAD);
    for (file, name) in NAMES {
        write_command(&mut page, program, file, name, &[])?;
    }
    Ok(page)
}

/// Writes the help of a command, and of the commands below it.
fn write_command(page: &mut String, program: &Path, file: &str, name: &str, path: &[String]) -> Result<()> {
    let mut oarlock = Command::new(program);
    oarlock.arg0(file).args(path).arg("--help");
    let help = command::output(&mut oarlock).context("run `cargo build --workspace --bins`")?;
    let level = "#".repeat(path.len() + 2);
    let title = [name].into_iter().chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    write!(page, "\n{level} {title}\n\n```text\n{}\n```\n", lines.join("\n").trim())?;
    let below = commands(&help);
    ensure!(!path.is_empty() || !below.is_empty(), "the help of oarlock lists no commands:\n{help}");
    for command in below {
        write_command(page, program, file, name, &[path, &[command]].concat())?;
    }
    Ok(())
}

/// Returns the commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // A line with a deeper indent continues the one above.
    let names =
        listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_help_text_are_found() {
        let help = "Does.\n\nUsage: x <COMMAND>\n\nCommands:\n  run   Runs\n  stop  Stops,\n        later\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["run", "stop"]);
        assert_eq!(commands("Usage: x\n"), [""; 0]);
    }
}
