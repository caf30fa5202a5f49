//! A port of loopback that is kept for a server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

use crate::Error;

/// A port of 127.0.0.1, kept until this is dropped. A server that asks for it by number can listen; no other
/// process gets it by chance, for a connection or for a listener on any free port.
///
/// Linux lets a second socket bind the same address if both have `SO_REUSEADDR` and neither listens yet, and
/// never chooses a bound port itself.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _socket: TcpSocket,
}

// === impl Port ===

impl Port {
    /// Keeps this port, or for 0 one that is free.
    pub(crate) fn keep(number: u16) -> Result<Self, Error> {
        let keep = || -> io::Result<Self> {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, number)))?;
            Ok(Self { number: socket.local_addr()?.port(), _socket: socket })
        };
        keep().map_err(|_| Error::PortInUse { port: number })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use anyhow::Context;

    use super::*;

    #[test]
    fn one_server_listens_on_a_kept_port() -> anyhow::Result<()> {
        let kept = Port::keep(0)?;
        let address = (Ipv4Addr::LOCALHOST, kept.number());
        // The standard library's listener sets SO_REUSEADDR, as that of Go does.
        let server = TcpListener::bind(address)?;
        TcpListener::bind(address).err().context("a second server listens")?;
        drop(server);
        TcpListener::bind(address).context("the server cannot be started again")?;
        Ok(())
    }

    #[test]
    fn a_port_on_which_a_process_listens_is_refused() -> anyhow::Result<()> {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = server.local_addr()?.port();
        let error = Port::keep(port).err().context("the port is kept")?;
        let said = format!("port {port} of 127.0.0.1 is in use: choose another, or 0 for any that is free");
        assert_eq!(error.to_string(), said);
        Ok(())
    }
}
