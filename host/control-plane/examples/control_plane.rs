//! Starts a control plane by itself: `cargo run -p oarlock-control-plane --example control_plane -- ASSETS`,
//! where ASSETS is a folder with `etcd` and `kube-apiserver`. Prints a line of JSON when the API server is
//! ready. Ends when standard input is closed, and on Ctrl-C.

#![expect(clippy::print_stdout, reason = "the program that starts this one waits for the line")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use oarlock_control_plane::{Assets, Config, ControlPlane, Launcher, launch};
use serde_json::json;
use tokio::io::AsyncReadExt;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|argument| argument == "launch").is_some() {
        return launch(arguments);
    }
    let Some(assets) = arguments.next() else {
        eprintln!("error: name a folder with etcd and kube-apiserver");
        return ExitCode::from(2);
    };
    match run(Path::new(&assets)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn run(assets: &Path) -> Result<(), Box<dyn Error>> {
    let launcher = Launcher { program: std::env::current_exe()?, arguments: vec!["launch".into()] };
    let config = Config { assets: Assets::in_folder(assets)?, launcher, port: 0 };
    let start = ControlPlane::start(config, |progress| {
        eprintln!("{} ready after {:.1} s", progress.program, progress.took.as_secs_f32());
    });
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let asked_to_end = async {
        let mut stdin = tokio::io::stdin();
        let mut ignored = [0; 64];
        tokio::select! {
            _ = async { while stdin.read(&mut ignored).await.is_ok_and(|n_bytes| n_bytes > 0) {} } => {}
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    tokio::pin!(asked_to_end);
    let mut control_plane = tokio::select! {
        started = start => started?,
        () = &mut asked_to_end => return Ok(()),
    };
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, control_plane.kubeconfig())?;
    let (url, version) = (control_plane.url(), control_plane.version());
    println!("{}", json!({"kubeconfig": kubeconfig, "url": url, "version": version}));
    tokio::select! {
        error = control_plane.ended() => return Err(error.into()),
        () = &mut asked_to_end => {}
    }
    control_plane.shut_down().await;
    Ok(())
}
