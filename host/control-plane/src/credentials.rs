//! Keys, certificates and the administrator's token of one API server.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

use crate::Error;

/// The names under which clients reach the API server.
const NAMES: [&str; 6] =
    ["localhost", "127.0.0.1", "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// The files that the API server reads, and what its clients need.
#[derive(Debug)]
pub(crate) struct Credentials {
    folder: PathBuf,
    ca_pem: String,
    admin_token: String,
}

// === impl Credentials ===

impl Credentials {
    /// Makes everything and writes it into a folder that only its owner can read.
    pub(crate) fn write(folder: PathBuf) -> Result<Self, Error> {
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "oarlock-control-plane-ca");
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_key = KeyPair::generate()?;
        let ca_pem = ca.self_signed(&ca_key)?.pem();
        let issuer = Issuer::new(ca, ca_key);

        let mut server = CertificateParams::new(NAMES.map(str::to_owned))?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let server_key = KeyPair::generate()?;
        let server_pem = server.signed_by(&server_key, &issuer)?.pem();

        let service_account_key = KeyPair::generate()?;
        let admin_token = uuid::Uuid::new_v4().simple().to_string();
        let credentials = Self { folder, ca_pem, admin_token };
        credentials.write_file("ca.crt", &credentials.ca_pem)?;
        credentials.write_file("server.crt", &server_pem)?;
        credentials.write_file("server.key", &server_key.serialize_pem())?;
        credentials.write_file("service-account.key", &service_account_key.serialize_pem())?;
        credentials.write_file("service-account.pub", &service_account_key.public_key_pem())?;
        let tokens = format!("{},admin,admin,system:masters\n", credentials.admin_token);
        credentials.write_file("tokens.csv", &tokens)?;
        Ok(credentials)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the administrator's kubeconfig. It names no other file, so that it can be copied.
    pub(crate) fn kubeconfig(&self, url: &str) -> String {
        let ca = STANDARD.encode(&self.ca_pem);
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "control-plane",
                "cluster": {"server": url, "certificate-authority-data": ca},
            }],
            "users": [{"name": "admin", "user": {"token": self.admin_token}}],
            "contexts": [{
                "name": "control-plane",
                "context": {"cluster": "control-plane", "user": "admin", "namespace": "default"},
            }],
            "current-context": "control-plane",
        });
        // A tree of strings always serialises.
        serde_norway::to_string(&kubeconfig).unwrap_or_default()
    }

    fn write_file(&self, name: &str, text: &str) -> Result<(), Error> {
        let path: &Path = &self.path(name);
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(path);
        opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::io("cannot write", path))
    }
}
