//! How a call ended, for its entry.

use oarlock_record_format::entry::{Ended, Kind};
use serde_json::Value;

use crate::CallError;

/// Returns the end of a call with this answer.
pub(crate) fn ended(answer: Result<Value, &CallError>) -> Ended {
    match answer {
        Ok(answer) => Ended::Answer(answer),
        Err(error) => Ended::Failed { kind: kind(error), message: error.in_full() },
    }
}

fn kind(error: &CallError) -> Kind {
    match error {
        CallError::Trap { .. } => Kind::Trap,
        CallError::Exit { .. } => Kind::Exit,
        CallError::DeadlineExceeded { .. } => Kind::DeadlineExceeded,
        CallError::MemoryLimit { .. } => Kind::MemoryLimit,
        CallError::TableLimit { .. } => Kind::TableLimit,
        CallError::InvalidData { .. } => Kind::InvalidData,
        CallError::NotExported { .. } => Kind::NotExported,
        CallError::Dead => Kind::Dead,
        CallError::Mismatch { .. } => Kind::Mismatch,
        CallError::HostPanicked { .. } => Kind::HostPanicked,
        CallError::CannotStart { .. } => Kind::CannotStart,
    }
}
