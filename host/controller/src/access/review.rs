//! The gate's questions, and the API server that answers them: SubjectAccessReviews, and whether a
//! ServiceAccount exists.

use async_trait::async_trait;
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::ServiceAccount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, api::PostParams};
use oarlock_informer::GroupVersionResource;

use super::REVIEWS_PER_SECOND;
use crate::account::Account;

/// One question to Kubernetes, as a SubjectAccessReview asks it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    /// The account that would act.
    pub(crate) account: Account,
    /// The API's verb, such as `list`.
    pub(crate) verb: &'static str,
    /// The resource.
    pub(crate) resource: GroupVersionResource,
    /// The namespace; `None` asks about all namespaces at once.
    pub(crate) namespace: Option<String>,
}

/// Whether a ServiceAccount exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccountState {
    /// The account exists.
    Present {
        /// The account's uid. An account that is created again has another one.
        uid: String,
    },
    /// The account does not exist.
    Missing,
}

/// Why the gate has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Error {
    /// The API server could not be asked, or did not answer in time.
    #[error("the API server cannot be asked for the rights of {account}: {reason}")]
    Unavailable {
        /// On whose behalf the gate asked.
        account: Account,
        /// The cause.
        reason: String,
    },
    /// The host itself may not ask.
    #[error(
        "the host may not ask for the rights of {account}; grant the host what `oarlock rbac` prints: {reason}"
    )]
    HostForbidden {
        /// On whose behalf the gate asked.
        account: Account,
        /// The API server's message.
        reason: String,
    },
    /// The account asks more than its rate allows.
    #[error(
        "checking the rights of {account} takes more than {REVIEWS_PER_SECOND} SubjectAccessReviews a second; declare fewer \
         resources, or grant the rights in all namespaces, so that one review decides for all of them"
    )]
    TooMany {
        /// On whose behalf the gate asked.
        account: Account,
    },
}

/// Answers the gate's questions.
#[async_trait]
pub(crate) trait Reviewer: Send + Sync {
    /// Answers one question. The gate caches the answer, not the reviewer.
    async fn review(&self, question: &Question) -> Result<bool, Error>;

    /// Returns whether a ServiceAccount exists.
    async fn account_state(&self, account: &Account) -> Result<AccountState, Error>;
}

/// Asks the API server, as the host.
pub(crate) struct ApiReviewer {
    client: kube::Client,
}

// === impl ApiReviewer ===

impl ApiReviewer {
    /// Creates a reviewer that asks over `client`.
    #[must_use]
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }
}

#[async_trait]
impl Reviewer for ApiReviewer {
    async fn review(&self, question: &Question) -> Result<bool, Error> {
        let Question { account, verb, resource, namespace } = question;
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(account.username()),
                groups: Some(account.groups()),
                resource_attributes: Some(ResourceAttributes {
                    group: Some(resource.group.to_string()),
                    version: Some(resource.version.to_string()),
                    resource: Some(resource.resource.to_string()),
                    verb: Some((*verb).to_owned()),
                    namespace: namespace.clone(),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let answer = Api::<SubjectAccessReview>::all(self.client.clone())
            .create(&PostParams::default(), &review)
            .await
            .map_err(|error| classify(account, &error))?;
        let Some(status) = answer.status else {
            return Err(Error::Unavailable {
                account: account.clone(),
                reason: "the API server answered a SubjectAccessReview without a status".to_owned(),
            });
        };
        // An explicit denial by one authorizer outweighs an allowance; the server reports them apart.
        Ok(status.allowed && !status.denied.unwrap_or(false))
    }

    async fn account_state(&self, account: &Account) -> Result<AccountState, Error> {
        let api = Api::<ServiceAccount>::namespaced(self.client.clone(), &account.namespace);
        match api.get_opt(&account.name).await {
            // An account that is being deleted counts as missing: its deletion is not observed in any other
            // way.
            Ok(Some(account)) => match account.metadata {
                ObjectMeta { deletion_timestamp: None, uid, .. } => {
                    Ok(AccountState::Present { uid: uid.unwrap_or_default() })
                }
                _ => Ok(AccountState::Missing),
            },
            Ok(None) => Ok(AccountState::Missing),
            Err(error) => Err(classify(account, &error)),
        }
    }
}

fn classify(account: &Account, error: &kube::Error) -> Error {
    let account = account.clone();
    match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
            Error::HostForbidden { account, reason: status.message.clone() }
        }
        kube::Error::Api(status) => Error::Unavailable { account, reason: status.message.clone() },
        other => Error::Unavailable { account, reason: crate::chain::text(other) },
    }
}
