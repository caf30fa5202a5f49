//! The first output of `oarlock dev`: the addresses and paths of its parts, and the next commands to try.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use oarlock_control_plane::Progress;
use oarlock_controller::report::{Level, OneLine, Timestamp, to_json};
use serde_json::{Map, Value, json};

use crate::args::Output;
use crate::shell_word::quoted;

/// The parts of a session.
pub(super) struct Welcome<'a> {
    /// The API server's address.
    pub(super) url: &'a str,
    /// None for the embedded API server.
    pub(super) real: Option<Real>,
    /// The file with the administrator's kubeconfig.
    pub(super) kubeconfig: &'a Path,
    pub(super) plugins: &'a [PathBuf],
}

/// A real API server.
pub(super) struct Real {
    pub(super) version: String,
    /// The folder with its logs.
    pub(super) logs: PathBuf,
}

/// Prints that etcd and kube-apiserver are starting, and from which folder.
pub(super) fn real_server_starts(assets: &Path, output: Output) {
    match output {
        Output::Human => {
            print(&format!("starting etcd and kube-apiserver from {}\n", OneLine(assets.display())));
        }
        Output::Json => print_json("dev-cluster-starting", json!({"assets": assets.display().to_string()})),
    }
}

/// Prints that one of them is ready.
pub(super) fn server_is_ready(progress: Progress, output: Output) {
    let Progress { program, took } = progress;
    let seconds = took.as_secs_f64();
    match output {
        Output::Human => print(&format!("  {program:<14}  ready after {seconds:.1} s\n")),
        Output::Json => print_json("dev-server-ready", json!({"program": program, "seconds": seconds})),
    }
}

// === impl Welcome ===

impl Welcome<'_> {
    /// Prints to standard output: a few lines for people, or one JSON line.
    pub(super) fn print(&self, output: Output) {
        let Self { url, real, kubeconfig, plugins: _ } = self;
        match output {
            Output::Human => print(&self.human()),
            Output::Json => {
                let mut fields = json!({"server": url, "kubeconfig": kubeconfig.display().to_string()});
                if let Some(Real { version, logs }) = real {
                    fields["version"] = version.as_str().into();
                    fields["logs"] = logs.display().to_string().into();
                }
                print_json("dev-cluster-ready", fields);
            }
        }
    }

    fn human(&self) -> String {
        let Self { url, real, kubeconfig, plugins } = self;
        let kind = match real {
            None => "embedded in this process".to_owned(),
            Some(real) => real.to_string(),
        };
        let shown = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_path_buf());
        let shown = quoted(&shown.display().to_string());
        let names: Vec<_> = plugins.iter().map(|path| path.display().to_string()).collect();
        let (names, more) = match plugins {
            [] => (
                "none; name some to run them, or make one: `oarlock plugin new NAME`".to_owned(),
                "  kubectl create configmap hello --from-literal=greeting=hi\n  \
                 kubectl get configmaps --all-namespaces --watch\n",
            ),
            _ => (names.join(", "), ""),
        };
        let next = match plugins {
            [] => "Events follow. Ctrl-C ends everything.",
            _ => {
                "Events follow, and for each loaded plugin a command that makes it act. A plugin is loaded again when its\n\
                 file changes. Ctrl-C ends everything."
            }
        };
        format!(
            "API server  {url}, {kind}\n\
             kubeconfig  {}\n\
             plugins     {}\n\
             \n\
             In another terminal:\n  \
             export KUBECONFIG={}\n\
             {more}\n\
             {next}\n\
             \n",
            OneLine(kubeconfig.display()),
            OneLine(names),
            OneLine(shown),
        )
    }
}

// === impl Real ===

impl std::fmt::Display for Real {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { version, logs } = self;
        write!(
            f,
            "kube-apiserver {} with etcd, which end with this process\n\
             logs        {}\n\
             missing     controller manager, scheduler and nodes: deleted namespaces stay Terminating, and nothing is\n            \
             garbage-collected",
            OneLine(version),
            OneLine(logs.display())
        )
    }
}

fn print_json(event: &str, fields: Value) {
    let mut line = Map::new();
    line.insert("time".to_owned(), json!(Timestamp::now()));
    line.insert("level".to_owned(), json!(Level::Info));
    line.insert("event".to_owned(), event.into());
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    // A tree of strings and numbers always serialises.
    let line = to_json(&line).unwrap_or_default();
    print(&format!("{}\n", String::from_utf8_lossy(&line)));
}

fn print(text: &str) {
    // The command ends by itself if no one reads its output.
    let _ = io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_welcome_names_the_parts_and_the_next_commands() {
        let plugins = ["plugins/mirror".into()];
        let url = "https://127.0.0.1:6443";
        let embedded = Welcome { url, real: None, kubeconfig: Path::new("/tmp/k"), plugins: &plugins };
        insta::assert_snapshot!(embedded.human(), @"
        API server  https://127.0.0.1:6443, embedded in this process
        kubeconfig  /tmp/k
        plugins     plugins/mirror

        In another terminal:
          export KUBECONFIG=/tmp/k

        Events follow, and for each loaded plugin a command that makes it act. A plugin is loaded again when its
        file changes. Ctrl-C ends everything.
        ");
    }

    #[test]
    fn the_welcome_of_a_real_server_names_its_version_and_its_logs() {
        let real = Some(Real { version: "v1.36.2".to_owned(), logs: "/tmp/l".into() });
        let url = "https://127.0.0.1:6443";
        let welcome = Welcome { url, real, kubeconfig: Path::new("/tmp/k"), plugins: &[] };
        insta::assert_snapshot!(welcome.human(), @"
        API server  https://127.0.0.1:6443, kube-apiserver v1.36.2 with etcd, which end with this process
        logs        /tmp/l
        missing     controller manager, scheduler and nodes: deleted namespaces stay Terminating, and nothing is
                    garbage-collected
        kubeconfig  /tmp/k
        plugins     none; name some to run them, or make one: `oarlock plugin new NAME`

        In another terminal:
          export KUBECONFIG=/tmp/k
          kubectl create configmap hello --from-literal=greeting=hi
          kubectl get configmaps --all-namespaces --watch

        Events follow. Ctrl-C ends everything.
        ");
    }
}
