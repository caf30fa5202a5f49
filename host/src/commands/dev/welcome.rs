//! What `oarlock dev` says first: where things are, and what to do next.

use std::path::{Path, PathBuf};

use oarlock_controller::report::Timestamp;
use serde_json::json;

use crate::args::Output;

/// Writes it to standard output: a few lines for people, or one JSON line.
pub(super) fn say(server: &str, kubeconfig: &Path, plugins: &[PathBuf], output: Output) {
    let text = match output {
        Output::Human => human(server, kubeconfig, plugins),
        Output::Json => {
            let line = json!({
                "time": Timestamp::now(),
                "event": "dev-cluster-ready",
                "server": server,
                "kubeconfig": kubeconfig.display().to_string(),
            });
            format!("{line}\n")
        }
    };
    #[expect(clippy::print_stdout, reason = "a command's answer")]
    {
        print!("{text}");
    }
}

fn human(server: &str, kubeconfig: &Path, plugins: &[PathBuf]) -> String {
    let plugins: Vec<_> = plugins.iter().map(|path| path.display().to_string()).collect();
    let plugins =
        if plugins.is_empty() { "none; name some to run them".to_owned() } else { plugins.join(", ") };
    let shown = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    let kubeconfig = kubeconfig.display();
    format!(
        "API server  {server}, in this process and gone with it\n\
         kubeconfig  {kubeconfig}\n\
         plugins     {plugins}\n\
         \n\
         In another terminal:\n  \
         export KUBECONFIG={}\n  \
         kubectl create configmap hello --from-literal=greeting=hi\n  \
         kubectl get configmaps --all-namespaces --watch\n\
         \n\
         What happens follows here. A plugin is loaded anew when its file changes; Ctrl-C ends everything.\n\
         \n",
        shown.display()
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
          kubectl create configmap hello --from-literal=greeting=hi
          kubectl get configmaps --all-namespaces --watch

        What happens follows here. A plugin is loaded anew when its file changes; Ctrl-C ends everything.
        ");
    }
}
