//! Resolves the names of API servers.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

/// Resolves a name with the system's resolver, in a task of its own.
///
/// The system's resolver blocks, so it takes a thread. If the caller started that thread, it would inherit
/// the caller's priority, and a plugin's request may come from a thread of a low one. A task runs on a worker
/// of the runtime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolver;

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolve = async move {
            // The connector sets the port.
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(addresses.collect::<Vec<_>>().into_iter())
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "ends with the answer of the resolver, which holds nothing"
        )]
        let resolved = tokio::spawn(resolve);
        resolved.map(|ended| ended.map_err(io::Error::other)?).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolve(name: &str) -> io::Result<Vec<SocketAddr>> {
        Ok(Resolver.call(name.parse().unwrap()).await?.collect())
    }

    #[tokio::test]
    async fn names_are_resolved_and_unknown_ones_are_errors() {
        let found = resolve("localhost").await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback()) && !found.is_empty(), "{found:?}");
        assert!(resolve("no-such-host.invalid").await.is_err());
    }
}
