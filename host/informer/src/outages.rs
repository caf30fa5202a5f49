//! Notices when an outage of an API server begins and ends, so that reflectors end their back-off early
//! (RL-75).

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use tokio::sync::watch;

/// Whether an API server has an outage, as its client sees it. Clones share the state.
///
/// An outage begins when a request has no answer, or is answered with 401, since the client's token is then
/// wrong. It ends with the next answer of a server that works: any but 401, 403, 429 and those of 500 and
/// above. A server that starts answers with 403 before it knows the roles.
#[derive(Clone)]
pub struct Outages {
    is_out: Arc<watch::Sender<bool>>,
}

// === impl Outages ===

impl Outages {
    /// Notes the status of an answer; `None` if no answer arrived.
    pub fn answered(&self, status: Option<StatusCode>) {
        let is_out = match status {
            None | Some(StatusCode::UNAUTHORIZED) => true,
            Some(StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) => return,
            Some(status) if status.is_server_error() => return,
            Some(_) => false,
        };
        self.is_out.send_if_modified(|was_out| std::mem::replace(was_out, is_out) != is_out);
    }

    /// Returns whether there is an outage.
    pub(crate) fn is_out(&self) -> bool {
        *self.is_out.borrow()
    }

    /// Waits until there is no outage.
    pub(crate) async fn ended(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.is_out.subscribe().wait_for(|is_out| !is_out).await;
    }
}

impl Default for Outages {
    fn default() -> Self {
        Self { is_out: Arc::new(watch::channel(false).0) }
    }
}

impl fmt::Debug for Outages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outages").field("is_out", &self.is_out()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_ends_with_the_answer_of_a_server_that_works_rl_75() {
        let outages = Outages::default();
        let answered = |status: u16| {
            outages.answered((status > 0).then(|| StatusCode::from_u16(status).unwrap()));
            outages.is_out()
        };
        assert_eq!([200, 404, 500].map(answered), [false; 3]);
        assert_eq!([0, 503, 429, 403, 200, 401].map(answered), [true, true, true, true, false, true]);
        assert_eq!([500, 410, 403].map(answered), [true, false, false]);
    }
}
