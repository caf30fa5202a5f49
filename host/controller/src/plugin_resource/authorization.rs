//! Whether the host may act as an account: its namespace has opted in, and the account exists.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::conditions::Stage;
use super::resolve::Problem;
use crate::access::AccountState;
use crate::account::{Account, DEFAULT_HOST_ACCOUNT};
use crate::reload::Host;

/// The verbs and groups of the rights to act as an account: the general one, and that of constrained
/// impersonation. Each is enough.
const IMPERSONATION: [(&str, &str); 2] =
    [("impersonate", ""), ("impersonate:serviceaccount", "authentication.k8s.io")];

/// How long an answer is used. A thousand plugins of one namespace ask the API server once in this time.
const ALLOWED_FOR: Duration = Duration::from_secs(10);
const DENIED_FOR: Duration = Duration::from_secs(2);

/// The host's rights on accounts, as the API server said last.
#[derive(Default)]
pub(super) struct Authorization {
    answers: Mutex<BTreeMap<Question, Answer>>,
    /// The account of the host, when it is known.
    own_account: OnceCell<Option<Account>>,
}

/// A namespace, and the name of an account in it, or none for all accounts of the namespace.
type Question = (String, Option<String>);

#[derive(Clone, Copy)]
struct Answer {
    at: Instant,
    is_allowed: bool,
}

// === impl Authorization ===

impl Authorization {
    /// Checks that the account exists and that the host may act as it.
    pub(super) async fn check(&self, host: &Host, account: &Account) -> Result<(), Problem> {
        let problem =
            |reason, message, is_unknown| Problem { stage: Stage::Authorized, reason, message, is_unknown };
        let Account { namespace, name } = account;
        let may_act = self.may_act_as(&host.client, account).await.map_err(|error| {
            let message = format!("the API server cannot be asked: {}", crate::chain::text(&error));
            problem("ReviewFailed", message, true)
        })?;
        if !may_act {
            let own = self.own_account(&host.client).await;
            let host_account = own.filter(|own| own.to_string() != DEFAULT_HOST_ACCOUNT);
            let host_account = host_account.map(|own| format!(" --host-account {own}")).unwrap_or_default();
            let message = format!(
                "the host may not act as ServiceAccounts of the namespace {namespace}. Fix: `oarlock rbac --namespace \
                 {namespace}{host_account} | kubectl apply -f -`"
            );
            return Err(problem("NamespaceNotOptedIn", message, false));
        }
        match host.gate.account(account).await {
            Ok(AccountState::Present { .. }) => Ok(()),
            Ok(AccountState::Missing) => {
                let message = format!(
                    "the ServiceAccount {account} does not exist. Fix: `kubectl create serviceaccount {name} --namespace {namespace}`"
                );
                Err(problem("AccountMissing", message, false))
            }
            Err(error) => Err(problem("ReviewFailed", crate::chain::text(&error), true)),
        }
    }

    /// Returns the ServiceAccount that the host runs as; none if it is another user, or if the API server
    /// does not say.
    async fn own_account(&self, client: &kube::Client) -> Option<Account> {
        let ask = || async {
            let reviews = Api::<SelfSubjectReview>::all(client.clone());
            let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
            let user = review.status.and_then(|it| it.user_info).and_then(|it| it.username);
            Ok::<_, kube::Error>(user.as_deref().and_then(Account::of_username))
        };
        self.own_account.get_or_try_init(ask).await.ok().cloned().flatten()
    }

    async fn may_act_as(&self, client: &kube::Client, account: &Account) -> Result<bool, kube::Error> {
        let Account { namespace, name } = account;
        // A namespace usually opts in with all its accounts: then one answer is enough for all its plugins.
        for question in [(namespace.clone(), None), (namespace.clone(), Some(name.clone()))] {
            if self.ask(client, question).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn ask(&self, client: &kube::Client, question: Question) -> Result<bool, kube::Error> {
        let known = self.answers.lock().get(&question).copied();
        if let Some(known) = known.filter(Answer::is_fresh) {
            return Ok(known.is_allowed);
        }
        let mut is_allowed = false;
        for (verb, group) in IMPERSONATION {
            is_allowed = is_allowed || review(client, verb, group, &question).await?;
        }
        let mut answers = self.answers.lock();
        answers.retain(|_, answer| answer.is_fresh());
        answers.insert(question, Answer { at: Instant::now(), is_allowed });
        Ok(is_allowed)
    }
}

// === impl Answer ===

impl Answer {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < if self.is_allowed { ALLOWED_FOR } else { DENIED_FOR }
    }
}

/// Asks whether the host has a right on an account, or on all accounts of a namespace.
async fn review(
    client: &kube::Client,
    verb: &str,
    group: &str,
    (namespace, name): &Question,
) -> Result<bool, kube::Error> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some("serviceaccounts".to_owned()),
                namespace: Some(namespace.clone()),
                name: name.clone(),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let review = reviews.create(&PostParams::default(), &review).await?;
    let status = review.status.unwrap_or_default();
    Ok(status.allowed && status.denied != Some(true))
}
