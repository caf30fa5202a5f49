//! Shows every call of an instance, and every import of the guest, to an [`Intercept`]: a record, or a replay
//! that answers the imports itself.
//!
//! Only an instance with an interceptor is linked to these functions. They call those of [`crate::imports`],
//! so all checks of arguments stay there. The empty WASI is intercepted where its answers differ from run to
//! run: clocks and random numbers.

mod contract;
mod wasi;

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use wasmtime::component::{HasData, InstancePre, Linker};

pub(crate) use self::wasi::hex;
use crate::{CallError, Component, bindings, imports, state::StoreState};

/// Sees the calls and imports of one instance, in order. An instance runs one call at a time, and a guest
/// waits for one import at a time.
pub(crate) trait Intercept: Send + Sync + 'static {
    /// A call of an export begins. The first one is the start of the instance.
    fn call_begins(&self, function: &'static str, arguments: Value);

    /// The guest calls an import. With `Some`, that is the answer, and the host is not asked. May unwind, to
    /// end the call.
    fn import_begins(&self, function: &'static str, arguments: Value) -> Option<Value>;

    /// The host answered the import that began last.
    fn import_ends(&self, answer: Value);

    /// The call ended: with the guest's answer, or without.
    fn call_ends(&self, answer: Result<Value, &CallError>);

    /// The answer cannot be read as the contract's type. Ends the call.
    fn answer_is_invalid(&self, error: &serde_json::Error) -> !;

    /// Returns whether it answers imports itself, so that no time passes.
    fn answers(&self) -> bool;
}

/// The imports of an instance that has an interceptor.
pub(crate) struct Intercepted<'a> {
    state: &'a mut StoreState,
}

/// How the instances of one generation are intercepted. Cheap to clone.
#[derive(Clone)]
pub struct Interception {
    make: Arc<dyn Fn() -> Arc<dyn Intercept> + Send + Sync>,
}

struct Border;

/// Links a component's imports for an instance with an interceptor.
pub(crate) fn link(component: &Component) -> wasmtime::Result<InstancePre<StoreState>> {
    let linker = component.engine().intercepted(component.imports_wasi())?;
    linker.instantiate_pre(component.exports().pre.component())
}

/// Shows the begin of a call to the interceptor, if there is one.
pub(crate) fn call_begins<T: Serialize>(state: &StoreState, function: &'static str, argument: &T) {
    if let Some(interceptor) = &state.interceptor {
        interceptor.call_begins(function, value(argument));
    }
}

/// Shows the end of a call to the interceptor, if there is one.
pub(crate) fn call_ends<T: Serialize>(state: &StoreState, answer: Result<&T, &CallError>) {
    if let Some(interceptor) = &state.interceptor {
        interceptor.call_ends(answer.map(value));
    }
}

/// Links the imports of the contract, and with `wasi` the empty WASI.
pub(crate) fn add_to_linker(linker: &mut Linker<StoreState>, wasi: bool) -> wasmtime::Result<()> {
    bindings::Plugin::add_to_linker::<StoreState, Border>(linker, |state| Intercepted { state })?;
    if wasi {
        imports::wasi::add_to_linker(linker)?;
        linker.allow_shadowing(true);
        wasi::add_to_linker(linker)?;
        linker.allow_shadowing(false);
    }
    Ok(())
}

impl HasData for Border {
    type Data<'a> = Intercepted<'a>;
}

// === impl Interception ===

impl Interception {
    pub(crate) fn new<I: Intercept>(make: impl Fn() -> I + Send + Sync + 'static) -> Self {
        Self { make: Arc::new(move || Arc::new(make())) }
    }

    /// Uses one interceptor for each instance.
    pub(crate) fn shared<I: Intercept>(interceptor: Arc<I>) -> Self {
        Self { make: Arc::new(move || interceptor.clone()) }
    }

    pub(crate) fn interceptor(&self) -> Arc<dyn Intercept> {
        (self.make)()
    }
}

// === impl Intercepted ===

impl Intercepted<'_> {
    /// Begins an import. Returns the interceptor's answer if it has one.
    fn begins<T: DeserializeOwned>(&self, function: &'static str, arguments: Value) -> Option<T> {
        let interceptor = self.interceptor()?;
        let answer = interceptor.import_begins(function, arguments)?;
        match serde_json::from_value(answer) {
            Ok(answer) => Some(answer),
            Err(error) => interceptor.answer_is_invalid(&error),
        }
    }

    fn ends<T: Serialize>(&self, answer: &T) {
        if let Some(interceptor) = self.interceptor() {
            interceptor.import_ends(value(answer));
        }
    }

    fn interceptor(&self) -> Option<&Arc<dyn Intercept>> {
        self.state.interceptor.as_ref()
    }
}

/// Converts a value of the contract. They all can be converted; a number that JSON lacks becomes null.
pub(crate) fn value<T: Serialize + ?Sized>(it: &T) -> Value {
    serde_json::to_value(it).unwrap_or_default()
}

/// Names the arguments as the contract does.
pub(crate) fn named<const N: usize>(arguments: [(&'static str, Value); N]) -> Value {
    let named = arguments.into_iter().map(|(name, value)| (name.replace('_', "-"), value));
    Value::Object(named.collect::<Map<_, _>>())
}

/// Shows one import to the interceptor: `pass!(self, "log.log", (level, message) => answer)`.
macro_rules! pass {
    ($self:ident, $function:literal, ($($argument:ident),*) => $answer:expr) => {{
        let arguments = [$((stringify!($argument), $crate::intercept::value(&$argument))),*];
        if let Some(answer) = $self.begins($function, $crate::intercept::named(arguments)) {
            return answer;
        }
        let answer = $answer;
        $self.ends(&answer);
        answer
    }};
}
use pass;
