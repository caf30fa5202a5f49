use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::routing::get;
use tower::ServiceExt;

use super::*;

/// An API server that knows the tokens `good-N`, of users who may get `/metrics`.
#[derive(Clone, Default)]
struct FakeReviewer {
    n_users: Arc<AtomicUsize>,
    n_rights: Arc<AtomicUsize>,
    is_away: Arc<Mutex<bool>>,
}

#[async_trait]
impl Reviewer for FakeReviewer {
    async fn user(&self, token: &str) -> Result<Option<User>, Unanswered> {
        self.answer("TokenReview")?;
        self.n_users.fetch_add(1, Ordering::Relaxed);
        let name = token.strip_prefix("good-");
        Ok(name.map(|name| User { name: name.to_owned(), ..User::default() }))
    }

    async fn is_allowed(&self, _: &User, action: &Action) -> Result<bool, Unanswered> {
        self.answer("SubjectAccessReview")?;
        self.n_rights.fetch_add(1, Ordering::Relaxed);
        Ok(matches!(action, Action::Path { verb, path } if verb == "get" && path == "/metrics"))
    }
}

impl FakeReviewer {
    fn answer(&self, what: &'static str) -> Result<(), Unanswered> {
        match *self.is_away.lock() {
            true => Err(Unanswered::Unavailable { what, reason: "secret-reason".to_owned() }),
            false => Ok(()),
        }
    }

    fn n_asked(&self) -> (usize, usize) {
        (self.n_users.load(Ordering::Relaxed), self.n_rights.load(Ordering::Relaxed))
    }

    fn pages(&self) -> Router {
        let guard = axum::middleware::from_fn_with_state(Guard::new(self.clone()), check);
        let page = || async { "the page" };
        ["/livez", "/readyz", "/readyz/ping", "/metrics", "/plugins"]
            .into_iter()
            .fold(Router::new(), |router, path| router.route(path, get(page).post(page)))
            .layer(guard)
    }
}

async fn request(pages: &Router, verb: &str, path: &str, authorization: &str) -> (u16, String) {
    let request = axum::http::Request::builder().method(verb).uri(path);
    let request = match authorization {
        "" => request,
        given => request.header(header::AUTHORIZATION, given),
    };
    let response = pages.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(status == 401, response.headers().contains_key(header::WWW_AUTHENTICATE));
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn only_the_probes_are_open_and_a_request_needs_a_valid_token_and_the_right() {
    let reviewer = FakeReviewer::default();
    let pages = reviewer.pages();
    for (verb, path, authorization, status) in [
        ("GET", "/livez", "", 200),
        ("GET", "/readyz?verbose&exclude=ping", "Bearer bad", 200),
        ("GET", "/metrics", "Bearer good-prometheus", 200),
        ("GET", "/metrics?x=/livez", "bearer   good-prometheus ", 200),
        ("GET", "/readyz/ping", "", 401),
        ("GET", "/metrics", "", 401),
        ("GET", "/nope", "", 401),
        ("GET", "/livez/", "", 401),
        ("GET", "/metrics", "Bearer", 401),
        ("GET", "/metrics", "Bearer ", 401),
        ("GET", "/metrics", "Basic good-prometheus", 401),
        ("GET", "/metrics", "good-prometheus", 401),
        ("GET", "/metrics", "Bearer bad", 401),
        ("GET", "/plugins", "Bearer good-prometheus", 403),
        ("POST", "/metrics", "Bearer good-prometheus", 403),
        ("GET", "//metrics", "Bearer good-prometheus", 403),
    ] {
        let (answered, text) = request(&pages, verb, path, authorization).await;
        assert_eq!(answered, status, "{verb} {path} {authorization:?}: {text}");
    }
    let (_, text) = request(&pages, "GET", "/plugins", "Bearer good-prometheus").await;
    insta::assert_snapshot!(text, @"forbidden: prometheus may not get /plugins; grant it with a ClusterRole that has the nonResourceURL");
    let (_, text) = request(&pages, "GET", "/plugins", "").await;
    insta::assert_snapshot!(text, @"unauthorized: send a token of a ServiceAccount or user as `Authorization: Bearer TOKEN`");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_used_again_for_a_while_and_one_that_denies_for_a_shorter_time() {
    let reviewer = FakeReviewer::default();
    let pages = reviewer.pages();
    let metrics = async || request(&pages, "GET", "/metrics", "Bearer good-a").await.0;
    for _ in 0..3 {
        assert_eq!(metrics().await, 200);
        assert_eq!(request(&pages, "GET", "/metrics", "Bearer bad").await.0, 401);
    }
    assert_eq!(reviewer.n_asked(), (2, 1));
    tokio::time::advance(DENIED_FOR).await;
    assert_eq!(metrics().await, 200);
    assert_eq!(request(&pages, "GET", "/metrics", "Bearer bad").await.0, 401);
    assert_eq!(reviewer.n_asked(), (3, 1));
    tokio::time::advance(ALLOWED_FOR).await;
    assert_eq!(metrics().await, 200);
    assert_eq!(reviewer.n_asked(), (4, 2));
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_of_the_api_server_a_request_is_refused_and_the_cause_is_withheld() {
    let reviewer = FakeReviewer::default();
    let pages = reviewer.pages();
    assert_eq!(request(&pages, "GET", "/metrics", "Bearer good-a").await.0, 200);
    *reviewer.is_away.lock() = true;
    assert_eq!(request(&pages, "GET", "/livez", "").await.0, 200);
    tokio::time::advance(ALLOWED_FOR).await;
    for _ in 0..2 {
        let (status, text) = request(&pages, "GET", "/metrics", "Bearer good-a").await;
        assert_eq!(status, 503);
        assert!(!text.contains("secret-reason"), "{text}");
    }
    // A failed question is no answer: it is asked again.
    *reviewer.is_away.lock() = false;
    assert_eq!(request(&pages, "GET", "/metrics", "Bearer good-a").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn unknown_tokens_ask_the_api_server_at_a_limited_rate_and_fill_a_bounded_cache() {
    let reviewer = FakeReviewer::default();
    let guard = Guard::new(reviewer.clone());
    let began = Instant::now();
    for n in 0..3_000 {
        let token = format!("bad-{n}");
        assert!(guard.user(Sender { token: Some(&token), address: None }).await.unwrap().is_none());
    }
    let rate = f64::from(u32::try_from(reviewer.n_asked().0).unwrap()) / began.elapsed().as_secs_f64();
    assert!(rate < QUESTIONS_PER_SECOND * 1.1, "{rate}");
    assert_eq!(guard.shared.users.lock().0.len(), MOST_ANSWERS.get());
    // A request that would wait too long is refused.
    let asked: Vec<_> = (0..200).map(|n| format!("Bearer more-{n}")).collect();
    let pages = reviewer.pages();
    let answers = asked.iter().map(|token| request(&pages, "GET", "/metrics", token));
    let answers = futures::future::join_all(answers).await;
    let count = |status| answers.iter().filter(|(answered, _)| *answered == status).count();
    assert_eq!((count(401), count(429)), (80, 120));
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_of_one_address_leave_room_for_the_others() {
    let guard = Guard::new(FakeReviewer::default());
    let [flood, other] = [1, 2].map(|n| Some(IpAddr::from([10, 0, 0, n])));
    let tokens: Vec<_> = (0..500).map(|n| format!("bad-{n}")).collect();
    let wrong = tokens.iter().map(|token| guard.user(Sender { token: Some(token), address: flood }));
    let wrong = futures::future::join_all(wrong);
    let right = guard.user(Sender { token: Some("good-a"), address: other });
    let (wrong, right) = tokio::join!(wrong, right);
    let n_asked = wrong.iter().filter(|it| it.is_ok()).count();
    assert_eq!(n_asked, 30, "a burst of 20, and 5 a second for the 2 s that a request waits");
    assert_eq!(right.unwrap().unwrap().name, "a");
}

#[test]
fn a_digest_of_a_token_differs_between_hosts() {
    let guard = || Guard::new(FakeReviewer::default()).shared.salt;
    assert_ne!(guard(), guard());
}
