//! Faults as text, for a flag: `ACTION[,KEY=VALUE]…`.
//!
//! - Actions: `close-watch`, `half-open-watch`, `slow-body`, `cut-body`, `garbage`, `repeat-events`,
//!   `swallow-event`, `410`, `429`, `500`, `401`.
//! - Keys that select requests: `resource`, `verb` (several joined with `+`), `namespace`, `agent`, `skip`,
//!   `times`.
//! - Keys of actions: `after` (events, or bytes for cut-body), `event`, `pause` (milliseconds), `retry-after`
//!   (seconds).

use super::{Action, Fault, Match};
use std::collections::BTreeMap;
use std::str::FromStr;
use tokio::time::Duration;

const ACTIONS: &str = "close-watch, half-open-watch, slow-body, cut-body, garbage, repeat-events, swallow-event, 410, \
                       429, 500, 401";

/// The reason why a text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("unknown fault `{0}`; the faults are {ACTIONS}")]
    UnknownAction(String),
    #[error("`{0}` is not of the form KEY=VALUE")]
    NotAPair(String),
    #[error("the fault `{action}` has no key `{key}`")]
    UnknownKey { action: String, key: String },
    #[error("`{key}` must be a number, not `{value}`")]
    NotANumber { key: String, value: String },
}

impl FromStr for Fault {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let mut pairs = BTreeMap::new();
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| ParseError::NotAPair(part.to_owned()))?;
            pairs.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        let mut keys = Keys(pairs);
        let on_watch =
            matches!(name, "close-watch" | "half-open-watch" | "repeat-events" | "swallow-event" | "garbage");
        let action = match name {
            "close-watch" => Action::CloseWatch { after_events: keys.number("after", 0)? },
            "half-open-watch" => Action::HalfOpenWatch { after_events: keys.number("after", 0)? },
            "slow-body" => Action::SlowBody { pause: Duration::from_millis(keys.number("pause", 100)?) },
            "cut-body" => Action::CutBody { after_bytes: keys.number("after", 100)? },
            "garbage" => Action::Garbage { after_events: keys.number("after", 0)? },
            "repeat-events" => Action::RepeatEvents,
            "swallow-event" => Action::SwallowEvent { event: keys.number("event", 0)? },
            "410" => Action::Expired,
            "429" => Action::TooManyRequests { retry_after_seconds: keys.number("retry-after", 1)? },
            "500" => Action::InternalError,
            "401" => Action::RefuseLogin,
            other => return Err(ParseError::UnknownAction(other.to_owned())),
        };
        let verbs = match keys.text("verb") {
            Some(verbs) => verbs.split('+').map(str::to_owned).collect(),
            None if on_watch => vec!["watch".to_owned()],
            None => Vec::new(),
        };
        let fault = Self {
            on: Match {
                resource: keys.text("resource"),
                verbs,
                namespace: keys.text("namespace"),
                user_agent: keys.text("agent"),
            },
            action,
            skip: keys.number("skip", 0)?,
            times: keys.optional_number("times")?,
        };
        match keys.0.into_keys().next() {
            Some(key) => Err(ParseError::UnknownKey { action: name.to_owned(), key }),
            None => Ok(fault),
        }
    }
}

/// The pairs that were not read yet.
struct Keys(BTreeMap<String, String>);

impl Keys {
    fn text(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }

    fn number<N: FromStr>(&mut self, key: &str, default: N) -> Result<N, ParseError> {
        Ok(self.optional_number(key)?.unwrap_or(default))
    }

    fn optional_number<N: FromStr>(&mut self, key: &str) -> Result<Option<N>, ParseError> {
        match self.text(key) {
            None => Ok(None),
            Some(value) => match value.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(ParseError::NotANumber { key: key.to_owned(), value }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_parsed_from_text() {
        let fault: Fault = "close-watch,resource=pods,agent=oarlock,after=10,times=3".parse().unwrap();
        assert_eq!(fault.action, Action::CloseWatch { after_events: 10 });
        assert_eq!(fault.on.verbs, ["watch"]);
        assert_eq!(fault.on.user_agent.as_deref(), Some("oarlock"));
        assert_eq!((fault.skip, fault.times), (0, Some(3)));
        let fault: Fault = "429,verb=list+watch,retry-after=2".parse().unwrap();
        assert_eq!(fault.action, Action::TooManyRequests { retry_after_seconds: 2 });
        assert_eq!(fault.on.verbs, ["list", "watch"]);
    }

    #[test]
    fn the_error_of_a_wrong_text_names_the_problem() {
        let error_of = |text: &str| text.parse::<Fault>().unwrap_err().to_string();
        assert!(error_of("explode").starts_with("unknown fault `explode`; the faults are close-watch, "));
        assert_eq!(error_of("410,resource"), "`resource` is not of the form KEY=VALUE");
        assert_eq!(error_of("410,after=3"), "the fault `410` has no key `after`");
        assert_eq!(error_of("429,times=x"), "`times` must be a number, not `x`");
    }
}
