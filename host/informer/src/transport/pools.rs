//! The connections of a client: for watches, for the host's Lease, and for all other requests.
//!
//! Over HTTP/2 all requests of one pool share one connection, and API servers allow 100 at a time on it. The
//! next ones would wait until one of them is answered.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use parking_lot::Mutex;

use super::{Connector, PING_INTERVAL, PING_TIMEOUT};

/// Watches last for minutes, so they take turns.
const N_WATCH_POOLS: usize = 8;

/// Pools for requests that are neither watches nor of the Lease. API servers answer 600 requests at a time by
/// default.
const N_OTHER_POOLS: usize = 8;

/// With so many requests without an answer in a pool, the next one goes to another pool. Answers whose bodies
/// are still being read come on top.
const ENOUGH_FOR_ONE_POOL: usize = 80;

type Pool = legacy::Client<Connector, Body>;

/// Sends each request over connections of its kind.
#[derive(Clone)]
pub(super) struct Pools {
    watches: Arc<[Pool]>,
    n_watches: Arc<AtomicUsize>,
    others: Arc<[Counted]>,
    leases: Arc<Leases>,
}

/// A pool, and the number of its requests that have no answer yet.
struct Counted {
    pool: Pool,
    n_waiting: AtomicUsize,
}

/// The pool of the requests with which a host keeps its Lease: requests of plugins never delay them.
struct Leases {
    connector: Connector,
    pool: Mutex<Pool>,
}

/// A request without an answer, until this is dropped.
enum Waiting {
    Watch,
    Other {
        pools: Arc<[Counted]>,
        n: usize,
    },
    /// `None` after an answer.
    Lease(Option<Arc<Leases>>),
}

// === impl Pools ===

impl Pools {
    pub(super) fn new(watches: &Connector, others: &Connector) -> Self {
        let counted = || Counted { pool: pool(others), n_waiting: AtomicUsize::new(0) };
        Self {
            watches: (0..N_WATCH_POOLS).map(|_| pool(watches)).collect(),
            n_watches: Arc::new(AtomicUsize::new(0)),
            others: (0..N_OTHER_POOLS).map(|_| counted()).collect(),
            leases: Arc::new(Leases { connector: others.clone(), pool: Mutex::new(pool(others)) }),
        }
    }

    pub(super) fn send(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Incoming>, legacy::Error>> + Send + use<> {
        let (pool, mut waiting) = self.choose(&request);
        let answer = pool.request(request);
        async move {
            let answer = answer.await;
            if let Waiting::Lease(leases) = &mut waiting {
                *leases = None;
            }
            answer
        }
    }

    fn choose(&self, request: &Request<Body>) -> (Pool, Waiting) {
        if is_watch(request) {
            let n = self.n_watches.fetch_add(1, Ordering::Relaxed) % self.watches.len();
            return (self.watches[n].clone(), Waiting::Watch);
        }
        if is_of_host_lease(request) {
            return (self.leases.pool.lock().clone(), Waiting::Lease(Some(self.leases.clone())));
        }
        let n_waiting = |n: &usize| self.others[*n].n_waiting.load(Ordering::Relaxed);
        let pools = 0..self.others.len();
        let with_room = pools.clone().find(|n| n_waiting(n) < ENOUGH_FOR_ONE_POOL);
        let n = with_room.or_else(|| pools.min_by_key(n_waiting)).unwrap_or_default();
        self.others[n].n_waiting.fetch_add(1, Ordering::Relaxed);
        (self.others[n].pool.clone(), Waiting::Other { pools: self.others.clone(), n })
    }
}

// === impl Waiting ===

impl Drop for Waiting {
    fn drop(&mut self) {
        match self {
            Self::Other { pools, n } => {
                pools[*n].n_waiting.fetch_sub(1, Ordering::Relaxed);
            }
            // A request that was given up got no answer on its connection, and another one there would get
            // none either. So the next one opens a connection.
            Self::Lease(Some(leases)) => *leases.pool.lock() = pool(&leases.connector),
            Self::Watch | Self::Lease(None) => {}
        }
    }
}

fn pool(connector: &Connector) -> Pool {
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(connector.clone())
}

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
}

/// Returns whether a request is about a Lease, and not sent as the account of a plugin.
fn is_of_host_lease(request: &Request<Body>) -> bool {
    request.uri().path().contains("/apis/coordination.k8s.io/")
        && !request.headers().contains_key("impersonate-user")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::Config;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::{TCP_USER_TIMEOUT, connector};
    use super::*;

    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases/oarlock";

    fn get(path: &str) -> Request<Body> {
        Request::get(path).body(Body::empty()).unwrap()
    }

    fn pools(url: &str) -> Pools {
        let connector = connector(&Config::new(url.parse().unwrap()), TCP_USER_TIMEOUT).unwrap();
        Pools::new(&connector, &connector)
    }

    #[tokio::test]
    async fn watches_and_the_lease_use_separate_connections() {
        let pools = pools("http://127.0.0.1:1");
        let kind = |request: &Request<Body>| match pools.choose(request).1 {
            Waiting::Watch => "watch",
            Waiting::Other { .. } => "other",
            Waiting::Lease(_) => "lease",
        };
        assert_eq!(kind(&get("/api/v1/pods")), "other");
        assert_eq!(kind(&get("/api/v1/pods?limit=500&fieldSelector=watch%3Dtrue")), "other");
        assert_eq!(kind(&get("/api/v1/pods?watch=true&resourceVersion=1")), "watch");
        assert_eq!(kind(&get("/api/v1/pods?resourceVersion=1&watch=1")), "watch");
        assert_eq!(kind(&get(LEASE)), "lease");
        assert_eq!(kind(&get(&format!("/base{LEASE}"))), "lease");
        let mut of_plugin = get(LEASE);
        of_plugin.headers_mut().insert("impersonate-user", "system:serviceaccount:a:b".parse().unwrap());
        assert_eq!(kind(&of_plugin), "other");
    }

    #[tokio::test]
    async fn requests_that_are_many_use_more_connections() {
        let pools = pools("http://127.0.0.1:1");
        let n_of = |waiting: &Waiting| match waiting {
            Waiting::Other { n, .. } => *n,
            Waiting::Watch | Waiting::Lease(_) => panic!("another kind"),
        };
        let all = N_OTHER_POOLS * ENOUGH_FOR_ONE_POOL;
        let mut waiting: Vec<_> = (0..all).map(|_| pools.choose(&get("/api/v1/pods")).1).collect();
        let used: Vec<_> = waiting.iter().map(n_of).collect();
        assert!((0..all).all(|nth| used[nth] == nth / ENOUGH_FOR_ONE_POOL), "{used:?}");
        // Beyond that, the one with the fewest.
        waiting.remove(3 * ENOUGH_FOR_ONE_POOL);
        waiting.push(pools.choose(&get("/api/v1/pods")).1);
        assert_eq!(waiting.last().map(n_of), Some(3));
        waiting.clear();
        assert_eq!(n_of(&pools.choose(&get("/api/v1/pods")).1), 0);
    }

    #[tokio::test]
    async fn after_a_request_without_an_answer_the_lease_has_a_new_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pools = pools(&format!("http://{}", listener.local_addr().unwrap()));
        let request = || get(&format!("http://{}{LEASE}", listener.local_addr().unwrap()));
        let answer = |connection: tokio::net::TcpStream| async move {
            let mut connection = connection;
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                connection.read_buf(&mut request).await.unwrap();
            }
            connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            connection
        };
        // An answer leaves the pool as it is.
        let before = pools.leases.pool.lock().clone();
        let server = async { answer(listener.accept().await.unwrap().0).await };
        let (_connection, answered) = tokio::join!(server, pools.send(request()));
        assert_eq!(answered.unwrap().status(), 200);
        assert!(format!("{before:?}") == format!("{:?}", pools.leases.pool.lock()));
        // A request that is given up has another pool made. The connection of the first is idle, and is not
        // used.
        let given_up = tokio::time::timeout(Duration::from_millis(50), pools.send(request())).await;
        assert!(given_up.is_err(), "the server does not answer");
        let server = async { answer(listener.accept().await.unwrap().0).await };
        let limit = Duration::from_secs(60);
        let both = tokio::time::timeout(limit, async { tokio::join!(server, pools.send(request())) });
        assert_eq!(both.await.expect("another connection").1.unwrap().status(), 200);
    }
}
