//! Observes instances: a function receives each call with everything that crossed the border meanwhile, and
//! the guest's clocks are the observer's.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    CallError, Interception,
    imports::{clock, wasi::coarse},
    intercept::{Intercept, value},
    record::{Call, Ended, Import, ended},
};

/// What an observed instance needs of its owner.
pub trait Observe: Send + Sync + 'static {
    /// Returns the time that the guest's clocks show.
    fn now(&self) -> SystemTime;

    /// A call ended. The first one of an instance is its start, with the function `start`. Neither the call
    /// nor the instance has a number.
    fn called(&self, call: Call);
}

/// Observes one instance.
struct Observer<O> {
    to: Arc<O>,
    made: SystemTime,
    call: Mutex<Option<Call>>,
}

/// Returns the interception of instances that passes their calls to `to`.
#[must_use]
pub fn observe<O: Observe>(to: Arc<O>) -> Interception {
    Interception::new(move || Observer { to: to.clone(), made: to.now(), call: Mutex::default() })
}

// === impl Observer ===

impl<O: Observe> Observer<O> {
    fn end(&self, ended: Ended) {
        let call = self.call.lock().take();
        if let Some(call) = call {
            self.to.called(Call { ended, ..call });
        }
    }

    /// Returns the answer of a clock.
    fn clock(&self, function: &str) -> Option<Value> {
        let since = |then| self.to.now().duration_since(then).unwrap_or_default();
        match function {
            "clock.now" => Some(value(&clock::datetime(since(UNIX_EPOCH)))),
            "clock.elapsed-ms" => Some(json!(clock::whole_milliseconds(since(self.made)))),
            "wasi:clocks/wall-clock.now" => {
                let since = coarse::coarse(since(UNIX_EPOCH));
                Some(json!((since.as_secs(), since.subsec_nanos())))
            }
            "wasi:clocks/monotonic-clock.now" => Some(json!(coarse::monotonic(since(self.made)))),
            _ => None,
        }
    }
}

impl<O: Observe> Intercept for Observer<O> {
    fn call_begins(&self, function: &'static str, argument: Value) {
        // A call whose future was dropped had no end.
        self.end(Ended::Cancelled);
        let since = self.to.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        *self.call.lock() = Some(Call {
            number: 0,
            instance: 0,
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            function: function.to_owned(),
            argument,
            imports: Vec::new(),
            ended: Ended::Cancelled,
            lost_before: 0,
            cut: false,
        });
    }

    fn import_begins(&self, function: &'static str, arguments: Value) -> Option<Value> {
        if let Some(answer) = self.clock(function) {
            return Some(answer);
        }
        if let Some(call) = &mut *self.call.lock() {
            call.imports.push(Import { function: function.to_owned(), arguments, answer: None });
        }
        None
    }

    fn import_ends(&self, answer: Value) {
        if let Some(import) = self.call.lock().as_mut().and_then(|call| call.imports.last_mut()) {
            import.answer = Some(answer);
        }
    }

    fn call_ends(&self, answer: Result<Value, &CallError>) {
        self.end(ended(answer));
    }

    fn answer_is_invalid(&self, error: &serde_json::Error) -> ! {
        unreachable!("only clocks are answered: {error}")
    }

    fn answers(&self) -> bool {
        false
    }
}
