//! A server without a network: its objects, its background tasks, its administrator.

use crate::authn::TokenIdentity;
use crate::authorizer::bootstrap_objects;
use crate::cluster::Cluster;
use crate::collector;
use crate::config::Config;
use crate::dev_cluster::Error;
use crate::generated::Generated;
use crate::model::FieldValidation;
use crate::namespaces;
use crate::services;
use crate::status::StatusError;
use crate::tasks::Tasks;
use crate::user::{MASTERS, UserInfo};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What a server consists of, however requests reach it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) tasks: Tasks,
    pub(crate) admin_token: String,
}

// === impl State ===

impl State {
    pub(crate) fn new(config: Config) -> Result<Self, Error> {
        let Config {
            addr: _,
            history_limit,
            bookmark_interval,
            garbage_collection,
            admin_token,
            faults,
            clock,
            seed,
        } = config;
        let generated = Generated::new(clock, seed);
        let cluster = Arc::new(Cluster::new(history_limit, bookmark_interval, generated));
        bootstrap(&cluster).map_err(|error| Error::Bootstrap(Box::new(error)))?;
        for fault in faults {
            cluster.faults.add(fault);
        }
        let admin = UserInfo::new("kubernetes-admin", [MASTERS]);
        let admin_token = match admin_token {
            Some(token) => {
                cluster.tokens.accept(token.clone(), TokenIdentity::new(admin, None));
                token
            }
            None => cluster.tokens.issue(TokenIdentity::new(admin, None)),
        };
        let tasks = Tasks::default();
        if garbage_collection {
            let (sender, notices) = mpsc::unbounded_channel();
            cluster.store.send_notices(sender);
            tasks.spawn(collector::run(cluster.clone(), notices));
        }
        Ok(Self { cluster, tasks, admin_token })
    }

    /// Issues a token for a ServiceAccount, which need not exist.
    pub(crate) fn token_for(&self, namespace: &str, name: &str) -> String {
        self.cluster.tokens.issue(TokenIdentity::new(UserInfo::service_account(namespace, name), None))
    }
}

/// Creates the initial namespaces, their ServiceAccounts, and the Roles of every cluster.
fn bootstrap(cluster: &Cluster) -> Result<(), StatusError> {
    cluster.write(false, |transaction, served| {
        let missing = || StatusError::internal("a built-in resource is missing");
        let namespaces = served.builtin("", "namespaces").ok_or_else(missing)?;
        for name in namespaces::INITIAL {
            let mut namespace = json!({
                "metadata": {"name": name, "uid": "", "resourceVersion": "", "creationTimestamp": "",
                             "labels": {"kubernetes.io/metadata.name": name}},
            });
            identify(&mut namespace, transaction.generated);
            namespaces.model.prepare_create(&mut namespace);
            transaction.put(namespaces, name, namespace);
            namespaces::create_default_account(transaction, served, name)?;
        }
        let services = served.builtin("", "services").ok_or_else(missing)?;
        let mut own = services.model.decode(services::kubernetes_service(), FieldValidation::Ignore)?.object;
        services.model.prepare_create(&mut own);
        identify(&mut own, transaction.generated);
        transaction.put(services, "default/kubernetes", own);
        for mut object in bootstrap_objects() {
            let kind = object["kind"].as_str().unwrap_or_default();
            let resource =
                served.resources().iter().find(|resource| resource.kind == kind).ok_or_else(missing)?;
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let key = resource.key(text("/metadata/namespace"), text("/metadata/name"));
            identify(&mut object, transaction.generated);
            transaction.put(resource, &key, object);
        }
        Ok(())
    })
}

fn identify(object: &mut Value, generated: &Generated) {
    object["metadata"]["uid"] = generated.uid().into();
    object["metadata"]["resourceVersion"] = "".into();
    object["metadata"]["creationTimestamp"] = generated.now().into();
}
