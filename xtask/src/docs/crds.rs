//! deploy/crds/*.yaml: the CustomResourceDefinitions, from the types of the host.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::toolchain::command;

const HEAD: &str = "# Generated from the types of `oarlock` by `cargo xtask docs`.\n";

/// Returns the path and the text of each file. `program` is the binary `oarlock`.
pub(super) fn files(program: &Path) -> Result<Vec<(String, String)>> {
    let printed = command::output(Command::new(program).arg("reference"))?;
    let reference: Value = serde_json::from_str(&printed).context("`oarlock reference` prints no JSON")?;
    let definitions = reference["customResourceDefinitions"].as_array();
    let definitions = definitions.context("`oarlock reference` prints no CustomResourceDefinitions")?;
    definitions.iter().map(file).collect()
}

fn file(definition: &Value) -> Result<(String, String)> {
    let text = |pointer: &str| {
        let text = definition.pointer(pointer).and_then(Value::as_str);
        text.with_context(|| format!("a CustomResourceDefinition has no {pointer}"))
    };
    let path = format!("deploy/crds/{}.yaml", text("/metadata/name")?);
    Ok((path, format!("{HEAD}{}", serde_norway::to_string(definition)?)))
}
