//! Runs the embedded API server by itself: `cargo run -p oarlock-dev-cluster --example dev_cluster --
//! KUBECONFIG [ADDR] [FAULT]…`. Writes the kubeconfig, prints its path as a line of JSON on standard output,
//! and runs until Ctrl-C.

#![expect(clippy::print_stdout, reason = "the line is what a program that starts it waits for")]

use oarlock_dev_cluster::{Config, DevCluster};
use std::error::Error;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("where shall the kubeconfig be written?")?;
    let mut config = Config::default();
    if let Some(addr) = arguments.next() {
        config.addr = addr.parse()?;
    }
    config.faults = arguments.map(|fault| fault.parse()).collect::<Result<_, _>>()?;
    let cluster = DevCluster::start(config).await?;
    std::fs::write(&path, cluster.kubeconfig())?;
    println!("{}", serde_json::json!({"kubeconfig": path, "url": cluster.url()}));
    eprintln!("{} answers; try: kubectl --kubeconfig {path} get namespaces", cluster.url());
    tokio::signal::ctrl_c().await?;
    cluster.shut_down().await;
    Ok(())
}
