//! The program behind `cargo xtask demo`: real plugins on real events, and an independent check.
//!
//! [`stage`] starts `oarlock dev` with the samples, and the recorder → [`scene`] changes objects as a user
//! would → [`check`] compares the notifications that the guests received with the history that the recorder
//! saw.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the program prints its result")]

mod check;
mod scene;
mod stage;

use std::process::ExitCode;

use clap::Parser;

use stage::Stage;

/// Runs real plugins on real events, and checks that no notification was lost.
#[derive(Parser)]
struct Args {
    /// Ends after the scene instead of staying up.
    #[arg(long)]
    once: bool,
    /// Has the host leave out the n-th notification, which the check must find.
    #[arg(long, hide = true)]
    fault_swallow: Option<u64>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("demo: failed, {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let mut stage = Stage::start(args.fault_swallow).await?;
    scene::play(&mut stage).await?;
    let tally = stage.tally();
    let result = format!("demo: ok, {} notifications, {} writes, 0 lost", tally.notifications, tally.writes);
    if args.once {
        stage.end().await?;
        println!("{result}");
        return Ok(());
    }
    println!("{result}");
    println!("\nThe cluster stays up until Ctrl-C. To continue, in another terminal:\n");
    println!("  export KUBECONFIG={}", stage.kubeconfig().display());
    println!("  kubectl create namespace team-d      # mirror copies the Secret `registry` there");
    println!("  kubectl get configmaps,secrets -A --watch");
    tokio::signal::ctrl_c().await?;
    stage.end().await
}
