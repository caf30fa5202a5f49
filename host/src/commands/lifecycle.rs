//! `oarlock suspend`, `resume` and `rollback`.

use serde_json::{Value, json};

use super::plugin_name;
use super::printed::print;
use crate::args::{PluginChoice, RollbackArgs};
use crate::control_client::{ControlClient, Finding, connect};
use crate::failure::Ended;

pub(crate) async fn suspend(args: PluginChoice, finding: Finding<'_>) -> Ended {
    let PluginChoice { plugin, host } = args;
    let plugin = plugin_name(&plugin)?;
    let _: Value =
        connect(host, finding).await?.post(&format!("/v1/plugins/{plugin}/suspend"), json!({})).await?;
    print(&format!("plugin/{plugin} suspended\n"))
}

pub(crate) async fn resume(args: PluginChoice, finding: Finding<'_>) -> Ended {
    let PluginChoice { plugin, host } = args;
    let plugin = plugin_name(&plugin)?;
    let _: Value =
        connect(host, finding).await?.post(&format!("/v1/plugins/{plugin}/resume"), json!({})).await?;
    print(&format!("plugin/{plugin} resumed\n"))
}

pub(crate) async fn rollback(args: RollbackArgs, finding: Finding<'_>) -> Ended {
    let RollbackArgs { plugin, release, host } = args;
    let plugin = plugin_name(&plugin)?;
    go_back(connect(host, finding).await?, plugin, release).await
}

/// Lets a host go back, or release versions, and prints what it did.
pub(crate) async fn go_back(mut client: ControlClient, plugin: &str, release: bool) -> Ended {
    let object = client.names().object(plugin);
    if release {
        let path = client.names().operation(plugin, "release");
        let done: Value = client.post(&path, json!({})).await?;
        return print(&format!("{object}: {} versions released from quarantine\n", done["released"]));
    }
    let path = client.names().operation(plugin, "rollback");
    let done: Value = client.post(&path, json!({})).await?;
    let text = |field: &str| done[field].as_str().unwrap_or_default().to_owned();
    let digest: String = text("to-digest").chars().take(12).collect();
    print(&format!(
        "{object} rolled back from generation {} to version {} ({digest})\n",
        done["from"],
        text("to-version").escape_debug()
    ))
}
