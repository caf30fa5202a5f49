//! The certificate of the admin pages: read from files, and again when they change; or made at the start.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_util::sync::CancellationToken;

use crate::regular_file;

/// How often the files are read. cert-manager and the kubelet replace them long before a certificate expires.
const READ_EVERY: Duration = Duration::from_secs(10);

/// The longest file that is read. A chain of certificates has some kilobytes.
const MAX_BYTES: u64 = 1 << 20;

/// The files of a certificate, in PEM.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate, and those of its authorities up to the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: name a readable file with {flag}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The flag that names it.
        flag: &'static str,
        /// The error.
        #[source]
        source: regular_file::Error,
    },
    /// The file has no certificate.
    #[error("{} has no certificate in PEM: name one that begins with BEGIN CERTIFICATE with --admin-cert-file", .path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file has no private key.
    #[error("{} has no private key in PEM: name one that begins with BEGIN PRIVATE KEY with --admin-key-file", .path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The certificate and its key do not belong together, or TLS does not support them.
    #[error("the certificate of the admin pages cannot be used")]
    Unusable(#[source] rustls::Error),
    /// No certificate could be made.
    #[error(
        "cannot make a certificate for the admin pages: name one with --admin-cert-file and --admin-key-file"
    )]
    Make(#[source] rcgen::Error),
}

/// A certificate that may be replaced while the pages are served.
#[derive(Debug)]
pub(super) struct Certificate {
    config: RwLock<Arc<ServerConfig>>,
    files: Option<ReadFiles>,
}

/// The files of a certificate, and what they had when it was read.
#[derive(Debug)]
struct ReadFiles {
    files: CertificateFiles,
    bytes: RwLock<PemBytes>,
}

/// The bytes of the two files.
#[derive(Clone, Eq, PartialEq)]
struct PemBytes {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

// === impl Certificate ===

impl Certificate {
    /// Reads a certificate.
    pub(super) async fn read(files: CertificateFiles) -> Result<Self, Error> {
        let bytes = files.read().await?;
        let config = files.config(&bytes)?;
        let files = ReadFiles { files, bytes: RwLock::new(bytes) };
        Ok(Self { config: RwLock::new(config), files: Some(files) })
    }

    /// Makes a certificate for an address, which no client can verify.
    pub(super) fn self_signed(address: IpAddr) -> Result<Self, Error> {
        let mut names = vec!["localhost".to_owned()];
        if !address.is_unspecified() {
            names.push(address.to_string());
        }
        let mut params = CertificateParams::new(names).map_err(Error::Make)?;
        params.distinguished_name.push(DnType::CommonName, "oarlock");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(Error::Make)?;
        let certificate = params.self_signed(&key).map_err(Error::Make)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = config(vec![certificate.der().clone()], key)?;
        Ok(Self { config: RwLock::new(config), files: None })
    }

    /// Returns the configuration for the next connection.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.read().clone()
    }

    /// Returns whether the host made the certificate.
    pub(super) fn is_self_signed(&self) -> bool {
        self.files.is_none()
    }

    /// Reads the files again and again, until the token is cancelled. A certificate that cannot be used
    /// leaves the one before in use.
    pub(super) async fn follow(&self, token: &CancellationToken) {
        let Some(files) = &self.files else { return token.cancelled().await };
        // One warning for each state of the files: they may be written one after the other.
        let mut warned = None;
        loop {
            tokio::select! {
                biased;
                () = token.cancelled() => return,
                () = tokio::time::sleep(READ_EVERY) => {}
            }
            if let Err(error) = self.read_again(files).await {
                let message = crate::chain::text(&error);
                if warned.as_ref() != Some(&message) {
                    tracing::warn!(error = message, "the admin pages keep the certificate that they have");
                    warned = Some(message);
                }
            } else {
                warned = None;
            }
        }
    }

    async fn read_again(&self, read: &ReadFiles) -> Result<(), Error> {
        let bytes = read.files.read().await?;
        if *read.bytes.read() == bytes {
            return Ok(());
        }
        *self.config.write() = read.files.config(&bytes)?;
        *read.bytes.write() = bytes;
        tracing::info!("the admin pages have another certificate");
        Ok(())
    }
}

// === impl CertificateFiles ===

impl CertificateFiles {
    /// Reads both files, on a thread that a slow file system may block.
    async fn read(&self) -> Result<PemBytes, Error> {
        let Self { certificate, key } = self.clone();
        let read = |path: PathBuf, flag| {
            regular_file::read(&path, MAX_BYTES).map_err(|source| Error::Read { path, flag, source })
        };
        let both = tokio::task::spawn_blocking(move || {
            Ok(PemBytes {
                certificate: read(certificate, "--admin-cert-file")?,
                key: read(key, "--admin-key-file")?,
            })
        });
        both.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
    }

    fn config(&self, bytes: &PemBytes) -> Result<Arc<ServerConfig>, Error> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes.certificate).collect();
        let no_certificate = || Error::NoCertificate { path: self.certificate.clone() };
        let certificates = certificates.ok().filter(|it| !it.is_empty()).ok_or_else(no_certificate)?;
        let key =
            PrivateKeyDer::from_pem_slice(&bytes.key).map_err(|_| Error::NoKey { path: self.key.clone() })?;
        config(certificates, key)
    }
}

fn config(
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::Unusable)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(Error::Unusable)?;
    // Not HTTP/2, with which one connection may begin requests without end, as in controller-runtime.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

// === impl PemBytes ===

impl std::fmt::Debug for PemBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PemBytes")
    }
}

#[cfg(test)]
mod tests;
