//! The way to the host of the cluster, and the token that it is shown.

use http::{HeaderValue, Request, Response, Uri, header};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::client::{Body, ConfigExt};
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use tower::{Layer, ServiceExt, service_fn};

use super::{ApiServer, Place, failure};
use crate::args::{NamespaceName, RemoteChoice};
use crate::connect::token_file;
use crate::control_client::{Address, ControlClient, Credentials, Leader, Place as HostPlace, Remote, trust};
use crate::failure::Failure;

/// The account for users whose kubeconfig has no token.
const OPERATOR: &str = "oarlock-operator";

/// The shortest lifetime of a token that the API server grants, in seconds.
const TOKEN_LIFETIME: i64 = 600;

/// Connects to the host.
pub(super) async fn connect(
    server: &ApiServer,
    place: &Place,
    choice: RemoteChoice,
) -> Result<ControlClient, Failure> {
    let RemoteChoice { host_namespace, server_address, certificate_authority, insecure_skip_tls_verify } =
        choice;
    let NamespaceName(namespace) = host_namespace;
    let (address, tls) = match server_address {
        Some(url) => {
            let pem = match &certificate_authority {
                Some(file) => Some(tokio::fs::read(file).await.map_err(|error| unusable(file, error))?),
                None => None,
            };
            let tls =
                trust(pem, insecure_skip_tls_verify).map_err(|failure| match &certificate_authority {
                    Some(file) => {
                        failure.context(format!("--certificate-authority {} cannot be used", file.display()))
                    }
                    None => failure,
                })?;
            (given(&url)?, tls)
        }
        None => {
            let leader = Leader {
                client: server.client.clone(),
                namespace: namespace.clone(),
                kubeconfig: server.kubeconfig.clone(),
                context: server.context.clone(),
            };
            (Address::Leader(leader), trust(None, true)?)
        }
    };
    refuse_impersonation(&server.config.auth_info)?;
    let (client, config) = (server.client.clone(), server.config.clone());
    let header = move || {
        let (client, config, namespace) = (client.clone(), config.clone(), namespace.clone());
        async move {
            match bearer(&config).await? {
                Some(header) => Ok(header),
                None => requested(&client, &namespace).await,
            }
        }
    };
    let credentials = Credentials::new(header).await?;
    let remote = Remote { address, names: place.names(), tls, credentials };
    ControlClient::open(HostPlace::Remote(Box::new(remote))).await
}

/// Refuses a kubeconfig that impersonates another user. The host is shown the token of the real one, and
/// would decide about that user's rights.
fn refuse_impersonation(auth: &AuthInfo) -> Result<(), Failure> {
    let AuthInfo { impersonate, impersonate_uid, impersonate_groups, impersonate_user_extra, other, .. } =
        auth;
    let is_another = impersonate.is_some()
        || impersonate_uid.is_some()
        || impersonate_groups.is_some()
        || impersonate_user_extra.is_some()
        || other.keys().any(|key| key.starts_with("as-"));
    if !is_another {
        return Ok(());
    }
    let message = "the kubeconfig impersonates another user (`as`), and the host cannot act for that user";
    Err(Failure::caller(anyhow::anyhow!(message))
        .hint("choose a context of the user itself with --context; plugins, events, suspend and resume work with `as`"))
}

fn unusable(file: &std::path::Path, error: std::io::Error) -> Failure {
    let context = format!("--certificate-authority {} cannot be read", file.display());
    Failure::caller(anyhow::Error::new(error).context(context))
}

/// Parses `https://HOST:PORT`.
fn given(url: &str) -> Result<Address, Failure> {
    let hint = "--server-address takes https://HOST:PORT, the host's --admin-addr or a Service before it";
    let wrong = |why: &str| Failure::caller(anyhow::anyhow!("--server-address {url:?} {why}")).hint(hint);
    let uri: Uri = url.parse().map_err(|_| wrong("is no URL"))?;
    if uri.scheme_str() != Some("https") {
        return Err(wrong("does not begin with https://: a token is sent over TLS only"));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("has a path"));
    }
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = host.clone().try_into().map_err(|_| wrong("has no host name or IP address"))?;
    let port = uri.port_u16().unwrap_or(443);
    let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Ok(Address::Given { authority, name })
}

/// Returns the header with the token that the kubeconfig provides: written there or in a file, or by a login
/// command. None if the user has a certificate, or a password, which only the API server may see.
async fn bearer(config: &Config) -> Result<Option<HeaderValue>, Failure> {
    if let Some(mut token_file) = token_file(config)? {
        return Ok(Some(token_file.header()));
    }
    let Some(layer) = config.auth_layer().map_err(failure)? else { return Ok(None) };
    // The layer that authenticates requests, over a service that returns the header.
    let seen = layer.layer(service_fn(|request: Request<Body>| async move {
        Ok::<_, tower::BoxError>(Response::new(request.headers().get(header::AUTHORIZATION).cloned()))
    }));
    let header = seen.oneshot(Request::new(Body::empty())).await.map_err(|error| {
        Failure::caller(anyhow::anyhow!("the kubeconfig provides no credentials: {error}"))
            .hint("run its login command by hand")
    })?;
    let bearer = header.into_body().filter(|it| it.as_bytes().starts_with(b"Bearer "));
    Ok(bearer)
}

/// Requests a token of the account for operators. Who may, RBAC decides.
async fn requested(client: &Client, namespace: &str) -> Result<HeaderValue, Failure> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(TOKEN_LIFETIME),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let answer = accounts.create_token_request(OPERATOR, &PostParams::default(), &request).await;
    let token = match answer {
        Ok(answer) => answer.status.and_then(|status| status.token).unwrap_or_default(),
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
            let error = anyhow::anyhow!(
                "the host needs a token, the kubeconfig has none, and none can be requested of the ServiceAccount \
                 {namespace}/{OPERATOR}: {}",
                status.message
            );
            return Err(Failure::caller(error).hint(format!(
                "kubectl create role oarlock-token --verb=create --resource=serviceaccounts/token \
                 --resource-name={OPERATOR} --namespace={namespace} and a RoleBinding to it grant it; or log in with a token"
            )));
        }
        Err(error) => return Err(failure(error)),
    };
    HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| Failure::running(anyhow::anyhow!("the API server grants a token that is no text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_with_a_host_and_no_path() {
        let text = |url: &str| given(url).map(|it| it.to_string()).map_err(|it| it.text());
        assert_eq!(text("https://oarlock.example.com").unwrap(), "https://oarlock.example.com:443");
        assert_eq!(text("https://127.0.0.1:8443/").unwrap(), "https://127.0.0.1:8443");
        assert_eq!(text("https://[::1]:8443").unwrap(), "https://[::1]:8443");
        for wrong in ["http://a:1", "a:1", "", "https://a/b", "https://a?b", "https://"] {
            assert!(text(wrong).unwrap_err().contains("--server-address takes"), "{wrong}");
        }
    }

    #[test]
    fn a_kubeconfig_that_impersonates_is_refused_for_the_host() {
        let refused = |auth: serde_json::Value| {
            let auth: AuthInfo = serde_json::from_value(auth).unwrap();
            refuse_impersonation(&auth).err().map(|it| it.text())
        };
        assert_eq!(refused(serde_json::json!({"token": "t"})), None);
        for auth in [
            serde_json::json!({"token": "t", "as": "viewer"}),
            serde_json::json!({"as-uid": "1"}),
            serde_json::json!({"as-groups": ["g"]}),
        ] {
            assert!(refused(auth).unwrap().contains("impersonates another user"));
        }
    }

    #[tokio::test]
    async fn an_expired_token_is_renewed_from_the_file_of_the_kubeconfig() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "first").unwrap();
        let mut config = Config::new(Uri::from_static("https://localhost"));
        config.auth_info = serde_json::from_value(serde_json::json!({"tokenFile": file})).unwrap();
        let header = move || {
            let config = config.clone();
            async move { Ok(bearer(&config).await?.unwrap()) }
        };
        let mut credentials = Credentials::new(header).await.unwrap();
        assert_eq!(credentials.header(), "Bearer first");
        assert!(credentials.header().is_sensitive());
        assert!(!credentials.renew().await.unwrap());
        std::fs::write(&file, "second\n").unwrap();
        assert!(credentials.renew().await.unwrap());
        assert_eq!(credentials.header(), "Bearer second");
        assert!(credentials.header().is_sensitive());
    }

    #[tokio::test]
    async fn the_token_of_a_kubeconfig_is_used_and_a_certificate_or_password_is_none() {
        let with = async |auth: serde_json::Value| {
            let mut config = Config::new(Uri::from_static("https://localhost"));
            config.auth_info = serde_json::from_value::<AuthInfo>(auth).unwrap();
            bearer(&config).await
        };
        let token = with(serde_json::json!({"token": "canary"})).await.unwrap().unwrap();
        assert_eq!(token, "Bearer canary");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "of-file").unwrap();
        let from_file = with(serde_json::json!({"tokenFile": file})).await.unwrap().unwrap();
        assert_eq!(from_file, "Bearer of-file");
        assert!(with(serde_json::json!({"username": "a", "password": "b"})).await.unwrap().is_none());
        assert!(with(serde_json::json!({})).await.unwrap().is_none());
        let exec = serde_json::json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1",
            "command": "/absent/login", "interactiveMode": "Never"}});
        assert!(with(exec).await.unwrap_err().text().contains("login command"));
    }
}
