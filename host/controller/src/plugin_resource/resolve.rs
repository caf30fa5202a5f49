//! From the spec of a Plugin to what a plugin file would say: whether the host may act as the account, the
//! component, the configuration, the limits.

use std::sync::Arc;
use std::time::Duration;

use oarlock_component_source::{CachedComponent, Fetched, Fetcher, ReadError, Reason, Source, Verified};
use oarlock_plugin::Limits;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::authorization::Authorization;
use super::conditions::Stage;
use super::controller::Maxima;
use super::definitions::PluginKey;
use super::record::FetchedAt;
use super::referenced::AccountReader;
use super::types::{ConfigSource, KeyReference, PluginSpec};
use crate::account::Account;
use crate::config::{self, NoMapping, PluginFile, settings};
use crate::reload::Host;

/// How long one attempt may take, its downloads included.
/// Longer than a fetch, which ends by itself and then returns what was fetched before.
const ATTEMPT: Duration = Duration::from_secs(360);

/// The kind of an object of `configFrom` that has no secrets.
const CONFIG_MAP: &str = "ConfigMap";

/// The result of resolving one spec.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub(super) file: PluginFile,
    /// The verified file, which the cache keeps while this value lives.
    pub(super) component: CachedComponent,
    /// What the source resolved to.
    pub(super) resolved: Option<String>,
    /// How the component was verified, for people.
    pub(super) verified: String,
    /// Why the component is one that was fetched before.
    pub(super) stale: Option<Problem>,
}

/// Why a spec cannot be resolved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Problem {
    /// What failed.
    pub(super) stage: Stage,
    /// A word for programs, in CamelCase.
    pub(super) reason: &'static str,
    /// For people.
    pub(super) message: String,
    /// The host does not know, as the API server or a registry cannot be asked.
    pub(super) is_unknown: bool,
}

/// What resolving needs.
pub(super) struct Resolver<'a> {
    pub(super) host: &'a Host,
    pub(super) fetcher: &'a Fetcher,
    pub(super) authorization: &'a Authorization,
    /// The namespace of the host, and of the accounts of ClusterPlugins.
    pub(super) host_namespace: &'a str,
    pub(super) maxima: &'a Maxima,
}

/// The object whose spec is resolved.
pub(super) struct Subject<'a> {
    pub(super) key: &'a PluginKey,
    pub(super) uid: &'a str,
    pub(super) spec: &'a PluginSpec,
}

// === impl Resolver ===

impl Resolver<'_> {
    /// Returns the account of a plugin.
    pub(super) fn account(&self, key: &PluginKey, spec: &PluginSpec) -> Account {
        key.account(&spec.service_account_name, self.host_namespace)
    }

    async fn check(&self, account: &Account) -> Result<(), Problem> {
        self.authorization.check(&self.host.client, &self.host.gate, account).await
    }

    /// Resolves a spec. A component that was fetched before is fetched again only if it may have changed.
    pub(super) async fn resolve(
        &self,
        subject: &Subject<'_>,
        fetched: &mut Option<FetchedAt>,
    ) -> Result<Resolved, Problem> {
        let Subject { key, spec, .. } = subject;
        let account = self.account(key, spec);
        in_time(async {
            self.check(&account).await?;
            let reader = AccountReader { client: &self.host.client, account: &account };
            let component = component(self.fetcher, &spec.source, &reader, fetched.take()).await?;
            *fetched = Some(component.clone());
            let config = self.config(spec, &reader).await?;
            self.file(subject, account.clone(), component.fetched, config)
        })
        .await
    }

    /// Fetches the component of a shadow; that of before, while it is the right one.
    pub(super) async fn shadow(
        &self,
        source: &Source,
        account: &Account,
        before: Option<FetchedAt>,
    ) -> Result<FetchedAt, Problem> {
        in_time(async {
            self.check(account).await?;
            let reader = AccountReader { client: &self.host.client, account };
            component(self.fetcher, source, &reader, before).await
        })
        .await
    }

    /// Returns the configuration: that of `configFrom`, with the members of `config` over it. With it, what
    /// stands for it in the id of the version, if it is of a Secret.
    async fn config(
        &self,
        spec: &PluginSpec,
        reader: &AccountReader<'_>,
    ) -> Result<(Map<String, Value>, Option<Arc<str>>), Problem> {
        let (read, kind, key) = match &spec.config_from {
            None => return Ok((spec.config.clone(), None)),
            Some(ConfigSource { config_map: Some(key), secret: None }) => {
                (reader.config_map(key).await.map(|bytes| (bytes, None)), CONFIG_MAP, key)
            }
            Some(ConfigSource { config_map: None, secret: Some(key) }) => {
                let read = reader.secret(key).await;
                (read.map(|(bytes, version)| (bytes, Some(version))), "Secret", key)
            }
            Some(_) => {
                let message =
                    "exactly one of configFrom.configMap and configFrom.secret must be set".to_owned();
                return Err(invalid(message));
            }
        };
        let object = format!("the {kind} {}", key.name);
        let (bytes, version) = read.map_err(|error| of_read(&object, &error))?;
        let version = version.map(|it| json!([it, key.key, spec.config]).to_string().into());
        let mut config = config::parse_mapping(&bytes).map_err(|error| of_text(kind, key, &error))?;
        config.extend(spec.config.clone());
        Ok((config, version))
    }

    fn file(
        &self,
        Subject { key, uid, spec }: &Subject<'_>,
        service_account: Account,
        fetched: Fetched,
        (config, config_version): (Map<String, Value>, Option<Arc<str>>),
    ) -> Result<Resolved, Problem> {
        let Fetched { component, resolved, verified, stale } = fetched;
        let limits = self.limits(spec)?;
        let file = PluginFile {
            path: key.path_of(uid, &service_account.name),
            name: key.host_name(),
            component: component.path().to_owned(),
            service_account,
            config: config.into(),
            config_version,
            limits,
            suspend_writes: spec.suspend_writes,
            is_suspended: spec.suspend,
            dry_run: spec.dry_run,
            concurrency: within("concurrency", spec.concurrency, self.maxima.concurrency)?,
            weight: weight_of(spec, self.maxima.weight)?,
            instances: spec.instances.clone().unwrap_or_default(),
            probation: spec.probation.clone().unwrap_or_default(),
            retry: spec.retry.clone(),
            shadow: None,
        };
        file.check_settings().map_err(|error| invalid(format!("spec.{error}")))?;
        let verified = match verified {
            Verified::NotRequired => "the digest is as stated; the host requires no signature".to_owned(),
            Verified::SignedBy(key) => format!("signed by {key}"),
        };
        let resolved = resolved.map(|it| it.to_string());
        Ok(Resolved { file, component, resolved, verified, stale: stale.map(of_fetch) })
    }

    /// Returns the limits: one that the spec does not set is the default, or the maximum if that is lower.
    fn limits(&self, spec: &PluginSpec) -> Result<Limits, Problem> {
        let mut limits: Limits = serde_json::from_value(Value::Object(spec.limits.clone()))
            .map_err(|error| invalid(format!("spec.limits: {error}")))?;
        limits.check().map_err(|error| invalid(format!("spec.{error}")))?;
        limits.bound(&self.maxima.limits, |name| spec.limits.contains_key(name)).map_err(exceeded)?;
        Ok(limits)
    }
}

/// Returns the result of an attempt, or the problem that it took too long.
async fn in_time<T>(attempt: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    tokio::time::timeout(ATTEMPT, attempt).await.unwrap_or_else(|_| {
        Err(Problem {
            stage: Stage::Fetched,
            reason: "Timeout",
            message: format!("the component was not there after {} s", ATTEMPT.as_secs()),
            is_unknown: true,
        })
    })
}

/// Returns the weight: one that the spec does not set is the default, or the maximum if that is lower.
fn weight_of(spec: &PluginSpec, most: u32) -> Result<u32, Problem> {
    match spec.weight {
        Some(weight) => within("weight", weight, most),
        None => Ok(settings::default_weight().min(most)),
    }
}

/// Returns a value of the spec, unless it is above the maximum.
fn within(name: &str, got: u32, most: u32) -> Result<u32, Problem> {
    if got > most { Err(exceeded(format!("{name}: {got} is above {most}"))) } else { Ok(got) }
}

/// Returns the component of a source: that of before, while it is the right one.
async fn component(
    fetcher: &Fetcher,
    source: &Source,
    reader: &AccountReader<'_>,
    before: Option<FetchedAt>,
) -> Result<FetchedAt, Problem> {
    if let Some(before) = before.as_ref().filter(|it| it.is_fresh(source)) {
        return Ok(before.clone());
    }
    let at = Instant::now();
    // It is read before the object is: a change in between is seen the next time.
    let object = reader.version_of(source).await;
    let fetched = match before {
        Some(before) if object.is_some() && before.object == object => before.fetched,
        _ => fetcher.fetch(source, reader).await.map_err(of_fetch)?,
    };
    Ok(FetchedAt { fetched, at, object })
}

fn invalid(message: String) -> Problem {
    Problem { stage: Stage::Ready, reason: "InvalidSpec", message, is_unknown: false }
}

fn exceeded(what: impl std::fmt::Display) -> Problem {
    Problem {
        reason: "LimitExceeded",
        ..invalid(format!("spec.{what}, the maximum of this host. Fix: lower it, or ask who runs the host"))
    }
}

pub(super) fn of_fetch(error: oarlock_component_source::Error) -> Problem {
    let is_of_verification =
        matches!(error.reason(), Reason::DigestMismatch | Reason::NotSigned | Reason::NotAComponent);
    let fix = error.fix().map(|fix| format!(". Fix: {fix}")).unwrap_or_default();
    Problem {
        stage: if is_of_verification { Stage::Verified } else { Stage::Fetched },
        reason: error.reason().as_str(),
        is_unknown: matches!(error.reason(), Reason::Unavailable | Reason::Cache),
        message: format!("{error}{fix}"),
    }
}

/// Returns the problem of a configuration that cannot be read from this object, such as `the ConfigMap a`.
fn of_read(object: &str, error: &ReadError) -> Problem {
    let (reason, fix) = match error {
        ReadError::NotFound => {
            ("ConfigNotFound", ". Fix: create it in the namespace of the plugin, or correct configFrom")
        }
        ReadError::KeyNotFound(_) => ("ConfigNotFound", ". Fix: add the key, or correct configFrom"),
        ReadError::Forbidden(_) => {
            ("ConfigForbidden", ". Fix: grant it the verb get on this object, with a Role")
        }
        ReadError::Unavailable(_) => ("ConfigUnavailable", ""),
    };
    let is_unknown = matches!(error, ReadError::Unavailable(_));
    Problem { stage: Stage::Ready, reason, message: format!("{object} {error}{fix}"), is_unknown }
}

/// Returns the problem of a text that is no configuration. Others may read the message: it has no part of
/// the text, and of a Secret not even the place.
fn of_text(
    kind: &str,
    KeyReference { name, key }: &KeyReference,
    NoMapping { why, place }: &NoMapping,
) -> Problem {
    let place = place.in_words().filter(|_| kind == CONFIG_MAP);
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    let message = format!("the key {key} of the {kind} {name} {why}{place}");
    Problem { reason: "InvalidConfig", ..invalid(message) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use oarlock_component_source::{Config, KeySource, Policy};
    use oarlock_fake_api::{FakeApi, Reply};

    use super::*;

    #[test]
    fn a_weight_that_the_spec_does_not_set_is_never_above_the_maximum() {
        let weight = |set: serde_json::Value, most| {
            let mut spec = serde_json::json!({"source": {}, "serviceAccountName": "a"});
            if !set.is_null() {
                spec["weight"] = set;
            }
            let spec: PluginSpec = serde_json::from_value(spec).unwrap();
            weight_of(&spec, most).map_err(|problem| (problem.reason, problem.message))
        };
        assert_eq!(weight(Value::Null, 1_000), Ok(100));
        assert_eq!(weight(Value::Null, 50), Ok(50));
        assert_eq!(weight(50.into(), 50), Ok(50));
        let (reason, message) = weight(51.into(), 50).unwrap_err();
        assert_eq!(reason, "LimitExceeded");
        insta::assert_snapshot!(message, @"spec.weight: 51 is above 50, the maximum of this host. Fix: lower it, or ask who runs the host");
    }

    #[test]
    fn a_configuration_that_cannot_be_parsed_has_its_place_unless_it_is_secret() {
        let key = KeyReference { name: "conf".to_owned(), key: "app.yaml".to_owned() };
        let problem = |kind, text: &str| {
            let problem = of_text(kind, &key, &config::parse_mapping(text.as_bytes()).unwrap_err());
            assert_eq!((problem.stage, problem.reason), (Stage::Ready, "InvalidConfig"));
            problem.message
        };
        let unclosed = "a: 1\nb: [canary\nc: 2\n";
        let json = "{\n  \"a\": 1,\n  \"b\" canary\n}\n";
        let deep = format!("a:\n{}", "[".repeat(65));
        let texts = [unclosed, json, "a: 1\nb: *canary", "a: 1\na: {1: [", "canary", &deep];
        insta::assert_snapshot!(texts.map(|text| problem(CONFIG_MAP, text)).join("\n"), @"
        the key app.yaml of the ConfigMap conf is not a mapping in YAML or JSON (line 3, column 2)
        the key app.yaml of the ConfigMap conf is not a mapping in YAML or JSON (line 3, column 7)
        the key app.yaml of the ConfigMap conf is not a mapping in YAML or JSON (line 2, column 4)
        the key app.yaml of the ConfigMap conf is not a mapping in YAML or JSON (line 3, column 1)
        the key app.yaml of the ConfigMap conf is not a mapping in YAML or JSON (line 1, column 1)
        the key app.yaml of the ConfigMap conf is nested too deeply (line 2)
        ");
        insta::assert_snapshot!(problem("Secret", unclosed), @"the key app.yaml of the Secret conf is not a mapping in YAML or JSON");
    }

    #[tokio::test(start_paused = true)]
    async fn a_config_map_is_read_as_a_whole_only_when_it_changed() {
        let version = Arc::new(AtomicU64::new(1));
        let served = Arc::clone(&version);
        let api = FakeApi::new(move |_| match served.load(Ordering::Relaxed) {
            0 => Reply::status(403, "Forbidden", "no"),
            version => {
                let metadata = serde_json::json!({"uid": "u", "resourceVersion": version.to_string()});
                // The first eight bytes of a component.
                let data = serde_json::json!({"plugin.wasm": "AGFzbQ0AAQA="});
                Reply::json(200, serde_json::json!({"metadata": metadata, "binaryData": data}).to_string())
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let config = Config { cache, cache_bytes: 1 << 20, files: None, policy: Policy::default() };
        let fetcher = Fetcher::new(config).unwrap();
        let key = KeySource { name: "hello".to_owned(), key: "plugin.wasm".to_owned() };
        let source = Source { config_map: Some(key), ..Source::default() };
        let (client, account) = (api.client(), "team/plugin".parse().unwrap());
        let reader = AccountReader { client: &client, account: &account };

        let fetch =
            async |before: &FetchedAt| component(&fetcher, &source, &reader, Some(before.clone())).await;
        // How many requests asked for the metadata alone, and how many for the whole object.
        let requests = || {
            let requests = api.requests();
            let accepts = requests.iter().filter_map(|it| it.headers.get("accept")?.to_str().ok());
            let (metadata, whole): (Vec<_>, Vec<_>) =
                accepts.partition(|it| it.contains("as=PartialObjectMetadata"));
            (metadata.len(), whole.len())
        };
        let first = component(&fetcher, &source, &reader, None).await.unwrap();
        assert_eq!(requests(), (1, 1));
        fetch(&first).await.unwrap();
        assert_eq!(requests(), (1, 1), "it is as young as the source allows");
        tokio::time::advance(Duration::from_secs(30)).await;
        let second = fetch(&first).await.unwrap();
        assert_eq!(requests(), (2, 1), "the object is the same");
        assert!(second.is_fresh(&source));
        tokio::time::advance(Duration::from_secs(30)).await;
        version.store(2, Ordering::Relaxed);
        let third = fetch(&second).await.unwrap();
        assert_eq!(requests(), (3, 2), "the object has changed");
        tokio::time::advance(Duration::from_secs(30)).await;
        version.store(0, Ordering::Relaxed);
        let refused = fetch(&third).await.map(drop).unwrap_err();
        assert_eq!((refused.stage, refused.reason), (Stage::Fetched, "Forbidden"));
        let is_as_account = |it: &oarlock_fake_api::SeenRequest| {
            it.headers.get("impersonate-user").is_some_and(|it| it == "system:serviceaccount:team:plugin")
        };
        assert!(api.requests().iter().all(is_as_account));
    }
}
