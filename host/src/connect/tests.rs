use std::io::Write;

use super::*;

fn args(kubeconfig: Option<&Path>) -> ClusterArgs {
    ClusterArgs { kubeconfig: kubeconfig.map(|path| path.as_os_str().to_owned()), context: None }
}

/// The text of the failure, with the file's path replaced.
async fn refused(text: &str) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let failure = connect(&args(Some(file.path())), &Environment::default(), None).await.err().unwrap();
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

fn refusal(may_pass: bool) -> Refusal {
    Refusal { failure: Failure::caller(anyhow::anyhow!("refused")), may_pass }
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_an_api_server_that_is_away() {
    let mut answers = vec![Ok(()), Err(refusal(true)), Err(refusal(true))];
    until_answered(true, async || answers.pop().unwrap()).await.unwrap();
    assert!(answers.is_empty());
    // A refusal that does not pass ends it, and for other callers each one does.
    for (waits, may_pass) in [(true, false), (false, true)] {
        let mut answers = vec![Ok(()), Err(refusal(may_pass))];
        until_answered(waits, async || answers.pop().unwrap()).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_missing_kubeconfig_is_reported() {
    let failure = connect(&args(Some(Path::new("/nonexistent/config"))), &Environment::default(), None)
        .await
        .err()
        .unwrap();
    insta::assert_snapshot!(failure.text(), @"
    kubeconfig /nonexistent/config does not exist: No such file or directory (os error 2)
    hint: name another with --kubeconfig or KUBECONFIG
    ");
    let failure = connect(&args(None), &Environment::default(), None).await.err().unwrap();
    insta::assert_snapshot!(failure.text(), @"
    no kubeconfig was found, and this process does not run in a Pod
    hint: name one with --kubeconfig or KUBECONFIG; or use `oarlock dev`, which starts an API server
    ");
}

#[tokio::test]
async fn a_folder_and_a_file_that_is_no_text_are_no_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    std::fs::write(&file, [0xc3, 0x28, 0xff]).unwrap();
    let refused = async |path: &Path| {
        let failure = connect(&args(Some(path)), &Environment::default(), None).await.err().unwrap();
        failure.text().replace(&folder.path().display().to_string(), "FOLDER")
    };
    insta::assert_snapshot!(refused(folder.path()).await, @"
    kubeconfig FOLDER is a folder: Is a directory (os error 21)
    hint: name the file in it with --kubeconfig or KUBECONFIG
    ");
    insta::assert_snapshot!(refused(&file).await, @"
    kubeconfig FOLDER/config is not a text file: Invalid UTF-8
    hint: a kubeconfig is YAML: name another file with --kubeconfig or KUBECONFIG
    ");
}

#[tokio::test]
async fn a_token_file_without_a_token_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let refused = async || {
        let user = format!("tokenFile: {:?}", token.display().to_string());
        let text = refused(&kubeconfig("http://127.0.0.1:1", &user)).await;
        text.replace(&token.display().to_string(), "TOKEN")
    };
    insta::assert_snapshot!(refused().await, @"
    kubeconfig FILE cannot be used: the token file TOKEN cannot be read: No such file or directory (os error 2)
    hint: check that the file exists, that this user may read it, and that its text is one token
    ");
    std::fs::write(&token, "\n").unwrap();
    insta::assert_snapshot!(refused().await, @"
    kubeconfig FILE cannot be used: the token file TOKEN is empty
    hint: check that the file exists, that this user may read it, and that its text is one token
    ");
    std::fs::write(&token, "one\ntwo\n").unwrap();
    insta::assert_snapshot!(refused().await, @"
    kubeconfig FILE cannot be used: the token file TOKEN has several lines or control characters, which no token has
    hint: check that the file exists, that this user may read it, and that its text is one token
    ");
}

#[test]
fn of_several_kubeconfigs_missing_ones_are_skipped() {
    let (file, missing) = (tempfile::NamedTempFile::new().unwrap(), PathBuf::from("/nonexistent/config"));
    let file = file.path().to_owned();
    assert_eq!(existing(&[missing.clone(), file.clone()]), [file]);
    assert_eq!(
        existing(&[missing.clone(), missing.clone()]),
        [missing.clone(), missing],
        "they are reported"
    );
}

#[tokio::test]
async fn a_malformed_kubeconfig_is_reported() {
    insta::assert_snapshot!(refused("clusters: [").await, @"
    kubeconfig FILE is malformed: failed to parse kubeconfig YAML: error: line 1 column 11: unclosed bracket '['
     --> <input>:1:11
      |
    1 | clusters: [
      |           ^ unclosed bracket '['
    hint: `kubectl config view` shows how kubectl reads it
    ");
    insta::assert_snapshot!(refused("hello").await, @"
    kubeconfig FILE is malformed: failed to parse kubeconfig YAML: error: line 1 column 1: expected mapping start
     --> <input>:1:1
      |
    1 | hello
      | ^ expected mapping start
    hint: `kubectl config view` shows how kubectl reads it
    ");
    insta::assert_snapshot!(refused("").await, @"
    kubeconfig FILE names no current context: failed to determine current context
    hint: set one with `kubectl config use-context`, or give --context
    ");
    insta::assert_snapshot!(refused(&kubeconfig("http://127.0.0.1:1", "").replace("current-context: x", "current-context: y")).await, @"
    kubeconfig FILE has no such context: failed to load current context: y
    hint: `kubectl config get-contexts` lists them
    ");
}

#[tokio::test]
async fn a_kubeconfig_that_impersonates_is_refused() {
    insta::assert_snapshot!(refused(&kubeconfig("http://127.0.0.1:1", "as: admin")).await, @"
    kubeconfig FILE impersonates another user (`as`)
    hint: oarlock impersonates each plugin's ServiceAccount itself: use credentials of the host's own account
    ");
    // With any of these every plugin's requests would go out with more than its account.
    for (user, key) in [
        ("as-uid: \"1\"", "as-uid"),
        ("as-groups: [system:masters]", "as-groups"),
        ("as-user-extra: {scopes: [all]}", "as-user-extra"),
        ("as-user-extra: {}", "as-user-extra"),
        ("as-something-new: x", "as-something-new"),
    ] {
        let refused = refused(&kubeconfig("http://127.0.0.1:1", user)).await;
        assert!(refused.contains(&format!("impersonates another user (`{key}`)")), "{user}: {refused}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    // The port is free again: no process listens on it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let text = refused(&kubeconfig(&server, "token: t")).await.replace(&server, "SERVER");
    insta::assert_snapshot!(text, @"
    SERVER cannot be reached: Connection refused (os error 111)
    hint: check that the API server runs, and the address, which comes from kubeconfig FILE
    ");
}
