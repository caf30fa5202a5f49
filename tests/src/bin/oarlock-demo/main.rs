//! The scene behind `cargo xtask demo`: real plugins on real events, and an independent verdict.
//!
//! [`stage`] starts `oarlock dev` with the samples and the recorder → [`scene`] changes objects as a user would → [`verdict`]
//! holds what the guests were told against what the API server saw.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "what is printed is the point")]

mod scene;
mod stage;
mod verdict;

use std::process::ExitCode;

use clap::Parser;

use stage::Stage;

/// Shows real plugins on real events, and whether anything was lost.
#[derive(Parser)]
struct Args {
    /// Ends after the scene instead of staying up.
    #[arg(long)]
    once: bool,
    /// Has the host swallow the n-th notification, which the verdict must notice.
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
    let mut stage = Stage::set(args.fault_swallow).await?;
    scene::play(&mut stage).await?;
    let tally = stage.tally();
    let verdict = format!("demo: ok, {} notifications, {} writes, 0 lost", tally.notifications, tally.writes);
    if args.once {
        stage.strike().await?;
        println!("{verdict}");
        return Ok(());
    }
    println!("{verdict}");
    println!("\nThe cluster stays up until Ctrl-C. Try next, in another terminal:\n");
    println!("  export KUBECONFIG={}", stage.kubeconfig().display());
    println!("  kubectl create namespace team-d      # mirror copies the Secret `registry` there");
    println!("  kubectl get configmaps,secrets -A --watch");
    tokio::signal::ctrl_c().await?;
    stage.strike().await
}
