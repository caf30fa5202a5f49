//! The memory that a line takes in the channel.

use std::io::{self, Write};

use super::{HostEvent, Line};

/// The bytes of a line without its texts: the line itself, and its entry in the channel.
const LINE: usize = size_of::<Line>() + 64;

/// The bytes of a pair without its texts.
const PAIR: usize = size_of::<(String, String)>();

/// A writer that only counts bytes.
struct Count(usize);

/// Returns about how many bytes an event takes, at least those of its texts.
pub(super) fn of(event: &HostEvent) -> usize {
    LINE + match event {
        // Events that come with each call of a plugin are added up by hand, which is fast. All others are
        // rare.
        HostEvent::GuestLog { level: _, object, message, pairs } => {
            let pairs = pairs.0.iter().map(|(name, value)| PAIR + name.capacity() + value.capacity());
            let object = object.as_ref().map_or(0, String::capacity);
            object + message.capacity() + pairs.sum::<usize>()
        }
        HostEvent::Delivered { subscription, namespace, name, resource_version, .. } => {
            subscription.len() + namespace.len() + name.len() + resource_version.len() + outcome(event)
        }
        HostEvent::Reconciled { kind, namespace, name, .. } => {
            kind.len() + namespace.len() + name.len() + outcome(event)
        }
        other => {
            let mut count = Count(0);
            // Neither counting nor serialising an event can fail.
            let _ = serde_json::to_writer(&mut count, other);
            count.0 + other.hint().map_or(0, str::len)
        }
    }
}

fn outcome(event: &HostEvent) -> usize {
    use super::CallOutcome;
    match event {
        HostEvent::Delivered { outcome, .. } | HostEvent::Reconciled { outcome, .. } => match outcome {
            CallOutcome::Done => 0,
            CallOutcome::Retry { message, .. } | CallOutcome::Parked { message } => message.capacity(),
        },
        _ => 0,
    }
}

// === impl Count ===

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
