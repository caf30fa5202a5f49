//! Tokens: the token authentication of Docker's registry, and HTTP basic authentication.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use super::{Credentials, Place};
use crate::{
    error::{Error, Reason},
    http::{Http, Response, host, unexpected},
};

/// How long a token is valid that does not say it.
const DEFAULT_SECONDS: u64 = 60;
/// The longest time that a token is used.
const MAX_SECONDS: u64 = 3600;
/// The longest answer with a token.
const MAX_BYTES: usize = 64 << 10;

/// The value of the header `Authorization`, and until when it is used.
#[derive(Debug, Clone)]
pub(super) struct Token {
    value: HeaderValue,
    expires_at: Instant,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(alias = "access_token")]
    token: Option<String>,
    expires_in: Option<u64>,
}

// === impl Token ===

impl Token {
    fn new(text: &str, seconds: u64) -> Result<Self, Error> {
        let mut value = HeaderValue::from_str(text).map_err(|_| {
            Error::new(Reason::Unavailable, "the registry's token has characters that no header has")
        })?;
        value.set_sensitive(true);
        // Used for a little less than it is valid.
        let seconds = seconds.clamp(10, MAX_SECONDS);
        let expires_at = Instant::now() + Duration::from_secs(seconds - seconds / 10);
        Ok(Self { value, expires_at })
    }

    pub(super) fn value(&self) -> HeaderValue {
        self.value.clone()
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expires_at <= Instant::now()
    }
}

/// Returns the token that an answer with status 401 asks for; none if there are no credentials that it asks
/// for.
pub(super) async fn get(
    http: &Http,
    place: &Place,
    response: &Response,
    actions: &str,
) -> Result<Option<Token>, Error> {
    let Some(challenge) = response.header(header::WWW_AUTHENTICATE) else { return Ok(None) };
    let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
    let credentials = place.credentials.as_ref();
    if scheme.eq_ignore_ascii_case("basic") {
        return credentials.map(|it| Token::new(&it.basic(), MAX_SECONDS)).transpose();
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let parameters = parse(parameters);
    let realm = parameters.get("realm").and_then(|it| Url::parse(it).ok());
    let Some(mut realm) = realm else {
        let message = format!("{} asks for a token, and does not say where to get it", place.host());
        return Err(Error::new(Reason::Unavailable, message)
            .hint("check the registry or server; the host tries again"));
    };
    let scope = format!("repository:{}:{actions}", place.repository);
    let service = parameters.get("service").map(String::as_str).unwrap_or_default();
    let mut headers = HeaderMap::new();
    let (method, body) = match credentials {
        Some(Credentials { identity_token: Some(token), .. }) => {
            let form = form_urlencoded::Serializer::new(String::new())
                .append_pair("grant_type", "refresh_token")
                .append_pair("service", service)
                .append_pair("scope", &scope)
                .append_pair("client_id", "oarlock")
                .append_pair("refresh_token", token)
                .finish();
            let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(header::CONTENT_TYPE, form_type);
            (Method::POST, Bytes::from(form))
        }
        _ => {
            realm.query_pairs_mut().append_pair("service", service).append_pair("scope", &scope);
            if let Some(credentials) = credentials {
                headers.insert(header::AUTHORIZATION, Token::new(&credentials.basic(), 10)?.value());
            }
            (Method::GET, Bytes::new())
        }
    };
    let realm_host = host(&realm);
    let mut answer = http.send(method, realm, headers, body).await?;
    if answer.status != StatusCode::OK {
        return Err(unexpected(
            &realm_host,
            answer.status,
            &format!("the token for {}/{}", place.host(), place.repository),
        ));
    }
    // The error of the parser may quote the token.
    let parsed = serde_json::from_slice::<Answer>(&answer.bytes(MAX_BYTES).await?).ok();
    let Some(Answer { token: Some(token), expires_in }) = parsed else {
        return Err(Error::new(Reason::Unavailable, format!("{realm_host} does not answer with a token"))
            .hint("check the registry or server; the host tries again"));
    };
    Token::new(&format!("Bearer {token}"), expires_in.unwrap_or(DEFAULT_SECONDS)).map(Some)
}

/// Parses `realm="…",service="…"`.
fn parse(mut text: &str) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    while let Some((name, rest)) = text.split_once('=') {
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        parameters.insert(name, value.to_owned());
        text = rest;
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_challenge_are_read() {
        let parameters =
            parse(r#"realm="https://a.io/token?x=1,2",service="a.io", scope="repository:b:pull,push", x=y"#);
        assert_eq!(parameters["realm"], "https://a.io/token?x=1,2");
        assert_eq!(parameters["service"], "a.io");
        assert_eq!(parameters["scope"], "repository:b:pull,push");
        assert_eq!(parameters["x"], "y");
        for text in ["", "=", "realm", "realm=\"", "====", "\"\"\""] {
            parse(text);
        }
    }
}
