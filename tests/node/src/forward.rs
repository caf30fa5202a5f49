//! A port of this machine's loopback whose connections end in the network namespace of a node.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, Result};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A forwarded port. Dropping it closes the port; connections end with the node.
#[derive(Debug)]
pub(crate) struct Forward {
    port: u16,
    is_closed: Arc<AtomicBool>,
}

// === impl Forward ===

impl Forward {
    /// Forwards a free port of 127.0.0.1 to an address in a network namespace.
    pub(crate) fn start(network: File, to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
        let port = listener.local_addr()?.port();
        let (accepted, connections) = mpsc::channel();
        // A socket belongs to the namespace in which its thread is when it makes it. So one thread is in the
        // node's namespace and connects; the sockets can then be used by any thread.
        spawn_in(network, move || {
            for outside in connections {
                if let Ok(inside) = TcpStream::connect(to) {
                    join(outside, inside);
                }
            }
        })?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = is_closed.clone();
        thread::spawn(move || {
            for outside in listener.incoming().flatten() {
                if closed.load(Ordering::SeqCst) || accepted.send(outside).is_err() {
                    return;
                }
            }
        });
        Ok(Self { port, is_closed })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // The thread that accepts sees it with the next connection.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Starts a thread in a network namespace. Threads that it starts are in this namespace too.
pub(crate) fn spawn_in(network: File, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let (entered, has_entered) = mpsc::channel();
    thread::spawn(move || {
        let moved = move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network));
        let is_moved = moved.is_ok();
        let _ = entered.send(moved);
        if is_moved {
            run();
        }
    });
    has_entered.recv()?.context("cannot enter the network namespace of the node")
}

/// Copies between two connections until both directions have ended.
fn join(outside: TcpStream, inside: TcpStream) {
    let pairs = (outside.try_clone(), inside.try_clone());
    let (Ok(outside_too), Ok(inside_too)) = pairs else { return };
    for (mut from, mut to) in [(outside, inside), (inside_too, outside_too)] {
        let _ = (from.set_nodelay(true), to.set_nodelay(true));
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
            let _ = from.shutdown(Shutdown::Read);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn both_directions_are_copied_and_end() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(port.local_addr().unwrap()).unwrap();
        join(port.accept().unwrap().0, TcpStream::connect(server.local_addr().unwrap()).unwrap());
        let mut served = server.accept().unwrap().0;
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        served.read_to_string(&mut text).unwrap();
        assert_eq!(text, "question");
        served.write_all(b"answer").unwrap();
        drop(served);
        text.clear();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "answer");
    }
}
