//! What `oarlock dev` says first: where things are, and what to do next.

use std::path::{Path, PathBuf};

use oarlock_controller::report::{Level, OneLine, Timestamp, to_json};
use serde_json::json;

use super::example;
use crate::args::Output;

/// Writes it to standard output: a few lines for people, or one JSON line.
pub(super) fn say(server: &str, kubeconfig: &Path, plugins: &[PathBuf], output: Output) {
    let text = match output {
        Output::Human => human(server, kubeconfig, plugins),
        Output::Json => {
            let line = json!({
                "time": Timestamp::now(),
                "level": Level::Info,
                "event": "dev-cluster-ready",
                "server": server,
                "kubeconfig": kubeconfig.display().to_string(),
            });
            // An object of strings always serialises.
            let line = to_json(&line).unwrap_or_default();
            format!("{}\n", String::from_utf8_lossy(&line))
        }
    };
    #[expect(clippy::print_stdout, reason = "a command's answer")]
    {
        print!("{text}");
    }
}

fn human(server: &str, kubeconfig: &Path, plugins: &[PathBuf]) -> String {
    let shown = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    let shown = example::quoted(&shown.display().to_string());
    let names: Vec<_> = plugins.iter().map(|path| path.display().to_string()).collect();
    let (names, more) = match plugins {
        [] => (
            "none; name some to run them".to_owned(),
            "  kubectl create configmap hello --from-literal=greeting=hi\n",
        ),
        _ => (names.join(", "), ""),
    };
    let next = match plugins {
        [] => "What happens follows here. Ctrl-C ends everything.",
        _ => {
            "What happens follows here, and for each plugin that is loaded a command that makes it act. A plugin is loaded anew\n\
             when its file changes; Ctrl-C ends everything."
        }
    };
    format!(
        "API server  {server}, in this process and gone with it\n\
         kubeconfig  {}\n\
         plugins     {}\n\
         \n\
         In another terminal:\n  \
         export KUBECONFIG={}\n\
         {more}  \
         kubectl get configmaps --all-namespaces --watch\n\
         \n\
         {next}\n\
         \n",
        OneLine(kubeconfig.display()),
        OneLine(names),
        OneLine(shown),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_things_are_and_what_to_do() {
        let text = human("https://127.0.0.1:6443", Path::new("/tmp/k"), &["plugins/mirror".into()]);
        insta::assert_snapshot!(text, @"
        API server  https://127.0.0.1:6443, in this process and gone with it
        kubeconfig  /tmp/k
        plugins     plugins/mirror

        In another terminal:
          export KUBECONFIG=/tmp/k
          kubectl get configmaps --all-namespaces --watch

        What happens follows here, and for each plugin that is loaded a command that makes it act. A plugin is loaded anew
        when its file changes; Ctrl-C ends everything.
        ");
    }
}
