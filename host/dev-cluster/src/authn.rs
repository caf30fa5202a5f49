//! Who sent a request: bearer tokens, and nobody for requests without one.

use crate::status::{GroupResource, StatusError};
use crate::user::UserInfo;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::RwLock;
use rand::Rng;
use std::collections::HashMap;
use tokio::time::{Duration, Instant};

/// Whom tokens are for that are for this server.
pub(crate) const API_AUDIENCE: &str = "https://kubernetes.default.svc";

/// The tokens this server gave out. They live in memory and mean nothing to any other server.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    known: RwLock<HashMap<String, Known>>,
}

/// What a token says.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) user: UserInfo,
    pub(crate) expires: Option<Instant>,
    pub(crate) audiences: Vec<String>,
    /// The token means nothing any more once one of these has gone.
    pub(crate) bound_to: Vec<Bound>,
}

/// An object that a token lives and dies with.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) storage: GroupResource,
    pub(crate) key: String,
    pub(crate) uid: String,
}

/// Why a token does not say who sends it.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("invalid bearer token")]
    Unknown,
    #[error("token audiences {of_token:?} is invalid for the target audiences {wanted:?}")]
    Audience { of_token: Vec<String>, wanted: Vec<String> },
}

// === impl Known ===

impl Known {
    /// Returns what a token says that is for this server, for as long as the server lives or a while. One that is valid for
    /// longer than the clock counts is valid for ever.
    pub(crate) fn new(user: UserInfo, valid_for: Option<Duration>) -> Self {
        Self {
            user,
            expires: valid_for.and_then(|valid_for| Instant::now().checked_add(valid_for)),
            audiences: vec![API_AUDIENCE.into()],
            bound_to: Vec::new(),
        }
    }
}

// === impl Tokens ===

impl Tokens {
    /// Makes a new token.
    pub(crate) fn issue(&self, known: Known) -> String {
        let mut random = [0u8; 24];
        rand::rng().fill(&mut random);
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        self.accept(token.clone(), known);
        token
    }

    /// Takes a token that somebody else chose.
    pub(crate) fn accept(&self, token: String, known: Known) {
        self.known.write().insert(token, known);
    }

    /// Returns who the request says it is from; a wrong token is refused, a missing one is nobody's. `exists` says whether
    /// what a token is bound to is still there.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        exists: impl Fn(&Bound) -> bool,
    ) -> Result<UserInfo, StatusError> {
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Ok(UserInfo::anonymous());
        };
        let header = header.to_str().unwrap_or_default();
        let (scheme, token) = header.split_once(' ').unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(UserInfo::anonymous());
        }
        let found = self.review(token.trim(), &[API_AUDIENCE.into()], exists);
        found.map(|(user, _)| user).map_err(|_| StatusError::unauthorized())
    }

    /// Returns whose token it is, and for which of the wanted audiences.
    pub(crate) fn review(
        &self,
        token: &str,
        wanted: &[String],
        exists: impl Fn(&Bound) -> bool,
    ) -> Result<(UserInfo, Vec<String>), Refusal> {
        let known = self.known.read().get(token).cloned().ok_or(Refusal::Unknown)?;
        let expired = known.expires.is_some_and(|expires| expires <= Instant::now());
        if expired || !known.bound_to.iter().all(exists) {
            return Err(Refusal::Unknown);
        }
        let audiences: Vec<String> =
            wanted.iter().filter(|audience| known.audiences.contains(audience)).cloned().collect();
        if audiences.is_empty() {
            return Err(Refusal::Audience { of_token: known.audiences, wanted: wanted.to_vec() });
        }
        Ok((known.user, audiences))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokens_expire() {
        let tokens = Tokens::default();
        let user = UserInfo::service_account("a", "b");
        let token = tokens.issue(Known::new(user.clone(), Some(Duration::from_secs(600))));
        let mut headers = HeaderMap::new();
        let authenticate = |headers: &HeaderMap| tokens.authenticate(headers, |_| true);
        assert_eq!(authenticate(&headers), Ok(UserInfo::anonymous()));
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        assert_eq!(authenticate(&headers), Ok(user));
        tokio::time::advance(Duration::from_secs(601)).await;
        assert_eq!(authenticate(&headers), Err(StatusError::unauthorized()));
        headers.insert(AUTHORIZATION, "Bearer unknown".parse().unwrap());
        assert_eq!(authenticate(&headers), Err(StatusError::unauthorized()));
    }
}
