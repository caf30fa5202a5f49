//! `oarlock logs`: the newest lines of a plugin's log, and the events of the host about it.

use http_body_util::BodyExt;

use super::plugin_name;
use super::printed::print_bytes;
use crate::args::{LogFormat, LogsArgs};
use crate::control_client::{Finding, connect};
use crate::failure::{Ended, Failure};

pub(crate) async fn run(args: LogsArgs, finding: Finding<'_>) -> Ended {
    let LogsArgs { plugin, follow, tail, output, host } = args;
    let plugin = plugin_name(&plugin)?;
    let json = output == Some(LogFormat::Json);
    let mut path = format!("/v1/plugins/{plugin}/lines?follow={follow}&json={json}");
    if let Some(tail) = tail {
        path += &format!("&tail={tail}");
    }
    let mut client = connect(host, finding).await?;
    let mut body = client.stream(&path).await?.into_body();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(Failure::running(anyhow::anyhow!("the host ended"))) };
        if let Some(lines) = frame.data_ref() {
            print_bytes(lines)?;
        }
    }
    if follow {
        eprintln!("the host ends, or has unloaded the plugin");
    }
    Ok(())
}
