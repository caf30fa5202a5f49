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
use crate::access::{self, AccountState, Gate};
use crate::account::{Account, DEFAULT_HOST_ACCOUNT};

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
    pub(super) async fn check(
        &self,
        client: &kube::Client,
        gate: &Gate,
        account: &Account,
    ) -> Result<(), Problem> {
        self.check_right(client, account, ALLOWED_FOR).await?;
        let state = gate.account(account).await;
        if matches!(state, Err(access::Error::HostForbidden { .. })) {
            // The opt-in has the right to read the account, too. It may have ended since the host asked.
            self.check_right(client, account, DENIED_FOR).await?;
        }
        let Account { namespace, name } = account;
        match state {
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

    /// Checks that the host may act as the account, by an answer of at most this age.
    async fn check_right(
        &self,
        client: &kube::Client,
        account: &Account,
        max_age: Duration,
    ) -> Result<(), Problem> {
        let may_act = self.may_act_as(client, account, max_age).await.map_err(|error| {
            let message = format!("the API server cannot be asked: {}", crate::chain::text(&error));
            problem("ReviewFailed", message, true)
        })?;
        if may_act {
            return Ok(());
        }
        let namespace = &account.namespace;
        let own = self.own_account(client).await;
        let host_account = own.filter(|own| own.to_string() != DEFAULT_HOST_ACCOUNT);
        let host_account = host_account.map(|own| format!(" --host-account {own}")).unwrap_or_default();
        let message = format!(
            "the host may not act as ServiceAccounts of the namespace {namespace}. Fix: `oarlock rbac --namespace \
             {namespace}{host_account} | kubectl apply -f -`"
        );
        Err(problem("NamespaceNotOptedIn", message, false))
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

    async fn may_act_as(
        &self,
        client: &kube::Client,
        account: &Account,
        max_age: Duration,
    ) -> Result<bool, kube::Error> {
        let Account { namespace, name } = account;
        // A namespace usually opts in with all its accounts: then one answer is enough for all its plugins.
        for question in [(namespace.clone(), None), (namespace.clone(), Some(name.clone()))] {
            if self.ask(client, question, max_age).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn ask(
        &self,
        client: &kube::Client,
        question: Question,
        max_age: Duration,
    ) -> Result<bool, kube::Error> {
        let known = self.answers.lock().get(&question).copied();
        if let Some(known) = known.filter(|it| it.is_fresh(max_age)) {
            return Ok(known.is_allowed);
        }
        let mut is_allowed = false;
        for (verb, group) in IMPERSONATION {
            is_allowed = is_allowed || review(client, verb, group, &question).await?;
        }
        let mut answers = self.answers.lock();
        answers.retain(|_, answer| answer.is_fresh(ALLOWED_FOR));
        answers.insert(question, Answer { at: Instant::now(), is_allowed });
        Ok(is_allowed)
    }
}

// === impl Answer ===

impl Answer {
    /// Returns whether the answer may be used: a denial for a short time only.
    fn is_fresh(&self, max_age: Duration) -> bool {
        self.at.elapsed() < if self.is_allowed { max_age } else { max_age.min(DENIED_FOR) }
    }
}

fn problem(reason: &'static str, message: String, is_unknown: bool) -> Problem {
    Problem { stage: Stage::Authorized, reason, message, is_unknown }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use oarlock_fake_api::{FakeApi, Reply};
    use serde_json::json;

    use super::*;
    use crate::access::PRESENT_FOR;
    use crate::access::testing::{FakeReviewer, Known};

    /// What an opt-in has: the right to act as an account, and the right to read it.
    #[derive(Default)]
    struct Rights {
        act: AtomicBool,
        read: AtomicBool,
    }

    fn api(rights: &Arc<Rights>) -> FakeApi {
        let rights = rights.clone();
        FakeApi::new(move |request| match &*request.path {
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                let status = json!({"allowed": rights.act.load(Ordering::Relaxed)});
                Reply::json(201, json!({"metadata": {}, "spec": {}, "status": status}).to_string())
            }
            "/api/v1/namespaces/team/serviceaccounts/plugin" if rights.read.load(Ordering::Relaxed) => {
                Reply::json(200, json!({"metadata": {"name": "plugin", "uid": "u"}}).to_string())
            }
            _ => Reply::status(403, "Forbidden", "no"),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn an_opt_in_that_has_ended_is_not_taken_for_an_api_server_that_cannot_be_asked() {
        let rights = Arc::new(Rights { act: true.into(), read: true.into() });
        let api = api(&rights);
        let gate = Gate::new(api.client(), Arc::new(Known(None)), Arc::new(FakeReviewer::default()));
        let (authorization, account) = (Authorization::default(), "team/plugin".parse().unwrap());
        let check = async || {
            let checked = authorization.check(&api.client(), &gate, &account).await;
            checked.map_err(|problem| (problem.reason, problem.is_unknown))
        };
        assert_eq!(check().await, Ok(()));
        // The host still uses the answer about the right, and not that about the account.
        const { assert!(PRESENT_FOR.as_millis() < ALLOWED_FOR.as_millis()) };
        tokio::time::advance(PRESENT_FOR).await;
        rights.act.store(false, Ordering::Relaxed);
        rights.read.store(false, Ordering::Relaxed);
        assert_eq!(check().await, Err(("NamespaceNotOptedIn", false)));
        // A host that may act as the account and not read it asks once.
        tokio::time::advance(DENIED_FOR).await;
        rights.act.store(true, Ordering::Relaxed);
        let n_before = api.requests().len();
        assert_eq!(check().await, Err(("ReviewFailed", true)));
        assert_eq!(api.requests().len() - n_before, 2, "one about the right, one about the account");
    }
}
