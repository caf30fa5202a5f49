//! Who may use the admin address over HTTPS: a user with a bearer token that the API server accepts, whom it
//! allows the verb on the path. controller-runtime's `WithAuthenticationAndAuthorization` does the same. For
//! the operations about one plugin, it is asked about a subresource of the object, as for `pods/log`.
//!
//! Without an answer of the API server, a request is refused. `/livez` and `/readyz` are open, as those of
//! Kubernetes' components are; their pages below need a token.

mod reviewer;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lru::LruCache;
use oarlock_flow_control::TokenBucket;
use oarlock_plugin::guest::text::one_line;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

pub(super) use self::reviewer::{Action, ApiReviewer, ObjectAction, Reviewer, Unanswered, User};

/// The pages that need no token.
const OPEN: [&str; 2] = ["/livez", "/readyz"];

/// How long an answer that allows is used, and one that denies.
const ALLOWED_FOR: Duration = Duration::from_secs(60);
const DENIED_FOR: Duration = Duration::from_secs(10);

/// How many answers of each kind are kept.
const MOST_ANSWERS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// How many questions a second the API server is asked, and how long a request waits for its turn.
const QUESTIONS_PER_SECOND: f64 = 20.0;
const QUESTIONS_AT_ONCE: u32 = 40;
const PATIENCE: Duration = Duration::from_secs(2);

/// How many of these questions the requests of one address may ask, by second and at once: a client with
/// wrong tokens leaves room for the others. All clients behind a port-forward have a loopback address.
const SHARE_OF_ADDRESS: (f64, u32) = (5.0, 20);
const SHARE_OF_LOOPBACK: (f64, u32) = (15.0, 30);

/// Decides about requests. Cheap to clone.
#[derive(Clone)]
pub(super) struct Guard {
    shared: Arc<GuardShared>,
}

struct GuardShared {
    reviewer: Box<dyn Reviewer>,
    rate: TokenBucket,
    /// Those of the addresses that have asked last.
    rates: Mutex<LruCache<IpAddr, Arc<TokenBucket>>>,
    /// A random text, so that the digests say nothing about tokens.
    salt: [u8; 32],
    users: Mutex<Answers<TokenDigest, Option<User>>>,
    rights: Mutex<Answers<Question, bool>>,
}

type TokenDigest = [u8; 32];

/// The address that a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// Who sends a request.
#[derive(Clone, Copy)]
pub(super) struct Sender<'r> {
    token: Option<&'r str>,
    address: Option<IpAddr>,
}

/// Whether a user may do something.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Question {
    user: User,
    action: Action,
}

/// Answers of the API server, with the time until which they are used.
struct Answers<K: std::hash::Hash + Eq, V>(LruCache<K, (Instant, V)>);

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    NoToken,
    WrongToken,
    Forbidden { user: String, action: Action },
    Unanswered(Unanswered),
    TooMany,
}

/// Answers a request, or refuses it.
pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let (verb, path) = (request.method().as_str().to_ascii_lowercase(), request.uri().path().to_owned());
    if OPEN.contains(&&*path) {
        return next.run(request).await;
    }
    match guard.decide(Sender::of(&request), Action::Path { verb, path }).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

// === impl Guard ===

impl Guard {
    pub(super) fn new(reviewer: impl Reviewer + 'static) -> Self {
        let shared = GuardShared {
            reviewer: Box::new(reviewer),
            rate: TokenBucket::per_second(QUESTIONS_PER_SECOND, QUESTIONS_AT_ONCE),
            rates: Mutex::new(LruCache::new(MOST_ANSWERS)),
            salt: rand::random(),
            users: Mutex::new(Answers::new()),
            rights: Mutex::new(Answers::new()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Refuses a request whose user may not do this.
    pub(super) async fn decide(&self, sender: Sender<'_>, action: Action) -> Result<(), Refusal> {
        let user = self.user(sender).await?.ok_or(Refusal::WrongToken)?;
        let question = Question { user, action };
        if self.is_allowed(sender, &question).await? {
            return Ok(());
        }
        let Question { user, action } = question;
        Err(Refusal::Forbidden { user: user.name, action })
    }

    async fn user(&self, sender: Sender<'_>) -> Result<Option<User>, Refusal> {
        let token = sender.token.ok_or(Refusal::NoToken)?;
        let digest = Sha256::new().chain_update(self.shared.salt).chain_update(token).finalize().into();
        if let Some(user) = self.shared.users.lock().get(&digest) {
            return Ok(user);
        }
        self.wait_for_rate(sender).await?;
        let asked = Instant::now();
        let user = self.shared.reviewer.user(token).await.map_err(Refusal::Unanswered)?;
        let valid_for = if user.is_some() { ALLOWED_FOR } else { DENIED_FOR };
        self.shared.users.lock().put(digest, asked + valid_for, user.clone());
        Ok(user)
    }

    async fn is_allowed(&self, sender: Sender<'_>, question: &Question) -> Result<bool, Refusal> {
        if let Some(is_allowed) = self.shared.rights.lock().get(question) {
            return Ok(is_allowed);
        }
        self.wait_for_rate(sender).await?;
        let Question { user, action } = question;
        let asked = Instant::now();
        let is_allowed = self.shared.reviewer.is_allowed(user, action).await.map_err(Refusal::Unanswered)?;
        let valid_for = if is_allowed { ALLOWED_FOR } else { DENIED_FOR };
        self.shared.rights.lock().put(question.clone(), asked + valid_for, is_allowed);
        Ok(is_allowed)
    }

    async fn wait_for_rate(&self, sender: Sender<'_>) -> Result<(), Refusal> {
        let mut patience = PATIENCE;
        if let Some(address) = sender.address {
            let (rate, at_once) = if address.is_loopback() { SHARE_OF_LOOPBACK } else { SHARE_OF_ADDRESS };
            let fresh = || Arc::new(TokenBucket::per_second(rate, at_once));
            let of_address = self.shared.rates.lock().get_or_insert(address, fresh).clone();
            let wait = of_address.reserve(patience).map_err(|_| Refusal::TooMany)?;
            tokio::time::sleep(wait).await;
            patience = patience.saturating_sub(wait);
        }
        let wait = self.shared.rate.reserve(patience).map_err(|_| Refusal::TooMany)?;
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

// === impl Sender ===

impl<'r> Sender<'r> {
    pub(super) fn of(request: &'r Request) -> Self {
        let address = request.extensions().get::<Peer>().map(|Peer(address)| *address);
        Self { token: bearer_token(request.headers()), address }
    }
}

/// Returns the token of `Authorization: Bearer TOKEN`.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

// === impl Answers ===

impl<K: std::hash::Hash + Eq, V: Clone> Answers<K, V> {
    fn new() -> Self {
        Self(LruCache::new(MOST_ANSWERS))
    }

    fn get(&mut self, key: &K) -> Option<V> {
        let (until, answer) = self.0.get(key)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    fn put(&mut self, key: K, until: Instant, answer: V) {
        self.0.put(key, (until, answer));
    }
}

// === impl Refusal ===

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::NoToken => {
                unauthorized("send a token of a ServiceAccount or user as `Authorization: Bearer TOKEN`")
            }
            Self::WrongToken => unauthorized("the API server does not accept this token"),
            Self::Forbidden { user, action: Action::Object(action) } => {
                let body = serde_json::json!({
                    "error": format!("forbidden: {} may not {}", one_line(user), one_line(action.to_string())),
                    "hint": action.hint(),
                });
                (StatusCode::FORBIDDEN, Json(body)).into_response()
            }
            Self::Forbidden { user, action: Action::Path { verb, path } } => {
                let (user, path) = (one_line(user), one_line(path));
                let text = format!(
                    "forbidden: {user} may not {verb} {path}; grant it with a ClusterRole that has the nonResourceURL\n"
                );
                (StatusCode::FORBIDDEN, text).into_response()
            }
            Self::Unanswered(why) => {
                // The cause may name the host's account and the API server: it is for the operator alone.
                tracing::warn!(%why, "the admin pages cannot check a request, and refuse it");
                let text =
                    "the API server cannot be asked who may read this page; the log of the host says why\n";
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
            Self::TooMany => {
                let text = "too many requests with tokens that the host does not know yet; try again\n";
                (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], text).into_response()
            }
        }
    }
}

fn unauthorized(text: &str) -> Response {
    let headers = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, headers, format!("unauthorized: {text}\n")).into_response()
}

#[cfg(test)]
mod tests;
