//! Keys, certificates and kubeconfigs of one node.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

use crate::folder::Folder;

/// The names under which clients reach the API server.
const NAMES: [&str; 6] = [
    "localhost",
    "127.0.0.1",
    crate::node::SERVICE_IP,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
];

/// The authority that signs every certificate of the node.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A key and its certificate.
struct Signed {
    certificate: String,
    key: String,
}

// === impl Authority ===

impl Authority {
    /// Makes an authority, and writes its certificate, those of the servers, and the key of ServiceAccounts.
    pub(crate) fn write(folder: &Folder) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "oarlock-node-ca");
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        let authority = Self { issuer: Issuer::new(params, key), pem };
        folder.write("ca.crt", &authority.pem)?;

        let names = NAMES.map(str::to_owned).to_vec();
        let server = authority.sign("kube-apiserver", &[], names, ExtendedKeyUsagePurpose::ServerAuth)?;
        folder.write("server.crt", &server.certificate)?;
        folder.write("server.key", &server.key)?;
        let client = authority.client("kube-apiserver-kubelet-client", &["system:masters"])?;
        folder.write("kubelet-client.crt", &client.certificate)?;
        folder.write("kubelet-client.key", &client.key)?;
        write_account_key(folder)?;
        Ok(authority)
    }

    /// Writes a kubeconfig of a user in these groups. It names no other file, so that it can be copied.
    pub(crate) fn kubeconfig(
        &self,
        folder: &Folder,
        name: &str,
        server: &str,
        (user, groups): (&str, &[&str]),
    ) -> Result<PathBuf> {
        let client = self.client(user, groups)?;
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "node", "cluster": {
                "server": server,
                "certificate-authority-data": STANDARD.encode(&self.pem),
            }}],
            "users": [{"name": user, "user": {
                "client-certificate-data": STANDARD.encode(&client.certificate),
                "client-key-data": STANDARD.encode(&client.key),
            }}],
            "contexts": [{"name": "node", "context": {"cluster": "node", "user": user, "namespace": "default"}}],
            "current-context": "node",
        });
        let path = folder.config(name);
        // kubectl warns about a kubeconfig that others may read; the folder is private anyway.
        fs::write(&path, serde_json::to_vec_pretty(&kubeconfig)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn client(&self, user: &str, groups: &[&str]) -> Result<Signed> {
        self.sign(user, groups, Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        name: &str,
        groups: &[&str],
        names: Vec<String>,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Signed> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Signed { certificate, key: key.serialize_pem() })
    }
}

/// Writes a new key for the tokens of ServiceAccounts.
pub(crate) fn write_account_key(folder: &Folder) -> Result<()> {
    let accounts = KeyPair::generate()?;
    folder.write("service-account.key", &accounts.serialize_pem())?;
    folder.write("service-account.pub", &accounts.public_key_pem()).map(drop)
}
