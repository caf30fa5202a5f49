//! The questions of the guard, which the API server answers: TokenReviews, and SubjectAccessReviews about
//! paths and about subresources of plugins.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};

use crate::plugin_resource::GROUP;

/// The time limit of one question.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A user, as the API server knows it.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(in crate::admin) struct User {
    pub(in crate::admin) name: String,
    pub(in crate::admin) uid: String,
    pub(in crate::admin) groups: Vec<String>,
    pub(in crate::admin) extra: BTreeMap<String, Vec<String>>,
}

/// What a user asks for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::admin) enum Action {
    /// A page: the verb is the method of the request.
    Path { verb: String, path: String },
    /// An operation about plugins.
    Object(ObjectAction),
}

/// A verb on a subresource of Plugins or ClusterPlugins.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::admin) struct ObjectAction {
    pub(in crate::admin) verb: &'static str,
    pub(in crate::admin) resource: &'static str,
    pub(in crate::admin) subresource: &'static str,
    /// Empty for ClusterPlugins, and for all namespaces.
    pub(in crate::admin) namespace: String,
    /// Empty for all objects.
    pub(in crate::admin) name: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(in crate::admin) enum Unanswered {
    /// The host may not ask.
    #[error(
        "the host's account may not create {what}s: bind it to the ClusterRole system:auth-delegator: {reason}"
    )]
    HostForbidden {
        /// The kind of the review.
        what: &'static str,
        /// The API server's message.
        reason: String,
    },
    /// The API server does not answer, or with an error.
    #[error("the API server does not answer a {what}: {reason}")]
    Unavailable {
        /// The kind of the review.
        what: &'static str,
        /// The cause.
        reason: String,
    },
}

/// Answers the guard's questions.
#[async_trait]
pub(in crate::admin) trait Reviewer: Send + Sync {
    /// Returns the user of a token; none if the token is not valid.
    async fn user(&self, token: &str) -> Result<Option<User>, Unanswered>;

    /// Returns whether a user may do this.
    async fn is_allowed(&self, user: &User, action: &Action) -> Result<bool, Unanswered>;
}

/// Asks the API server, as the host.
pub(in crate::admin) struct ApiReviewer {
    client: kube::Client,
}

// === impl ApiReviewer ===

impl ApiReviewer {
    pub(in crate::admin) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    async fn ask<R>(&self, what: &'static str, review: &R) -> Result<R, Unanswered>
    where
        R: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
    {
        let api: Api<R> = Api::all(self.client.clone());
        let params = PostParams::default();
        match tokio::time::timeout(ANSWER_LIMIT, api.create(&params, review)).await {
            Ok(Ok(review)) => Ok(review),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => {
                Err(Unanswered::HostForbidden { what, reason: status.message })
            }
            Ok(Err(kube::Error::Api(status))) => {
                Err(Unanswered::Unavailable { what, reason: status.message })
            }
            Ok(Err(error)) => Err(Unanswered::Unavailable { what, reason: crate::chain::text(&error) }),
            Err(_) => {
                let reason = format!("no answer within {} s", ANSWER_LIMIT.as_secs());
                Err(Unanswered::Unavailable { what, reason })
            }
        }
    }
}

#[async_trait]
impl Reviewer for ApiReviewer {
    async fn user(&self, token: &str) -> Result<Option<User>, Unanswered> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() },
            ..TokenReview::default()
        };
        let status = self.ask("TokenReview", &review).await?.status.unwrap_or_default();
        let is_authenticated = status.authenticated == Some(true);
        let user = status.user.filter(|_| is_authenticated).map(User::from);
        // Every user has a name.
        Ok(user.filter(|user| !user.name.is_empty()))
    }

    async fn is_allowed(&self, user: &User, action: &Action) -> Result<bool, Unanswered> {
        let (path, resource) = match action {
            Action::Path { verb, path } => {
                (Some(NonResourceAttributes { path: Some(path.clone()), verb: Some(verb.clone()) }), None)
            }
            Action::Object(action) => (None, Some(action.attributes())),
        };
        let User { name, uid, groups, extra } = user.clone();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(name),
                uid: Some(uid),
                groups: Some(groups),
                extra: Some(extra),
                non_resource_attributes: path,
                resource_attributes: resource,
            },
            ..SubjectAccessReview::default()
        };
        let status = self.ask("SubjectAccessReview", &review).await?.status;
        // An explicit denial by one authorizer outweighs an allowance; the server reports them apart.
        Ok(status.is_some_and(|status| status.allowed && !status.denied.unwrap_or(false)))
    }
}

// === impl ObjectAction ===

impl ObjectAction {
    fn attributes(&self) -> ResourceAttributes {
        let Self { verb, resource, subresource, namespace, name } = self;
        ResourceAttributes {
            group: Some(GROUP.to_owned()),
            // The right is the same in all versions of the API.
            version: Some("*".to_owned()),
            verb: Some((*verb).to_owned()),
            resource: Some((*resource).to_owned()),
            subresource: Some((*subresource).to_owned()),
            namespace: Some(namespace.clone()),
            name: Some(name.clone()),
            ..ResourceAttributes::default()
        }
    }

    /// Returns how to grant it.
    pub(in crate::admin) fn hint(&self) -> String {
        let role = if self.verb == "get" { "oarlock-plugins-view" } else { "oarlock-plugins-edit" };
        match &*self.namespace {
            "" => format!(
                "grant `{}` on {}/{} of {GROUP} with a ClusterRole and a ClusterRoleBinding; without -A, the right in one \
                 namespace is enough",
                self.verb, self.resource, self.subresource
            ),
            namespace => format!(
                "kubectl create rolebinding NAME --clusterrole={role} --user=USER --namespace={namespace} grants it"
            ),
        }
    }
}

impl fmt::Display for ObjectAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, subresource, namespace, name } = self;
        write!(f, "{verb} {resource}/{subresource} of {GROUP}")?;
        if !name.is_empty() {
            write!(f, " {name:?}")?;
        }
        match (&**namespace, *resource) {
            ("", "plugins") => write!(f, " in all namespaces"),
            ("", _) => Ok(()),
            (namespace, _) => write!(f, " in namespace {namespace:?}"),
        }
    }
}

// === impl User ===

impl From<UserInfo> for User {
    fn from(user: UserInfo) -> Self {
        let UserInfo { username, uid, groups, extra } = user;
        Self {
            name: username.unwrap_or_default(),
            uid: uid.unwrap_or_default(),
            groups: groups.unwrap_or_default(),
            extra: extra.unwrap_or_default(),
        }
    }
}
