//! The address of the admin pages: plain HTTP on a loopback address, HTTPS elsewhere.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::certificate::{self, Certificate, CertificateFiles};

/// Why the pages cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process listens on the address.
    #[error(
        "another process listens on {address}: stop it, or choose another port with --admin-addr (port 0 takes any free port)"
    )]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses the address.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] certificate::Error),
}

/// The address of the pages, bound. Others see it only after the host has started.
#[derive(Debug)]
pub struct AdminListener {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    /// None on a loopback address, where the pages are served without TLS and without credentials.
    pub(super) certificate: Option<Certificate>,
}

/// Binds the address of the pages, so that a port in use is an error before the host starts.
///
/// With a certificate, and on every address that other machines can reach, the pages are served over HTTPS,
/// and need credentials.
pub async fn bind(address: SocketAddr, files: Option<CertificateFiles>) -> Result<AdminListener, Error> {
    let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::AddressInUse { address },
        _ => Error::Bind { address, source },
    })?;
    let address = listener.local_addr().map_err(|source| Error::Bind { address, source })?;
    let certificate = match files {
        Some(files) => Some(Certificate::read(files).await?),
        None if address.ip().to_canonical().is_loopback() => None,
        None => Some(Certificate::self_signed(address.ip())?),
    };
    Ok(AdminListener { listener, address, certificate })
}

// === impl AdminListener ===

impl AdminListener {
    /// Returns the address, with its port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether the pages are served over HTTPS, and need credentials.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.certificate.is_some()
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }
}
