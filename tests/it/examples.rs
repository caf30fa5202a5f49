//! The output of the programs in `host/informer/examples`. Those that need an API server use the embedded
//! one.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::binary;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

/// The deadline of one example. Each takes a second or two.
const LIMIT: Duration = Duration::from_secs(60);

/// An embedded API server, and a kubeconfig for it.
struct Server {
    cluster: DevCluster,
    folder: TempDir,
}

// === impl Server ===

impl Server {
    async fn start() -> anyhow::Result<Self> {
        let cluster = DevCluster::start(Config::default()).await?;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("config"), cluster.kubeconfig())?;
        Ok(Self { cluster, folder })
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// Runs an example and returns what it prints.
    async fn run(&self, example: &str) -> anyhow::Result<String> {
        output(command(example)?.env("KUBECONFIG", self.kubeconfig())).await
    }
}

fn command(example: &str) -> anyhow::Result<Command> {
    let program = binary(&format!("examples/{example}"))?;
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // No example may use the cluster of the user who runs the tests.
    command.env_remove("KUBECONFIG");
    Ok(command)
}

async fn output(command: &mut Command) -> anyhow::Result<String> {
    let output =
        tokio::time::timeout(LIMIT, command.output()).await.context("the example does not end")??;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test]
async fn delta_fifo() -> anyhow::Result<()> {
    let printed = output(&mut command("delta_fifo")?).await?;
    insta::assert_snapshot!(printed, @r"
    push: web added, web updated, db added
    2 keys wait, in the order in which they first came
    pop default/web: Added web@1, Updated web@2
      the newest is Updated web@2, the cache had nothing
    pop default/db: Added db@3
      the newest is Added db@3, the cache had nothing
    push: web updated
    pop default/web: Updated web@4
      the newest is Updated web@4, the cache had web@2
    push: web deleted, and an unknown pod
    pop default/web: Deleted web@5
      the newest is Deleted web@5, the cache had web@4
    push: db updated; this time it cannot be processed at once
    pop default/db: put back
    pop default/db: Updated db@7
      the newest is Updated db@7, the cache had db@3
    ");
    Ok(())
}

#[tokio::test]
async fn list_watch() -> anyhow::Result<()> {
    let printed = Server::start().await?.run("list_watch").await?;
    insta::assert_snapshot!(printed, @r#"
    listed: first "hello"
    ADDED: second "good morning"
    MODIFIED: second "good evening"
    DELETED: second "good evening"
    "#);
    Ok(())
}

#[tokio::test]
async fn reflector() -> anyhow::Result<()> {
    let printed = Server::start().await?.run("reflector").await?;
    insta::assert_snapshot!(printed, @r#"
    -- the queue alone
    Replaced: early "I was here before"
    early is deleted, late is created
    Added: late "and I came after"
    -- the queue, and a cache that it may ask
    Replaced: early "I was here before"
    early is deleted, late is created
    Deleted: early "I was here before"
    Added: late "and I came after"
    "#);
    Ok(())
}

#[tokio::test]
async fn simple_informer() -> anyhow::Result<()> {
    let printed = Server::start().await?.run("simple_informer").await?;
    insta::assert_snapshot!(printed, @r#"
    on_add: first "hello", part of the first list
    synced, the cache holds 1 object(s)
    on_add: second "good morning"
    on_update: second "good evening", was second "good morning"
    on_delete: second "good evening"
    on_add: third "and good night"
    the cache holds [default/first, default/third]
    "#);
    Ok(())
}

#[tokio::test]
async fn simulate_shared() -> anyhow::Result<()> {
    let printed = output(&mut command("simulate_shared")?).await?;
    insta::assert_snapshot!(printed, @r"
    a is listed
      first: add a@1, listed; second: add a@1, listed
    b appears
      first: add b@2; second: add b@2
    a changes
      first: update a@1 to a@3; second: update a@1 to a@3
    a goes
      first: delete a@4; second: delete a@4
    the one cache holds [default/b]
    ");
    Ok(())
}

#[tokio::test]
async fn shared_informer() -> anyhow::Result<()> {
    let printed = Server::start().await?.run("shared_informer").await?;
    insta::assert_snapshot!(printed, @r#"
    synced, and listed from the cache: 1 object(s)
    early: add first "hello" (was there)
    early: add second "good morning"
    early: update first "hello again", was first "hello"
    late: add first "hello again" (was there)
    late: add second "good morning" (was there)
    early: delete first "hello again"
    late: delete first "hello again"
    late: update second "good evening", was second "good morning"
    early: removed, and not called again
    handlers left: 0
    "#);
    Ok(())
}

#[tokio::test]
async fn indexer() -> anyhow::Result<()> {
    let printed = output(&mut command("indexer")?).await?;
    insta::assert_snapshot!(printed, @r#"
    index "app":
      db: [default---db-1]
      web: [default---web-1, other---web-1]
    other---web-1 is web-1 of namespace other
    default---web-1 becomes part of db
    index "app":
      db: [default---db-1, default---web-1]
      web: [other---web-1]
    other---web-1 is deleted, and its value with it
    index "app":
      db: [default---db-1, default---web-1]
    index "name":
      db-1: [default---db-1]
      web-1: [default---web-1]
    blue pods: no index named "colour"
    "#);
    Ok(())
}

#[tokio::test]
async fn indexer_http() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let pod = |name: &str, app: &str| {
        serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        })
    };
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.cluster.kubeconfig())?).await?;
    for (name, app) in [("web-1", "web"), ("web-2", "web"), ("db-1", "db")] {
        cluster.request("POST", "/api/v1/namespaces/default/pods", Some(&pod(name, app))).await?;
    }

    let mut example =
        command("indexer_http")?.arg("127.0.0.1:0").env("KUBECONFIG", server.kubeconfig()).spawn()?;
    let mut lines = BufReader::new(example.stdout.take().context("it is piped")?).lines();
    let line = tokio::time::timeout(LIMIT, lines.next_line()).await??.context("it says where it serves")?;
    let address =
        line.split_whitespace().last().and_then(|url| url.strip_suffix("/app/NAME")).context("an address")?;
    let mut answers = line.replace(address, "127.0.0.1:8080");
    for app in ["web", "db", "none"] {
        let mut connection = TcpStream::connect(address).await?;
        let request = format!("GET /app/{app} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        let body = answer.split_once("\r\n\r\n").context("a head and a body")?.1;
        answers.push_str(&format!("\n-- curl 127.0.0.1:8080/app/{app}\n{body}"));
    }
    example.kill().await?;
    insta::assert_snapshot!(answers, @r"
    the cache holds 3 Pods; try: curl 127.0.0.1:8080/app/NAME
    -- curl 127.0.0.1:8080/app/web
    default/web-1
    default/web-2

    -- curl 127.0.0.1:8080/app/db
    default/db-1

    -- curl 127.0.0.1:8080/app/none
    ");
    Ok(())
}

#[tokio::test]
async fn informer_factory() -> anyhow::Result<()> {
    let printed = Server::start().await?.run("informer_factory").await?;
    insta::assert_snapshot!(printed, @r#"
    start:
      v1/configmaps
      v1/secrets
    start:
    v1/configmaps has synced: true
    v1/secrets has synced: true
    in default: ["first"]
    in kube-public: ["second"]
    in kube-system: []
    configmaps "third" not found
    resync:
      first "hello", the same object
      second "good morning", the same object
    stopped: Stopped
    "#);
    Ok(())
}

#[tokio::test]
async fn work_queue() -> anyhow::Result<()> {
    let printed = Server::start().await?.run("work_queue").await?;
    insta::assert_snapshot!(printed, @r#"
    default/a:
      done with a "hello"
      cleaned up: configmaps "a" not found
    default/b:
      done with b "good morning"
      done with b "good evening"
    default/stubborn:
      failed at stubborn "not yet, and not yet", 0 failures before
      failed at stubborn "not yet, and not yet", 1 failures before
      done with stubborn "not yet, and not yet"
    "#);
    Ok(())
}
