//! Requests over a control socket.

use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// Sends a request, such as `GET /v1/plugins`, and returns the first line of the answer and its body.
pub(crate) async fn request(socket: &Path, what: &str) -> (String, String) {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let request = format!("{what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}
