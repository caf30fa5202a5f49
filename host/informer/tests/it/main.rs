//! Requests of threads with a low priority.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use std::process::Command;
use std::time::Duration;

use http::Request;
use kube::Config;
use kube::client::Body;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LIMIT: Duration = Duration::from_secs(60);

/// Prints a token that names the priority of the program.
const PROGRAM: &str = r#"printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "status": {"token": "nice-%s", "expirationTimestamp": "2100-01-01T00:00:00Z"}}' "$(nice)""#;

/// A guest's request comes from a thread of a low priority. What it starts must not inherit that.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_program_of_a_kubeconfig_has_the_priority_of_the_host() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // The name is resolved, too.
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let mut config = Config::new(url.parse().unwrap());
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", PROGRAM],
        "interactiveMode": "Never",
    });
    config.auth_info.exec = Some(serde_json::from_value(exec).unwrap());
    let client = oarlock_informer::list_watch::transport::client(config).unwrap();
    let runtime = tokio::runtime::Handle::current();
    let low = std::thread::spawn(move || {
        let id = std::fs::read_link("/proc/thread-self").unwrap();
        let id = id.file_name().unwrap().to_owned();
        assert!(Command::new("renice").args(["-n", "7", "-p"]).arg(id).status().unwrap().success());
        // Polls the request on this thread.
        runtime.block_on(client.send(Request::get("/version").body(Body::empty()).unwrap())).unwrap().status()
    });
    let server = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            connection.read_buf(&mut request).await.unwrap();
        }
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8(request).unwrap()
    };
    let request = tokio::time::timeout(LIMIT, server).await.expect("no request within the limit");
    assert_eq!(low.join().unwrap(), 200);
    let priority = String::from_utf8(Command::new("nice").output().unwrap().stdout).unwrap();
    let expected = format!("authorization: Bearer nice-{}\r\n", priority.trim());
    assert!(request.contains(&expected), "{expected:?} is not in {request}");
}
