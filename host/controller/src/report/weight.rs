//! How much memory a line takes while it waits for the printer.

use std::io::{self, Write};

use super::{HostEvent, Line};

/// What a line takes beside its texts: itself, and its place in the channel.
const LINE: usize = size_of::<Line>() + 64;

/// What a pair takes beside its texts.
const PAIR: usize = size_of::<(String, String)>();

/// Counts what is written.
struct Count(usize);

/// Returns about how many bytes an event takes, no less than its texts.
pub(super) fn of(event: &HostEvent) -> usize {
    LINE + match event {
        // What comes with each call of a plugin is summed up, all else is rare.
        HostEvent::GuestLog { level: _, message, pairs } => {
            let pairs = pairs.0.iter().map(|(name, value)| PAIR + name.capacity() + value.capacity());
            message.capacity() + pairs.sum::<usize>()
        }
        HostEvent::Delivered { subscription, namespace, name, resource_version, .. } => {
            subscription.len() + namespace.len() + name.len() + resource_version.len() + outcome(event)
        }
        HostEvent::Reconciled { kind, namespace, name, .. } => {
            kind.len() + namespace.len() + name.len() + outcome(event)
        }
        other => {
            let mut count = Count(0);
            // Counting does not fail, and events can be serialised.
            let _ = serde_json::to_writer(&mut count, other);
            count.0
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
