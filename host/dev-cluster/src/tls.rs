//! A CA that lives as long as the server, and the server's certificate, which the CA signs.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;

/// The reason why the certificates could not be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot create the server's certificate")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot use the server's certificate")]
    Tls(#[from] rustls::Error),
}

pub(crate) struct Identity {
    pub(crate) ca_pem: String,
    pub(crate) config: Arc<rustls::ServerConfig>,
}

// === impl Identity ===

impl Identity {
    /// Creates a CA, and a certificate for `localhost` and these addresses.
    pub(crate) fn generate(addresses: Vec<String>) -> Result<Self, Error> {
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "oarlock-dev-cluster-ca");
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_key = KeyPair::generate()?;
        let ca_pem = ca.self_signed(&ca_key)?.pem();
        let issuer = Issuer::new(ca, ca_key);

        let mut names = vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()];
        names.extend(addresses);
        let mut server = CertificateParams::new(names)?;
        server.distinguished_name.push(DnType::CommonName, "oarlock-dev-cluster");
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let server_key = KeyPair::generate()?;
        let certificate = server.signed_by(&server_key, &issuer)?;

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { ca_pem, config: Arc::new(config) })
    }
}
