//! Credentials for registries, in the form of Docker's configuration.

use std::{collections::BTreeMap, fmt};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use serde::Deserialize;

use crate::{
    digest::Digest,
    error::{Error, Reason},
};

/// The names under which Docker stores the credentials for Docker Hub.
const DOCKER_HUB: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];

/// User and password, or a token, for a registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
    /// A token of OAuth 2 that stands for user and password. If it is set, they are not used.
    pub(super) identity_token: Option<String>,
}

/// The credentials of a pull secret, or of Docker's configuration.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    /// By registry, or registry and path. The more specific ones are first.
    entries: Vec<(String, Credentials)>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default, alias = "identityToken")]
    identitytoken: String,
}

// === impl Credentials ===

impl Credentials {
    pub(super) fn fingerprint(&self) -> Digest {
        Digest::of(format!("{}\n{}\n{:?}", self.user, self.password, self.identity_token).as_bytes())
    }

    /// Returns the value of the header `Authorization` with user and password.
    pub(super) fn basic(&self) -> String {
        format!("Basic {}", self.pair())
    }

    /// Removes the password and the token from a text, in each form in which they are sent.
    pub(super) fn hide_in(&self, text: &str) -> String {
        let pair = self.pair();
        let secrets = [Some(&self.password), self.identity_token.as_ref(), Some(&pair)];
        let secrets = secrets.into_iter().flatten().filter(|it| !it.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "<hidden>"))
    }

    fn pair(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.user, self.password))
    }
}

/// Without the password and the token.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

// === impl Keyring ===

impl Keyring {
    /// Parses the content of `.dockerconfigjson`, or of `~/.docker/config.json`.
    pub fn parse(content: &[u8]) -> Result<Self, Error> {
        // The error of the parser may quote a password.
        let File { auths } = serde_json::from_slice(content).map_err(|error| {
            Error::new(
                Reason::Invalid,
                format!("the credentials are not in the form of Docker's config.json: line {}", error.line()),
            )
            .hint("make the pull secret with `kubectl create secret docker-registry`")
        })?;
        let mut keyring = Self::default();
        for (registry, auth) in auths {
            if let Some(credentials) = auth.credentials() {
                keyring.entries.push((normalized(&registry), credentials));
            }
        }
        // As the kubelet does: reversed order of names puts `a.io/b` before `a.io`.
        keyring.entries.sort_by(|(a, _), (b, _)| b.cmp(a));
        Ok(keyring)
    }

    /// Returns the credentials for a repository, found as the kubelet does: a `*` in the name stands for one
    /// part of a host, a path for everything below it.
    pub(crate) fn find(&self, registry: &str, repository: &str) -> Option<Credentials> {
        let registry = normalized(registry);
        let matching = self.entries.iter().find(|(pattern, _)| matches(pattern, &registry, repository));
        matching.map(|(_, credentials)| credentials.clone())
    }
}

impl Auth {
    fn credentials(self) -> Option<Credentials> {
        let Self { auth, username, password, identitytoken } = self;
        let decoded = STANDARD.decode(auth.trim()).or_else(|_| STANDARD_NO_PAD.decode(auth.trim())).ok();
        let decoded = decoded.and_then(|it| String::from_utf8(it).ok());
        let pair = decoded.as_deref().and_then(|it| it.split_once(':'));
        let (user, password) = match pair {
            Some((user, password)) => (user.to_owned(), password.trim_end_matches('\0').to_owned()),
            None => (username, password),
        };
        let identity_token = Some(identitytoken).filter(|it| !it.is_empty());
        let is_set = !user.is_empty() || !password.is_empty() || identity_token.is_some();
        is_set.then_some(Credentials { user, password, identity_token })
    }
}

/// Returns registry and path of a name in the file, which may be a URL.
fn normalized(name: &str) -> String {
    let name = name.strip_prefix("https://").or_else(|| name.strip_prefix("http://")).unwrap_or(name);
    let name = name.trim_end_matches('/');
    let (host, path) = name.split_once('/').unwrap_or((name, ""));
    let host = if DOCKER_HUB.contains(&host) { "docker.io" } else { host };
    // The path of the API, which older clients write.
    match path {
        "" | "v1" | "v2" => host.to_owned(),
        path => format!("{host}/{path}"),
    }
}

fn matches(pattern: &str, registry: &str, repository: &str) -> bool {
    let (host, path) = pattern.split_once('/').unwrap_or((pattern, ""));
    let (host, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let (name, name_port) = registry.rsplit_once(':').unwrap_or((registry, ""));
    let is_path = path.is_empty()
        || repository.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let parts = host.split('.').count() == name.split('.').count();
    let is_host = host.split('.').zip(name.split('.')).all(|(pattern, part)| is_glob(pattern, part));
    port == name_port && is_path && parts && is_host
}

/// Returns whether one part of a host matches a pattern with at most one `*`.
fn is_glob(pattern: &str, part: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == part,
        Some((start, end)) => {
            part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(names: &[&str]) -> Keyring {
        let auths: BTreeMap<_, _> =
            names.iter().map(|name| (name, serde_json::json!({"username": name, "password": "p"}))).collect();
        Keyring::parse(serde_json::json!({ "auths": auths }).to_string().as_bytes()).unwrap()
    }

    fn user(names: &[&str], registry: &str, repository: &str) -> Option<String> {
        keyring(names).find(registry, repository).map(|it| it.user)
    }

    #[test]
    fn credentials_are_found_as_the_kubelet_does() {
        let names =
            ["ghcr.io", "ghcr.io/team-a", "*.example.com", "a.io:5000", "https://index.docker.io/v1/"];
        let user = |registry, repository| user(&names, registry, repository);
        assert_eq!(user("ghcr.io", "team-a/b").as_deref(), Some("ghcr.io/team-a"), "the more specific one");
        assert_eq!(user("ghcr.io", "team-ab/b").as_deref(), Some("ghcr.io"));
        assert_eq!(user("registry.example.com", "a").as_deref(), Some("*.example.com"));
        assert_eq!(user("a.registry.example.com", "a"), None, "a star stands for one part");
        assert_eq!(user("example.com", "a"), None);
        assert_eq!(user("a.io", "b"), None, "the port must match");
        assert_eq!(user("a.io:5000", "b").as_deref(), Some("a.io:5000"));
        assert_eq!(user("docker.io", "library/a").as_deref(), Some("https://index.docker.io/v1/"));
        assert_eq!(user("evil.example", "a"), None);
    }

    #[test]
    fn user_and_password_are_read_in_each_form() {
        let find = |auth: &str| {
            let text = format!(r#"{{"auths":{{"a.io":{auth}}},"credsStore":"x"}}"#);
            Keyring::parse(text.as_bytes())
                .unwrap()
                .find("a.io", "b")
                .map(|it| (it.user, it.password, it.identity_token))
        };
        let pair = Some(("user".to_owned(), "pass:word".to_owned(), None));
        assert_eq!(find(r#"{"auth":"dXNlcjpwYXNzOndvcmQ="}"#), pair);
        assert_eq!(find(r#"{"username":"user","password":"pass:word"}"#), pair);
        assert_eq!(find(r#"{"identitytoken":"t"}"#).unwrap().2.as_deref(), Some("t"));
        assert_eq!(find("{}"), None);
    }

    #[test]
    fn an_error_does_not_quote_the_content() {
        let error = Keyring::parse(br#"{"auths":{"a.io":{"password":true,"canary":1}}}"#).unwrap_err();
        assert!(!format!("{error:?}").contains("canary"), "{error:?}");
        let debug = format!("{:?}", keyring(&["a.io"]));
        assert!(!debug.contains("\"p\""), "{debug}");
    }
}
