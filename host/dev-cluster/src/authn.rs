//! Who sent a request: bearer tokens, and nobody for requests without one.

use crate::status::StatusError;
use crate::user::UserInfo;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::RwLock;
use rand::Rng;
use std::collections::HashMap;
use tokio::time::{Duration, Instant};

/// The tokens this server gave out. They live in memory and mean nothing to any other server.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    known: RwLock<HashMap<String, Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    user: UserInfo,
    expires: Option<Instant>,
}

// === impl Tokens ===

impl Tokens {
    /// Makes a new token for a user, valid for a while or for as long as the server lives.
    pub(crate) fn issue(&self, user: UserInfo, valid_for: Option<Duration>) -> String {
        let mut random = [0u8; 24];
        rand::rng().fill(&mut random);
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        self.accept(token.clone(), user, valid_for);
        token
    }

    /// Takes a token that somebody else chose. One that is valid for longer than the clock counts is valid for ever.
    pub(crate) fn accept(&self, token: String, user: UserInfo, valid_for: Option<Duration>) {
        let known =
            Known { user, expires: valid_for.and_then(|valid_for| Instant::now().checked_add(valid_for)) };
        self.known.write().insert(token, known);
    }

    /// Returns who the request says it is from; a wrong token is refused, a missing one is nobody's.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<UserInfo, StatusError> {
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Ok(UserInfo::anonymous());
        };
        let header = header.to_str().unwrap_or_default();
        let (scheme, token) = header.split_once(' ').unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(UserInfo::anonymous());
        }
        let known = self.known.read();
        let known = known.get(token.trim()).ok_or_else(StatusError::unauthorized)?;
        if known.expires.is_some_and(|expires| expires <= Instant::now()) {
            return Err(StatusError::unauthorized());
        }
        Ok(known.user.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokens_expire() {
        let tokens = Tokens::default();
        let user = UserInfo::service_account("a", "b");
        let token = tokens.issue(user.clone(), Some(Duration::from_secs(600)));
        let mut headers = HeaderMap::new();
        assert_eq!(tokens.authenticate(&headers), Ok(UserInfo::anonymous()));
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        assert_eq!(tokens.authenticate(&headers), Ok(user));
        tokio::time::advance(Duration::from_secs(601)).await;
        assert_eq!(tokens.authenticate(&headers), Err(StatusError::unauthorized()));
        headers.insert(AUTHORIZATION, "Bearer unknown".parse().unwrap());
        assert_eq!(tokens.authenticate(&headers), Err(StatusError::unauthorized()));
    }
}
