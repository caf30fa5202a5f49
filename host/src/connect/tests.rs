use std::io::Write;

use super::*;

fn args(kubeconfig: Option<&Path>) -> ClusterArgs {
    ClusterArgs {
        kubeconfig: kubeconfig.map(|path| path.as_os_str().to_owned()),
        context: None,
        home: None,
        in_cluster: None,
    }
}

/// The text of the failure, with the file's path replaced.
async fn refused(text: &str) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let failure = connect(&args(Some(file.path()))).await.err().unwrap();
    failure.text().replace(&file.path().display().to_string(), "FILE")
}

fn kubeconfig(server: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         clusters: [{{name: x, cluster: {{server: \"{server}\"}}}}]\n\
         users: [{{name: x, user: {{{user}}}}}]\n\
         contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n"
    )
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_says_so() {
    let failure = connect(&args(Some(Path::new("/nonexistent/config")))).await.err().unwrap();
    insta::assert_snapshot!(failure.text(), @"");
    let failure = connect(&args(None)).await.err().unwrap();
    insta::assert_snapshot!(failure.text(), @"");
}

#[tokio::test]
async fn a_malformed_kubeconfig_says_so() {
    insta::assert_snapshot!(refused("clusters: [").await, @"");
    insta::assert_snapshot!(refused("hello").await, @"");
    insta::assert_snapshot!(refused("").await, @"");
    insta::assert_snapshot!(refused(&kubeconfig("http://127.0.0.1:1", "").replace("current-context: x", "current-context: y")).await, @"");
}

#[tokio::test]
async fn a_kubeconfig_that_impersonates_is_refused() {
    insta::assert_snapshot!(refused(&kubeconfig("http://127.0.0.1:1", "as: admin")).await, @"");
}

#[tokio::test]
async fn an_unreachable_server_says_so() {
    // Port 1 of this machine is nobody's.
    insta::assert_snapshot!(refused(&kubeconfig("http://127.0.0.1:1", "token: t")).await, @"");
}
