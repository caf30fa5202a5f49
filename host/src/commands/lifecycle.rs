//! `oarlock suspend`, `resume` and `rollback`.

use serde_json::{Value, json};

use super::plugin_name;
use super::printed::print;
use crate::args::{PluginChoice, RollbackArgs};
use crate::control_client::{Finding, connect};
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
    let mut client = connect(host, finding).await?;
    if release {
        let done: Value = client.post(&format!("/v1/plugins/{plugin}/release"), json!({})).await?;
        return print(&format!("plugin/{plugin}: {} versions released from quarantine\n", done["released"]));
    }
    let done: Value = client.post(&format!("/v1/plugins/{plugin}/rollback"), json!({})).await?;
    let text = |field: &str| done[field].as_str().unwrap_or_default().to_owned();
    let digest: String = text("to-digest").chars().take(12).collect();
    print(&format!(
        "plugin/{plugin} rolled back from generation {} to version {} ({digest})\n",
        done["from"],
        text("to-version").escape_debug()
    ))
}
