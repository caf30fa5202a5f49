//! Answers the imports of one call from the record, and compares their order and arguments.

use std::{collections::VecDeque, panic};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Difference, MOST_DIFFERENCES, Options, compare};
use crate::{
    CallError,
    intercept::Intercept,
    record::{Call, Ended, Import},
};

/// Replays the calls of one instance, one after the other.
#[derive(Default)]
pub(super) struct CallReplay {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    call: Option<Call>,
    imports: VecDeque<Import>,
    /// The number of recorded imports that are passed.
    n_passed: usize,
    ignored: Vec<String>,
    keep_going: bool,
    outcome: Outcome,
}

/// The result of one call.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) differences: Vec<Difference>,
    /// The first recorded import that the guest did not call before the call ended.
    pub(super) missing: Option<Difference>,
    pub(super) n_imports: u64,
    /// Why the call did not run to its end.
    pub(super) stop: Option<Stop>,
    /// The import whose answer cannot be read, and why.
    pub(super) other_contract: Option<(String, String)>,
}

/// Why a call does not run to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The record has no answer, since the call ended there.
    RecordEnds,
    /// A difference after which nothing can be compared, or the first one.
    Differs,
    /// A recorded answer has another type.
    OtherContract,
}

// === impl CallReplay ===

impl CallReplay {
    /// Prepares the next call.
    pub(super) fn expect(&self, call: &Call, options: &Options) {
        let Options { until, keep_going, ignore, of: _ } = options;
        let imports = call.imports.iter().filter(|import| !is_ignored(&import.function, ignore));
        *self.state.lock() = State {
            call: Some(call.without_content()),
            imports: imports.cloned().collect(),
            n_passed: 0,
            ignored: ignore.clone(),
            keep_going: *keep_going || until.is_some(),
            outcome: Outcome::default(),
        };
    }

    /// Returns the result of the call. Recorded imports that the guest did not call are a difference.
    pub(super) fn finish(&self) -> Outcome {
        let mut state = self.state.lock();
        if state.outcome.stop.is_none()
            && let Some(import) = state.imports.front().cloned()
        {
            let (recorded, actual) = (show(&import), "the call ended".to_owned());
            state.outcome.missing = state.difference("import".to_owned(), recorded, actual, false);
        }
        std::mem::take(&mut state.outcome)
    }
}

fn is_ignored(function: &str, ignored: &[String]) -> bool {
    ignored.iter().any(|it| function.split_once('.').is_some_and(|(interface, _)| interface == it))
}

fn show(import: &Import) -> String {
    compare::shorten(&format!("{} {}", import.function, import.arguments))
}

impl Intercept for CallReplay {
    fn call_begins(&self, _: &'static str, _: Value) {}

    fn import_begins(&self, function: &'static str, arguments: Value) -> Option<Value> {
        let mut state = self.state.lock();
        if is_ignored(function, &state.ignored) {
            return Some(any_answer(function));
        }
        let next = state.imports.pop_front();
        let Some(next) = next else {
            let ended_there = match &state.call {
                Some(call) => !matches!(call.ended, Ended::Answer(_)),
                None => false,
            };
            if !ended_there {
                let actual = compare::shorten(&format!("{function} {arguments}"));
                state.differs("import".to_owned(), "no further import".to_owned(), actual, false);
            }
            state.stop(if ended_there { Stop::RecordEnds } else { Stop::Differs });
            drop(state);
            unwind();
        };
        state.n_passed += 1;
        state.outcome.n_imports += 1;
        let mut goes_on = true;
        if next.function != function {
            let actual = compare::shorten(&format!("{function} {arguments}"));
            state.differs("import".to_owned(), show(&next), actual, false);
            goes_on = false;
        } else if let Some((at, recorded, actual)) = compare::values(&next.arguments, &arguments) {
            goes_on = state.keep_going;
            state.differs(format!("{function} {at}"), recorded, actual, true);
        }
        if !goes_on {
            state.stop(Stop::Differs);
        } else if next.answer.is_none() {
            state.stop(Stop::RecordEnds);
        } else {
            return next.answer;
        }
        drop(state);
        unwind();
    }

    fn import_ends(&self, _: Value) {}

    fn call_ends(&self, _: Result<Value, &CallError>) {}

    fn answer_is_invalid(&self, error: &serde_json::Error) -> ! {
        let mut state = self.state.lock();
        let n = state.n_passed;
        state.outcome.other_contract = Some((format!("import {n}"), error.to_string()));
        state.stop(Stop::OtherContract);
        drop(state);
        unwind();
    }

    fn answers(&self) -> bool {
        true
    }
}

/// Ends the call. The caller of the guest catches it; the guest cannot.
fn unwind() -> ! {
    // Not `panic!`, which would print a message.
    panic::resume_unwind(Box::new("the replay stops here"))
}

/// Returns the answer of an import that is not compared.
fn any_answer(function: &str) -> Value {
    match function {
        "log.log" => Value::Null,
        "log.enabled" => Value::Bool(true),
        _ => json!({ "Ok": null }),
    }
}

// === impl State ===

impl State {
    fn differs(&mut self, at: String, recorded: String, actual: String, comparable: bool) {
        if self.outcome.differences.len() < MOST_DIFFERENCES {
            let difference = self.difference(at, recorded, actual, comparable);
            self.outcome.differences.extend(difference);
        }
    }

    fn difference(
        &self,
        at: String,
        recorded: String,
        actual: String,
        comparable: bool,
    ) -> Option<Difference> {
        let call = self.call.as_ref()?;
        let import = Some(self.n_passed.max(1));
        Some(Difference { import, at, recorded, actual, comparable, ..Difference::of(call) })
    }

    fn stop(&mut self, stop: Stop) {
        self.outcome.stop = Some(stop);
    }
}
