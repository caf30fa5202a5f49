//! From the spec of a Plugin to what a plugin file would say: whether the host may act as the account, the
//! component, the configuration, the limits.

use std::time::Duration;

use oarlock_component_source::{CachedComponent, Fetched, Fetcher, ReadError, Reason, Verified};
use oarlock_plugin::Limits;
use serde_json::{Map, Value};

use super::authorization::Authorization;
use super::conditions::Stage;
use super::controller::Maxima;
use super::definitions::PluginKey;
use super::referenced::AccountReader;
use super::types::{ConfigSource, PluginSpec};
use crate::account::Account;
use crate::config::{self, PluginFile};
use crate::reload::Host;

/// How long one attempt may take, its downloads included.
/// Longer than a fetch, which ends by itself and then returns what was fetched before.
const ATTEMPT: Duration = Duration::from_secs(360);

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
    pub(super) stale: Option<String>,
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
        let namespace = key.namespace.as_deref().unwrap_or(self.host_namespace);
        Account { namespace: namespace.to_owned(), name: spec.service_account_name.clone() }
    }

    /// Resolves a spec. A component that was fetched before is not fetched again.
    pub(super) async fn resolve(
        &self,
        subject: &Subject<'_>,
        fetched: &mut Option<Fetched>,
    ) -> Result<Resolved, Problem> {
        let Subject { key, spec, .. } = subject;
        let account = self.account(key, spec);
        let attempt = async {
            self.authorization.check(self.host, &account).await?;
            let reader = AccountReader { client: &self.host.client, account: &account };
            let component = match fetched.take() {
                Some(before) => before,
                None => self.fetcher.fetch(&spec.source, &reader).await.map_err(of_fetch)?,
            };
            *fetched = Some(component.clone());
            let config = self.config(spec, &reader).await?;
            self.file(subject, account.clone(), component, config)
        };
        tokio::time::timeout(ATTEMPT, attempt).await.unwrap_or_else(|_| {
            Err(Problem {
                stage: Stage::Fetched,
                reason: "Timeout",
                message: format!("the component was not there after {} s", ATTEMPT.as_secs()),
                is_unknown: true,
            })
        })
    }

    /// Returns the configuration: that of `configFrom`, with the members of `config` over it.
    async fn config(
        &self,
        spec: &PluginSpec,
        reader: &AccountReader<'_>,
    ) -> Result<Map<String, Value>, Problem> {
        let (bytes, what) = match &spec.config_from {
            None => return Ok(spec.config.clone()),
            Some(ConfigSource { config_map: Some(key), secret: None }) => {
                (reader.config_map(key).await, format!("the key {} of the ConfigMap {}", key.key, key.name))
            }
            Some(ConfigSource { config_map: None, secret: Some(key) }) => {
                (reader.secret(key).await, format!("the key {} of the Secret {}", key.key, key.name))
            }
            Some(_) => {
                let message =
                    "exactly one of configFrom.configMap and configFrom.secret must be set".to_owned();
                return Err(invalid(message));
            }
        };
        let bytes = bytes.map_err(|error| of_read(&what, &error))?;
        // The parser's message may have parts of the text, which may be a Secret's.
        let mut config = config::parse_mapping(&bytes)
            .map_err(|why| Problem { reason: "InvalidConfig", ..invalid(format!("{what} {why}")) })?;
        config.extend(spec.config.clone());
        Ok(config)
    }

    fn file(
        &self,
        Subject { key, uid, spec }: &Subject<'_>,
        service_account: Account,
        fetched: Fetched,
        config: Map<String, Value>,
    ) -> Result<Resolved, Problem> {
        let Fetched { component, resolved, verified, stale } = fetched;
        let limits = self.limits(spec)?;
        let file = PluginFile {
            path: key.path_of(uid, &service_account.name),
            name: key.host_name(),
            component: component.path().to_owned(),
            service_account,
            config,
            limits,
            suspend_writes: false,
            is_suspended: spec.suspend,
            dry_run: spec.dry_run,
            concurrency: spec.concurrency,
            weight: spec.weight,
            instances: spec.instances.clone().unwrap_or_default(),
            probation: spec.probation.clone().unwrap_or_default(),
            shadow: None,
        };
        file.check_settings().map_err(|error| invalid(format!("spec.{error}")))?;
        let verified = match verified {
            Verified::NotRequired => "the digest is as stated; the host requires no signature".to_owned(),
            Verified::SignedBy(key) => format!("signed by {key}"),
        };
        let resolved = resolved.map(|it| it.to_string());
        Ok(Resolved { file, component, resolved, verified, stale: stale.map(|it| it.to_string()) })
    }

    /// Returns the limits: one that the spec does not set is the default, or the maximum if that is lower.
    fn limits(&self, spec: &PluginSpec) -> Result<Limits, Problem> {
        let mut limits: Limits = serde_json::from_value(Value::Object(spec.limits.clone()))
            .map_err(|error| invalid(format!("spec.limits: {error}")))?;
        limits.check().map_err(|error| invalid(format!("spec.{error}")))?;
        let Maxima { limits: max_limits, concurrency, weight } = self.maxima;
        limits.bound(max_limits, |name| spec.limits.contains_key(name)).map_err(exceeded)?;
        for (name, got, most) in
            [("concurrency", spec.concurrency, *concurrency), ("weight", spec.weight, *weight)]
        {
            if got > most {
                return Err(exceeded(format!("{name}: {got} is above {most}")));
            }
        }
        Ok(limits)
    }
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

fn of_fetch(error: oarlock_component_source::Error) -> Problem {
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

fn of_read(what: &str, error: &ReadError) -> Problem {
    let (reason, is_unknown) = match error {
        ReadError::NotFound | ReadError::KeyNotFound => ("ConfigNotFound", false),
        ReadError::Forbidden(_) => ("ConfigForbidden", false),
        ReadError::Unavailable(_) => ("ConfigUnavailable", true),
    };
    Problem { stage: Stage::Ready, reason, message: format!("{what} {error}"), is_unknown }
}
