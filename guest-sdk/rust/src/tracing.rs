//! The crate `tracing`, whose events become lines in the host's log, with the fields of the spans around
//! them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::{Debug, Display};

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Dispatch, Event, LevelFilter, Metadata, Subscriber, dispatcher};

use crate::log::{Level, log, most_verbose};

/// A component has one thread.
struct HostSubscriber {
    max_level: LevelFilter,
}

#[derive(Default)]
struct Spans {
    open: HashMap<u64, Span>,
    /// The spans that have been entered and not left, the innermost last.
    entered: Vec<u64>,
}

struct Span {
    fields: Fields,
    /// The number of handles.
    n_handles: usize,
}

/// The message and the fields of an event or a span.
#[derive(Clone, Default)]
struct Fields {
    message: String,
    pairs: Vec<(&'static str, String)>,
}

thread_local! {
    static SPANS: RefCell<Spans> = RefCell::default();
    static NEXT: Cell<u64> = const { Cell::new(1) };
}

/// Installs the subscriber. Another call has no effect, and so has this one if the plugin has its own
/// subscriber.
pub(crate) fn install() {
    if !dispatcher::has_been_set() {
        let max_level = match most_verbose() {
            None => LevelFilter::OFF,
            Some(Level::Error) => LevelFilter::ERROR,
            Some(Level::Warn) => LevelFilter::WARN,
            Some(Level::Info) => LevelFilter::INFO,
            Some(Level::Debug) => LevelFilter::DEBUG,
            Some(Level::Trace) => LevelFilter::TRACE,
        };
        // It fails only if there is a subscriber already.
        let _ = dispatcher::set_global_default(Dispatch::new(HostSubscriber { max_level }));
    }
}

// === impl HostSubscriber ===

impl Subscriber for HostSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.max_level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.max_level)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = NEXT.get();
        NEXT.set(id + 1);
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        SPANS.with_borrow_mut(|spans| spans.open.insert(id, Span { fields, n_handles: 1 }));
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        // Formatting a value runs code of the plugin, which may record another one.
        let mut fields = Fields::default();
        values.record(&mut fields);
        SPANS.with_borrow_mut(|spans| {
            if let Some(span) = spans.open.get_mut(&id.into_u64()) {
                span.fields.replace_by(fields);
            }
        });
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut fields = SPANS.with_borrow(|spans| {
            let entered = spans.entered.iter().filter_map(|id| spans.open.get(id));
            let pairs = entered.flat_map(|span| span.fields.pairs.iter().cloned()).collect();
            Fields { message: String::new(), pairs }
        });
        event.record(&mut fields);
        let level = match *metadata.level() {
            tracing_core::Level::ERROR => Level::Error,
            tracing_core::Level::WARN => Level::Warn,
            tracing_core::Level::INFO => Level::Info,
            tracing_core::Level::DEBUG => Level::Debug,
            tracing_core::Level::TRACE => Level::Trace,
        };
        let target = metadata.target();
        let mut pairs: Vec<(&str, &dyn Display)> = vec![("target", &target)];
        pairs.extend(fields.pairs.iter().map(|(name, value)| (*name, value as &dyn Display)));
        log(level, &fields.message, &pairs);
    }

    fn enter(&self, id: &Id) {
        SPANS.with_borrow_mut(|spans| spans.entered.push(id.into_u64()));
    }

    fn exit(&self, id: &Id) {
        SPANS.with_borrow_mut(|spans| {
            if let Some(at) = spans.entered.iter().rposition(|entered| *entered == id.into_u64()) {
                spans.entered.remove(at);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        SPANS.with_borrow_mut(|spans| {
            if let Some(span) = spans.open.get_mut(&id.into_u64()) {
                span.n_handles += 1;
            }
        });
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        SPANS.with_borrow_mut(|spans| {
            let Some(span) = spans.open.get_mut(&id.into_u64()) else { return false };
            span.n_handles -= 1;
            let is_closed = span.n_handles == 0;
            if is_closed {
                spans.open.remove(&id.into_u64());
            }
            is_closed
        })
    }
}

// === impl Fields ===

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }
}

impl Fields {
    /// Takes the values of others. A field that was recorded before has its new value.
    fn replace_by(&mut self, others: Self) {
        for (name, value) in others.pairs {
            match self.pairs.iter_mut().find(|(other, _)| *other == name) {
                Some(pair) => pair.1 = value,
                None => self.pairs.push((name, value)),
            }
        }
    }

    fn put(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            name => self.pairs.push((name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Host;

    #[test]
    fn an_event_is_a_line_with_its_fields_and_those_of_its_spans() {
        let host = Host::new();
        super::install();
        let span = ::tracing::info_span!("copy", source = "home/a");
        span.in_scope(|| ::tracing::info!(n = 3, "copied {}", "twice"));
        ::tracing::error!(reason = "no right", "refused");
        let lines: Vec<_> = host.logs().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "info copied twice target=oarlock_sdk::tracing::tests source=home/a n=3",
                "error refused target=oarlock_sdk::tracing::tests reason=no right",
            ]
        );
    }

    #[test]
    fn a_field_that_is_recorded_again_has_its_new_value() {
        /// A value whose text is made with a line in the log.
        struct Logs;

        impl std::fmt::Debug for Logs {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                ::tracing::info!("formatted");
                f.write_str("c")
            }
        }

        let host = Host::new();
        super::install();
        let span = ::tracing::info_span!("copy", source = "a", target = ::tracing::field::Empty);
        let _entered = span.enter();
        for n in 0..40 {
            span.record("source", n);
        }
        span.record("target", ::tracing::field::debug(Logs));
        ::tracing::info!("copied");
        let lines: Vec<_> = host.logs().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "info formatted target=oarlock_sdk::tracing::tests source=39",
                "info copied target=oarlock_sdk::tracing::tests source=39 target=c",
            ]
        );
    }
}
