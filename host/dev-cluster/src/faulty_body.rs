//! Faults that change the body of a response while it is sent.

use crate::faults::Action;
use crate::respond::{Body, BodyCut};
use bytes::Bytes;
use http::Response;
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{Duration, sleep};

/// The length of the pieces of a slow body.
const SLOW_PIECE: usize = 256;
/// The time for written bytes to leave the socket before the connection breaks.
const FLUSH: Duration = Duration::from_millis(20);

struct Faulty {
    body: Body,
    rest: Bytes,
    pause: Option<Duration>,
    /// The number of bytes that may still be sent.
    left: Option<usize>,
    garbage: Option<Bytes>,
}

/// Returns the response with the faults applied to its body.
pub(crate) fn apply(response: Response<Body>, faults: &[Action]) -> Response<Body> {
    let pause = faults.iter().find_map(|fault| match fault {
        Action::SlowBody { pause } => Some(*pause),
        _ => None,
    });
    let left = faults.iter().find_map(|fault| match fault {
        Action::CutBody { after_bytes } => Some(*after_bytes),
        _ => None,
    });
    let is_garbage = faults.iter().any(|fault| matches!(fault, Action::Garbage { after_events: 0 }));
    if pause.is_none() && left.is_none() && !is_garbage {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let garbage = is_garbage.then(|| Bytes::from_static(b"{\"kind\":\"\x01garbage\n"));
    let faulty = Faulty { body, rest: Bytes::new(), pause, left, garbage };
    let frames = futures::stream::unfold(faulty, |mut faulty| async move {
        let piece = faulty.next().await?;
        Some((piece.map(Frame::data), faulty))
    });
    Response::from_parts(parts, StreamBody::new(frames).boxed_unsync())
}

// === impl Faulty ===

impl Faulty {
    async fn next(&mut self) -> Option<Result<Bytes, BodyCut>> {
        if self.left == Some(0) {
            self.left = None;
            // The bytes before the break must arrive.
            sleep(FLUSH).await;
            return Some(Err(BodyCut));
        }
        if let Some(garbage) = self.garbage.take() {
            self.rest = garbage;
        }
        while self.rest.is_empty() {
            match self.body.frame().await? {
                Ok(frame) => self.rest = frame.into_data().unwrap_or_default(),
                Err(error) => return Some(Err(error)),
            }
        }
        let mut length = self.rest.len();
        if let Some(pause) = self.pause {
            sleep(pause).await;
            length = length.min(SLOW_PIECE);
        }
        if let Some(left) = &mut self.left {
            length = length.min(*left);
            *left -= length;
        }
        Some(Ok(self.rest.split_to(length)))
    }
}
