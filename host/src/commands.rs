//! The commands of `oarlock`, one file for each.

pub(crate) mod completions;
pub(crate) mod dev;
pub(crate) mod install;
pub(crate) mod lifecycle;
pub(crate) mod logs;
pub(crate) mod parked;
pub(crate) mod plugin;
pub(crate) mod plugins;
pub(crate) mod printed;
pub(crate) mod rbac;
pub(crate) mod reference;
pub(crate) mod run;
pub(crate) mod top;

mod examine;
mod hosting;
mod replay;
mod schemas;
mod sources;

use crate::failure::Failure;

/// Returns the name of a plugin, which may be given as `plugin/NAME`, as lists print it.
fn plugin_name(text: &str) -> Result<&str, Failure> {
    let name = text.strip_prefix("plugin/").unwrap_or(text);
    // What cannot be a name must not become another path of a request.
    if name.is_empty() || !name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it)) {
        return Err(Failure::caller(anyhow::anyhow!("{text:?} is not the name of a plugin"))
            .hint("oarlock plugins lists the names"));
    }
    Ok(name)
}
