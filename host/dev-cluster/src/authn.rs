//! Authenticates requests by bearer token. A request without a token is anonymous.

use crate::status::{GroupResource, StatusError};
use crate::user::UserInfo;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::RwLock;
use rand::Rng;
use std::collections::HashMap;
use tokio::time::{Duration, Instant};

/// The audience of tokens for this API server.
pub(crate) const API_AUDIENCE: &str = "https://kubernetes.default.svc";

/// The tokens that this server issued. They live in memory; no other server accepts them.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    identities: RwLock<HashMap<String, TokenIdentity>>,
}

/// The identity behind a token.
#[derive(Clone, Debug)]
pub(crate) struct TokenIdentity {
    pub(crate) user: UserInfo,
    pub(crate) expires: Option<Instant>,
    pub(crate) audiences: Vec<String>,
    /// The token is invalid once one of these objects is deleted.
    pub(crate) bound_to: Vec<BoundObject>,
}

/// An object that a token is bound to.
#[derive(Clone, Debug)]
pub(crate) struct BoundObject {
    pub(crate) storage: GroupResource,
    pub(crate) key: String,
    pub(crate) uid: String,
}

/// The reason why a token does not authenticate.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("invalid bearer token")]
    Unknown,
    #[error("token audiences {of_token:?} is invalid for the target audiences {wanted:?}")]
    Audience { of_token: Vec<String>, wanted: Vec<String> },
}

// === impl TokenIdentity ===

impl TokenIdentity {
    /// Returns the identity behind a token for this server's audience. The token expires after `valid_for`,
    /// or never without one or if that time is beyond the clock's range.
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
    /// Issues a new token.
    pub(crate) fn issue(&self, identity: TokenIdentity) -> String {
        let mut random = [0u8; 24];
        rand::rng().fill(&mut random);
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        self.accept(token.clone(), identity);
        token
    }

    /// Accepts a token that the caller chose.
    pub(crate) fn accept(&self, token: String, identity: TokenIdentity) {
        self.identities.write().insert(token, identity);
    }

    /// Returns the user who sent the request: 401 for an unknown token, the anonymous user without a token.
    /// `exists` returns whether the object that a token is bound to still exists.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        exists: impl Fn(&BoundObject) -> bool,
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

    /// Returns the user behind a token, and those of the wanted audiences that the token is for.
    pub(crate) fn review(
        &self,
        token: &str,
        wanted: &[String],
        exists: impl Fn(&BoundObject) -> bool,
    ) -> Result<(UserInfo, Vec<String>), Refusal> {
        let identity = self.identities.read().get(token).cloned().ok_or(Refusal::Unknown)?;
        let expired = identity.expires.is_some_and(|expires| expires <= Instant::now());
        if expired || !identity.bound_to.iter().all(exists) {
            return Err(Refusal::Unknown);
        }
        let audiences: Vec<String> =
            wanted.iter().filter(|audience| identity.audiences.contains(audience)).cloned().collect();
        if audiences.is_empty() {
            return Err(Refusal::Audience { of_token: identity.audiences, wanted: wanted.to_vec() });
        }
        Ok((identity.user, audiences))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokens_expire() {
        let tokens = Tokens::default();
        let user = UserInfo::service_account("a", "b");
        let token = tokens.issue(TokenIdentity::new(user.clone(), Some(Duration::from_secs(600))));
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
