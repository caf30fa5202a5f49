//! `oarlock suspend`, `resume` and `rollback`.

use serde_json::{Value, json};

use super::plugin_name;
use super::printed::print_answer;
use crate::args::{AnswerOutput, RollbackArgs, SuspendArgs};
use crate::control_client::{ControlClient, Finding, connect};
use crate::failure::Ended;

pub(crate) async fn suspend(args: SuspendArgs, finding: Finding<'_>) -> Ended {
    set(args, finding, "suspend", "suspended").await
}

pub(crate) async fn resume(args: SuspendArgs, finding: Finding<'_>) -> Ended {
    set(args, finding, "resume", "resumed").await
}

async fn set(args: SuspendArgs, finding: Finding<'_>, operation: &str, done: &str) -> Ended {
    let SuspendArgs { plugin, output, host } = args;
    let plugin = plugin_name(&plugin)?;
    let path = format!("/v1/plugins/{plugin}/{operation}");
    let answer: Value = connect(host, finding).await?.post(&path, json!({})).await?;
    print_answer(output, &answer, || match answer["stays-suspended"].as_bool() {
        Some(true) => {
            format!("plugin/{plugin} {done}, and stays suspended: its file or object has `suspend: true`\n")
        }
        _ => format!("plugin/{plugin} {done}\n"),
    })
}

pub(crate) async fn rollback(args: RollbackArgs, finding: Finding<'_>) -> Ended {
    let RollbackArgs { plugin, release, output, host } = args;
    let plugin = plugin_name(&plugin)?;
    go_back(connect(host, finding).await?, plugin, release, output).await
}

/// Lets a host go back, or release versions, and prints what it did.
pub(crate) async fn go_back(
    mut client: ControlClient,
    plugin: &str,
    release: bool,
    output: AnswerOutput,
) -> Ended {
    let object = client.names().object(plugin);
    if release {
        let path = client.names().operation(plugin, "release");
        let done: Value = client.post(&path, json!({})).await?;
        return print_answer(output, &done, || match done["released"].as_u64().unwrap_or(0) {
            0 => format!("{object}: nothing was in quarantine\n"),
            1 => format!("{object}: 1 version released from quarantine\n"),
            n => format!("{object}: {n} versions released from quarantine\n"),
        });
    }
    let path = client.names().operation(plugin, "rollback");
    let done: Value = client.post(&path, json!({})).await?;
    let text = |field: &str| done[field].as_str().unwrap_or_default().to_owned();
    let digest: String = text("to-digest").chars().take(12).collect();
    print_answer(output, &done, || {
        format!(
            "{object} rolled back from generation {} to version {} ({digest})\n",
            done["from"],
            text("to-version").escape_debug()
        )
    })
}
