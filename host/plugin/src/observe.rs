//! Observes instances: a function receives each call with everything that crossed the border meanwhile. The
//! guest's clocks are the observer's, and its random numbers are the same in every run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use rand::{Rng, RngCore, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::{
    CallError, Interception,
    imports::{
        clock,
        wasi::{MAX_RANDOM_BYTES, coarse},
    },
    intercept::{Intercept, hex, value},
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
    random: Mutex<StdRng>,
    call: Mutex<Option<Call>>,
}

/// Returns the interception of instances that passes their calls to `to`. The first instance gets the same
/// random numbers in every run, and so does each one after it.
#[must_use]
pub fn observe<O: Observe>(to: Arc<O>) -> Interception {
    let instances = AtomicU64::new(0);
    Interception::new(move || Observer {
        to: to.clone(),
        made: to.now(),
        random: Mutex::new(StdRng::seed_from_u64(instances.fetch_add(1, Ordering::Relaxed))),
        call: Mutex::default(),
    })
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

impl<O> Observer<O> {
    /// Returns the answer of a source of random numbers. The host refuses what is too long.
    fn random(&self, function: &str, arguments: &Value) -> Option<Value> {
        let mut random = self.random.lock();
        match function {
            "wasi:random/random.get-random-bytes" | "wasi:random/insecure.get-insecure-random-bytes" => {
                let length = arguments["len"].as_u64().filter(|it| *it <= MAX_RANDOM_BYTES)?;
                let mut bytes = vec![0; usize::try_from(length).ok()?];
                random.fill_bytes(&mut bytes);
                Some(json!(hex(&bytes)))
            }
            "wasi:random/random.get-random-u64" | "wasi:random/insecure.get-insecure-random-u64" => {
                Some(json!(random.next_u64()))
            }
            "wasi:random/insecure-seed.insecure-seed" => Some(json!(random.random::<(u64, u64)>())),
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
        if let Some(answer) = self.clock(function).or_else(|| self.random(function, &arguments)) {
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
        unreachable!("only clocks and random numbers are answered: {error}")
    }

    fn answers(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Observe for Nothing {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH
        }

        fn called(&self, _: Call) {}
    }

    #[test]
    fn each_instance_gets_the_same_random_numbers_in_every_run() {
        let run = || {
            let interception = observe(Arc::new(Nothing));
            [interception.interceptor(), interception.interceptor()].map(|instance| {
                [
                    ("wasi:random/random.get-random-u64", json!({})),
                    ("wasi:random/random.get-random-bytes", json!({"len": 16})),
                    ("wasi:random/insecure.get-insecure-random-bytes", json!({"len": 0})),
                    ("wasi:random/insecure-seed.insecure-seed", json!({})),
                ]
                .map(|(function, arguments)| instance.import_begins(function, arguments).expect("an answer"))
            })
        };
        let [first, second] = run();
        assert_eq!([first.clone(), second.clone()], run());
        assert_ne!(first, second);
        assert_eq!((first[1].as_str().map(str::len), &first[2]), (Some(32), &json!("")), "two digits a byte");
    }

    #[test]
    fn the_host_refuses_random_bytes_that_are_too_many() {
        let instance = observe(Arc::new(Nothing)).interceptor();
        let arguments = json!({"len": MAX_RANDOM_BYTES + 1});
        assert_eq!(instance.import_begins("wasi:random/random.get-random-bytes", arguments), None);
    }
}
