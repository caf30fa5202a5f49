//! A proxy before a registry that fails on demand. It passes on requests without a body, which is what a host
//! sends, and one for each connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use oarlock_node::Node;
use parking_lot::Mutex;

/// The longest head of a request.
const HEAD: u64 = 64 << 10;
/// How late a slow answer begins, and the pause between its parts.
const LATE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(500);
/// The size of these parts.
const PART: usize = 16 << 10;

/// What the proxy does with a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    Passes,
    /// Closes the connection without an answer.
    Down,
    /// Answers late, and a part at a time.
    Slow,
    /// Changes the last byte of a blob.
    Lies,
}

/// A proxy. It ends with the process of the tests, or with the node.
pub(super) struct Proxy {
    mode: Arc<Mutex<Mode>>,
}

// === impl Proxy ===

impl Proxy {
    /// Starts a proxy in the network of the node.
    pub(super) fn start(node: &Node, address: (&'static str, u16), registry: &'static str) -> Result<Self> {
        let mode = Arc::new(Mutex::new(Mode::Passes));
        let shared = mode.clone();
        let (bound, is_bound) = mpsc::channel();
        node.spawn_in_network(move || {
            let listener = match TcpListener::bind(address) {
                Ok(listener) => listener,
                Err(error) => return drop(bound.send(Err(error))),
            };
            let _ = bound.send(Ok(()));
            for client in listener.incoming().flatten() {
                let mode = *shared.lock();
                // A client that hangs up has no answer to lose.
                thread::spawn(move || answer(client, registry, mode));
            }
        })?;
        is_bound.recv()?.with_context(|| format!("cannot listen on {address:?}"))?;
        Ok(Self { mode })
    }

    pub(super) fn set(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }
}

fn answer(mut client: TcpStream, registry: &str, mode: Mode) -> io::Result<()> {
    let head = read_head(&mut client)?;
    if matches!(mode, Mode::Down) {
        return Ok(());
    }
    let mut server = TcpStream::connect(registry)?;
    server.write_all(with_close(&head).as_bytes())?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    match mode {
        Mode::Lies if head.starts_with("GET ") && head.contains("/blobs/") => {
            if let Some(last) = answer.last_mut() {
                *last ^= 1;
            }
            client.write_all(&answer)
        }
        Mode::Slow => {
            thread::park_timeout(LATE);
            for part in answer.chunks(PART) {
                client.write_all(part)?;
                thread::park_timeout(PAUSE);
            }
            Ok(())
        }
        Mode::Passes | Mode::Down | Mode::Lies => client.write_all(&answer),
    }
}

/// Reads a request to the end of its head.
fn read_head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = String::new();
    let mut lines = BufReader::new(client.take(HEAD));
    while !head.ends_with("\r\n\r\n") {
        if lines.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

/// Returns the head of a request after whose answer the connection ends.
fn with_close(head: &str) -> String {
    let is_other = |line: &&str| !line.to_ascii_lowercase().starts_with("connection:");
    let lines: Vec<&str> = head.trim_end().lines().filter(is_other).collect();
    format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n"))
}
