//! The faults that spoil the body of an answer on its way.

use crate::faults::Action;
use crate::respond::{Body, BrokenOff};
use bytes::Bytes;
use http::Response;
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{Duration, sleep};

/// How long the pieces of a slow body are.
const SLOW_PIECE: usize = 256;
/// How long what was written is given to leave before the connection breaks.
const FLUSH: Duration = Duration::from_millis(20);

struct Faulty {
    body: Body,
    rest: Bytes,
    pause: Option<Duration>,
    /// So many bytes may still go out.
    left: Option<usize>,
    garbage: Option<Bytes>,
}

/// Returns the response with what the faults say done to its body.
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
    async fn next(&mut self) -> Option<Result<Bytes, BrokenOff>> {
        if self.left == Some(0) {
            self.left = None;
            // What went before is to arrive.
            sleep(FLUSH).await;
            return Some(Err(BrokenOff));
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
