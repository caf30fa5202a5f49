//! The admin pages on an address that other machines can reach: who may read them.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, PostParams};
use oarlock_controller::admin::{self, AdminListener, CertificateFiles};
use oarlock_controller::runtime::Config;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::rig::Rig;

/// A host with its admin pages on all addresses, and a client that trusts its certificate.
struct Secured {
    rig: Rig,
    pages: Pages,
}

/// The pages of a host, and a client that trusts its certificate.
pub(crate) struct Pages {
    address: SocketAddr,
    connector: TlsConnector,
    /// With the certificate, which the host reads again and again.
    _folder: tempfile::TempDir,
}

// === impl Secured ===

impl Secured {
    async fn start() -> Self {
        let (listener, pages) = Pages::bind().await;
        let rig = Rig::start_with(|config| Config { admin: Some(listener), ..config }).await;
        Self { rig, pages }
    }

    async fn get(&self, path: &str, token: Option<&str>) -> (u16, String) {
        self.pages.get(path, token).await
    }

    async fn account(&self, name: &str) -> String {
        account(&self.rig, name).await
    }

    async fn allow(&self, name: &str, paths: &[&str]) {
        allow(&self.rig, name, paths).await;
    }
}

// === impl Pages ===

impl Pages {
    /// Binds the pages to all addresses.
    pub(crate) async fn bind() -> (AdminListener, Self) {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let files = CertificateFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        fs::write(&files.certificate, made.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        let listener = admin::bind("0.0.0.0:0".parse().unwrap(), Some(files)).await.unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], listener.address().port()));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(client));
        (listener, Self { address, connector, _folder: folder })
    }

    /// Requests a page, and returns its status code and text.
    pub(crate) async fn get(&self, path: &str, token: Option<&str>) -> (u16, String) {
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut connection = self.connector.connect(name, tcp).await.unwrap();
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

/// Creates an account, and returns a token of it.
pub(crate) async fn account(rig: &Rig, name: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(rig.client.clone(), "default");
    let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(600), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let made = accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
    made.status.unwrap().token.unwrap()
}

/// Allows an account to get these paths.
pub(crate) async fn allow(rig: &Rig, name: &str, paths: &[&str]) {
    let role = json!({
        "metadata": {"name": name},
        "rules": [{"nonResourceURLs": paths, "verbs": ["get"]}],
    });
    let roles: Api<ClusterRole> = Api::all(rig.client.clone());
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(rig.client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_decides_who_reads_the_pages_and_probes_need_no_token() {
    let host = Secured::start().await;
    let (scraper, stranger) = (host.account("scraper").await, host.account("stranger").await);
    host.allow("scraper", &["/metrics", "/readyz/*"]).await;
    let line = host.rig.line(|line| line["event"] == "admin-listening").await;
    assert_eq!(line["scheme"], "https");
    for (path, token, status) in [
        ("/livez", None, 200),
        ("/metrics", None, 401),
        ("/metrics", Some("no.such.token"), 401),
        ("/metrics", Some(&*stranger), 403),
        ("/metrics", Some(&*scraper), 200),
        ("/readyz/ping", Some(&*scraper), 200),
        ("/readyz/ping", None, 401),
        ("/plugins", Some(&*scraper), 403),
        ("/v1/plugins", Some(&*scraper), 403),
    ] {
        let (answered, text) = host.get(path, token).await;
        assert_eq!(answered, status, "{path}: {text}");
    }
    let (_, text) = host.get("/metrics", Some(&stranger)).await;
    assert!(text.contains("system:serviceaccount:default:stranger may not get /metrics"), "{text}");
    host.rig.end().await;
}
