//! `oarlock reference`: what the pages of the configuration and of the metrics are made from, as JSON. A
//! hidden command, for `cargo xtask docs`.

use std::io::Write;

use clap::{Command, CommandFactory};
use oarlock_component_source::Policy;
use oarlock_controller::{admin::METRICS, config::PluginFile, plugin_resource::crd};
use oarlock_guest_build::Project;
use oarlock_plugin_test::Case;
use serde_json::{Value, json};

use crate::{
    args::{Args, KubectlArgs},
    failure::{Ended, Failure},
};

pub(crate) fn run() -> Ended {
    let reference = json!({
        "pluginFile": PluginFile::schema(),
        "customResourceDefinitions": crd::definitions(),
        "case": Case::schema(),
        "project": Project::settings_schema(),
        "sourcePolicy": Policy::schema(),
        "environment": environment(),
        "metrics": METRICS,
    });
    std::io::stdout().write_all(format!("{reference:#}\n").as_bytes()).map_err(Failure::output)
}

/// Returns the environment variables that this process and builds read.
fn environment() -> Vec<Value> {
    let mut variables = Vec::new();
    add_variables(&Args::command(), &mut variables);
    add_variables(&KubectlArgs::command(), &mut variables);
    for (name, meaning) in oarlock_guest_build::ENVIRONMENT {
        variables.push(json!({ "name": name, "meaning": meaning }));
    }
    variables
}

/// Adds the variables of a command's arguments, and of the commands below it. Two commands may have the same.
fn add_variables(command: &Command, variables: &mut Vec<Value>) {
    for argument in command.get_arguments() {
        let Some(name) = argument.get_env().and_then(|name| name.to_str()) else { continue };
        if variables.iter().any(|known| known["name"] == name) {
            continue;
        }
        let flag = argument.get_long().filter(|_| !argument.is_hide_set());
        let meaning = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
        let default: Vec<_> =
            argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        variables
            .push(json!({ "name": name, "flag": flag, "default": default.join(" "), "meaning": meaning }));
    }
    command.get_subcommands().for_each(|below| add_variables(below, variables));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_all_commands_are_found_once() {
        let variables = environment();
        let names: Vec<_> = variables.iter().map(|it| it["name"].as_str().unwrap()).collect();
        for name in ["OARLOCK_LOG", "OARLOCK_SOCKET", "KUBECONFIG", "HOME", "WASI_SDK_PATH"] {
            assert_eq!(names.iter().filter(|it| **it == name).count(), 1, "{name} in {names:?}");
        }
        let log = variables.iter().find(|it| it["name"] == "OARLOCK_LOG").unwrap();
        assert_eq!((&log["flag"], &log["default"]), (&json!("log"), &json!("warn")));
        assert!(variables.iter().all(|it| it["meaning"].is_string()), "{variables:?}");
    }
}
