//! Collects the imports of the current call of one instance, and passes the call to the writer when it ends.
//! Contents of Secrets are passed at once.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use oarlock_record_format::file::{MAX_ENTRY, json_size};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    Call, Ended, Entry, Gone, Import, Recorder, Start, ended, now_ms,
    redaction::{SecretContent, Sources, Subject, is_write},
};
use crate::{CallError, intercept::Intercept};

/// The interceptor of one instance.
pub(super) struct CallLog {
    recorder: Recorder,
    generation: u64,
    instance: u64,
    sources: Arc<Sources>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The call in progress.
    call: Option<Call>,
    /// Its size as JSON, about: so much of [`Recorder::hold`] is its own.
    bytes: usize,
    /// The object of the call, if it is a Secret.
    subject: Option<Subject>,
    /// The import in progress, if its answer may have values of a Secret.
    reads: Option<(Import, Subject)>,
    /// Calls that were left out since the last one that was recorded.
    n_lost: u64,
    has_started: bool,
}

// === impl CallLog ===

impl CallLog {
    pub(super) fn new(recorder: Recorder, generation: u64, sources: Arc<Sources>) -> Self {
        let instance = recorder.shared.instances.fetch_add(1, Relaxed) + 1;
        Self { recorder, generation, instance, sources, state: Mutex::default() }
    }

    fn end(&self, ended: Ended) {
        let mut state = self.state.lock();
        let Some(call) = state.call.take() else { return };
        let (held, more) = (std::mem::take(&mut state.bytes), size(&ended));
        let is_start = !std::mem::replace(&mut state.has_started, true);
        let mut call = Call { ended, lost_before: state.n_lost, ..call };
        let entry = if is_start {
            let limits = call.argument.take();
            Entry::Start(Start { generation: self.generation, limits, call })
        } else {
            Entry::Call(call)
        };
        if self.recorder.send(entry, &self.sources, held, more) {
            state.n_lost = 0;
        } else {
            state.n_lost += 1;
        }
    }

    /// Holds a further part of a call. Returns false if the call, or all calls of the plugin, would be too
    /// large.
    fn hold(&self, bytes: &mut usize, more: usize) -> bool {
        let is_held = *bytes + more <= MAX_ENTRY / 2 && self.recorder.hold(more);
        *bytes += if is_held { more } else { 0 };
        is_held
    }

    /// Passes what an import writes to Secrets to the writer. Returns the import if its answer may have
    /// values of Secrets.
    fn learn(&self, import: &Import, subject: Option<&Subject>) -> Option<(Import, Subject)> {
        if !self.recorder.redacts() {
            return None;
        }
        let subject = self.sources.of_import(import, subject)?;
        if !is_write(import) {
            return Some((import.clone(), subject));
        }
        self.recorder.learn(SecretContent::Import(import.clone(), subject));
        None
    }
}

impl Intercept for CallLog {
    fn call_begins(&self, function: &'static str, argument: Value) {
        if !self.recorder.shared.goes_on() {
            // A record that has failed counts it as lost.
            self.recorder.shared.begun.fetch_add(1, Relaxed);
            return;
        }
        // A call whose future was dropped had no end.
        self.end(Ended::Cancelled);
        let mut state = self.state.lock();
        state.subject = self.sources.of_call(&argument);
        if let Some(subject) = state.subject.clone().filter(|_| self.recorder.redacts()) {
            self.recorder.learn(SecretContent::Argument(argument.clone(), subject));
        }
        let more = json_size(&argument) + 200;
        let mut call = Call {
            number: 0,
            instance: self.instance,
            time_ms: now_ms(),
            function: function.to_owned(),
            argument,
            imports: Vec::new(),
            ended: Ended::Cancelled,
            lost_before: 0,
            cut: false,
        };
        if !state.has_started {
            // The limits of the instance, without which nothing of it can be replayed.
            self.recorder.hold_always(more);
            state.bytes += more;
        } else if !self.hold(&mut state.bytes, more) {
            call.argument = Value::Null;
            call.cut = true;
        }
        self.recorder.shared.begun.fetch_add(1, Relaxed);
        state.call = Some(call);
    }

    fn import_begins(&self, function: &'static str, arguments: Value) -> Option<Value> {
        let mut state = self.state.lock();
        let State { call: Some(call), bytes, subject, reads, .. } = &mut *state else { return None };
        let more = json_size(&arguments) + 80;
        let import = Import { function: function.to_owned(), arguments, answer: None };
        *reads = self.learn(&import, subject.as_ref());
        call.cut = call.cut || !self.hold(bytes, more);
        if !call.cut {
            call.imports.push(import);
        }
        None
    }

    fn import_ends(&self, answer: Value) {
        let mut state = self.state.lock();
        let State { call: Some(call), bytes, reads, .. } = &mut *state else { return };
        if let Some((import, subject)) = reads.take() {
            let import = Import { answer: Some(answer.clone()), ..import };
            self.recorder.learn(SecretContent::Import(import, subject));
        }
        if call.cut {
            return;
        }
        if !self.hold(bytes, json_size(&answer)) {
            call.cut = true;
        } else if let Some(import) = call.imports.last_mut() {
            import.answer = Some(answer);
        }
    }

    fn call_ends(&self, answer: Result<Value, &CallError>) {
        self.end(ended(answer));
    }

    fn answer_is_invalid(&self, error: &serde_json::Error) -> ! {
        unreachable!("a record answers no import: {error}")
    }

    fn answers(&self) -> bool {
        false
    }
}

impl Drop for CallLog {
    fn drop(&mut self) {
        if !self.recorder.shared.goes_on() {
            self.recorder.release(self.state.get_mut().bytes);
            return;
        }
        self.end(Ended::Cancelled);
        let gone = Gone { instance: self.instance, lost_before: self.state.lock().n_lost };
        self.recorder.send(Entry::Gone(gone), &self.sources, 0, 0);
    }
}

fn size(ended: &Ended) -> usize {
    match ended {
        Ended::Answer(answer) => json_size(answer),
        Ended::Failed { message, .. } => message.len(),
        Ended::Cancelled => 0,
    }
}
