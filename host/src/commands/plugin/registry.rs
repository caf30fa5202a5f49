//! Registries, as commands of a person use them: with the credentials of `docker login`, from any address.

use std::{
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
};

use async_trait::async_trait;
use oarlock_component_source::{
    self as component_source, Config, Fetched, Fetcher, Keyring, OciSource, Policy, ReadError,
    ReadReferenced, Reference, Source,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    args::{Environment, RegistryArgs},
    failure::Failure,
};

/// What names an artifact of a registry where a file could be named.
const SCHEME: &str = "oci://";
/// The longest `config.json`.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// The name under which helpers know Docker Hub.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// A registry, and how it is asked.
pub(super) struct Registry {
    reference: Reference,
    /// What a pull secret has in `.dockerconfigjson`.
    credentials: Vec<u8>,
    policy: Policy,
}

/// A component of a registry, in a folder that is removed with this value.
pub(super) struct Pulled {
    pub(super) fetched: Fetched,
    _folder: TempDir,
}

/// What a helper prints for a registry.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// Returns the reference in `oci://REFERENCE`.
pub(super) fn reference_of(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(SCHEME)
}

/// Returns a path that is the reference of an artifact, though it lacks `oci://`.
pub(super) fn bare_reference_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| !text.starts_with('.') && text.parse::<Reference>().is_ok())
}

// === impl Registry ===

impl Registry {
    /// Finds the credentials for a reference. Blocks.
    pub(super) fn open(
        reference: &str,
        args: &RegistryArgs,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let reference: Reference = reference.parse().map_err(failure)?;
        let registry = reference.registry();
        let credentials = match args.docker_config(environment) {
            Some(path) => credentials(&path, registry)?,
            None => json!({}).to_string().into_bytes(),
        };
        let mut plain_http = args.plain_http.clone();
        let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
        if ["localhost", "127.0.0.1", "[::1]"].contains(&host) {
            plain_http.push(registry.to_owned());
        }
        Ok(Self { credentials, policy: Policy::of_person(plain_http), reference })
    }

    pub(super) fn reference(&self) -> &Reference {
        &self.reference
    }

    pub(super) fn policy(&self) -> Policy {
        self.policy.clone()
    }

    pub(super) fn keyring(&self) -> Result<Keyring, Failure> {
        Keyring::parse(&self.credentials).map_err(failure)
    }

    /// Fetches the component, as a host does.
    pub(super) async fn pull(&self) -> Result<Pulled, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::running)?;
        let config = Config {
            cache: folder.path().join("components"),
            cache_bytes: u64::MAX,
            files: None,
            policy: self.policy(),
        };
        let fetcher = tokio::task::spawn_blocking(move || Fetcher::new(config)).await;
        let fetcher = fetcher.map_err(Failure::running)?.map_err(failure)?;
        let oci = OciSource {
            reference: self.reference.to_string(),
            pull_secret_name: Some("docker".to_owned()),
            poll_seconds: 0,
        };
        let source = Source { oci: Some(oci), ..Source::default() };
        let fetched = fetcher.fetch(&source, self).await.map_err(failure)?;
        Ok(Pulled { fetched, _folder: folder })
    }
}

/// The credentials of the person are its only object.
#[async_trait]
impl ReadReferenced for Registry {
    async fn config_map_key(&self, _: &str, _: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::NotFound)
    }

    async fn secret_key(&self, _: &str, _: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::NotFound)
    }

    async fn pull_secret(&self, _: &str) -> Result<Vec<u8>, ReadError> {
        Ok(self.credentials.clone())
    }
}

pub(super) fn failure(error: component_source::Error) -> Failure {
    // A command tries once.
    let fix = error.fix().map(|fix| fix.trim_end_matches("; the host tries again"));
    let failure = if error.is_transient() { Failure::running(error) } else { Failure::caller(error) };
    failure.hint_if(fix)
}

/// Returns the credentials in this file, or those of the helper that the file names for the registry.
fn credentials(path: &Path, registry: &str) -> Result<Vec<u8>, Failure> {
    let refused = |error: io::Error| {
        let context = format!("{} cannot be read", path.display());
        Failure::caller(anyhow::Error::new(error).context(context))
            .hint("name another folder with --docker-config")
    };
    let content = match oarlock_controller::regular_file::read(path, MAX_CONFIG_BYTES) {
        Ok(content) => content,
        Err(error) if error.is_not_found() => return Ok(json!({}).to_string().into_bytes()),
        Err(error) => return Err(refused(io::Error::other(error))),
    };
    // The error of the parser may quote a password.
    let config: Value = serde_json::from_slice(&content)
        .map_err(|error| refused(io::Error::other(format!("line {}: no JSON", error.line()))))?;
    let server = if registry == "docker.io" { DOCKER_HUB } else { registry };
    let helper = config["credHelpers"][server].as_str().or_else(|| config["credsStore"].as_str());
    let Some(helper) = helper.filter(|it| !it.is_empty()) else { return Ok(content) };
    let answered = ask(Path::new(&format!("docker-credential-{helper}")), server).map_err(|error| {
        let error =
            anyhow::Error::new(error).context(format!("docker-credential-{helper} gives no credentials"));
        Failure::running(error).hint("log in with `docker login`, or remove the helper from config.json")
    })?;
    Ok(answered.map_or(content, |answer| answer.into_config(server)))
}

/// Asks a helper program for the credentials for a server. None if it has none.
fn ask(helper: &Path, server: &str) -> io::Result<Option<Answer>> {
    let mut command = Command::new(helper);
    let mut child =
        command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(server.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        // The error of the parser may quote a password.
        return serde_json::from_str(&printed)
            .map(Some)
            .map_err(|_| io::Error::other("it printed no credentials"));
    }
    // Helpers print their errors on standard output, and this one in the same words.
    if printed.contains("credentials not found") {
        return Ok(None);
    }
    Err(io::Error::other(format!("{}: {:.200}", output.status, printed.trim())))
}

// === impl Answer ===

impl Answer {
    /// Returns what a `config.json` without a helper would have.
    fn into_config(self, server: &str) -> Vec<u8> {
        let Self { username, secret } = self;
        let auth = match username.as_str() {
            "<token>" => json!({ "identitytoken": secret }),
            _ => json!({ "username": username, "password": secret }),
        };
        json!({ "auths": { (server): auth } }).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_file_without_a_helper_is_used_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        assert_eq!(credentials(&path, "a.io").unwrap(), b"{}", "there is no file");
        let config = r#"{"auths":{"a.io":{"auth":"dTpw"}}}"#;
        fs::write(&path, config).unwrap();
        assert_eq!(credentials(&path, "a.io").unwrap(), config.as_bytes());
        fs::write(&path, "{\"auths\": canary").unwrap();
        let broken = credentials(&path, "a.io").unwrap_err().text();
        assert!(broken.contains("line 1: no JSON") && !broken.contains("canary"), "{broken}");
        fs::write(&path, r#"{"credHelpers":{"a.io":"of-no-machine"}}"#).unwrap();
        assert_eq!(credentials(&path, "b.io").unwrap(), fs::read(&path).unwrap(), "of another registry");
        let missing = credentials(&path, "a.io").unwrap_err().text();
        assert!(missing.starts_with("docker-credential-of-no-machine gives no credentials"), "{missing}");
    }

    #[test]
    fn a_helper_is_asked_for_the_registry() {
        let folder = tempfile::tempdir().unwrap();
        let helper = folder.path().join("docker-credential-test");
        fs::write(
            &helper,
            "#!/bin/sh\nread server\ncase $server in\n\
             a.io) echo '{\"ServerURL\":\"a.io\",\"Username\":\"user\",\"Secret\":\"password\"}';;\n\
             t.io) echo '{\"Username\":\"<token>\",\"Secret\":\"token\"}';;\n\
             n.io) echo 'credentials not found in native keychain'; exit 1;;\n\
             *) echo 'the keychain is locked'; exit 1;;\nesac\n",
        )
        .unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
        let ask = |server: &str| {
            let answer = ask(&helper, server).map_err(|error| error.to_string())?;
            Ok::<_, String>(answer.map(|it| String::from_utf8(it.into_config(server)).unwrap()))
        };
        let pair = r#"{"auths":{"a.io":{"username":"user","password":"password"}}}"#;
        assert_eq!(ask("a.io"), Ok(Some(pair.to_owned())));
        assert_eq!(ask("t.io"), Ok(Some(r#"{"auths":{"t.io":{"identitytoken":"token"}}}"#.to_owned())));
        assert_eq!(ask("n.io"), Ok(None));
        assert_eq!(ask("x.io"), Err("exit status: 1: the keychain is locked".to_owned()));
    }

    #[test]
    fn an_oci_url_names_a_reference() {
        assert_eq!(reference_of(Path::new("oci://a.io/b:1")), Some("a.io/b:1"));
        assert_eq!(reference_of(Path::new("plugins/mirror")), None);
    }
}
