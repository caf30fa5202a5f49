//! A value that is computed when somebody asks, and again only after it was said to have changed.

use std::sync::Arc;

use parking_lot::Mutex;

/// Computes a value on demand and keeps it until [`Lazy::notify`]: many changes and few readers cost few evaluations.
///
/// - Evaluated at most once between two notifications; those who ask at the same time share one evaluation.
/// - An evaluation that began before a notification is not handed to anyone who asks after it.
/// - An error is not kept: whoever asks next tries again.
///
/// Asking blocks while somebody else evaluates. `evaluate` must not ask for the value itself.
pub struct Lazy<T, E> {
    evaluate: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    generation: Mutex<Arc<Generation<T>>>,
}

/// What was computed since a notification. Locked during the evaluation.
struct Generation<T>(Mutex<Option<T>>);

// === impl Lazy ===

impl<T: Clone, E> Lazy<T, E> {
    /// Makes a value that has not been evaluated.
    #[must_use]
    pub fn new(evaluate: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Self {
        Self { evaluate: Box::new(evaluate), generation: Mutex::new(Generation::new()) }
    }

    /// Says that what the value is computed from has changed.
    pub fn notify(&self) {
        *self.generation.lock() = Generation::new();
    }

    /// Returns the value, computing it if that was not done since the last notification.
    ///
    /// # Errors
    ///
    /// What `evaluate` answered.
    pub fn get(&self) -> Result<T, E> {
        let generation = self.generation.lock().clone();
        let mut value = generation.0.lock();
        if let Some(value) = &*value {
            return Ok(value.clone());
        }
        let evaluated = (self.evaluate)()?;
        *value = Some(evaluated.clone());
        Ok(evaluated)
    }
}

// === impl Generation ===

impl<T> Generation<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(None)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn evaluated_once_a_generation_sy_07() {
        let n_evaluations = Arc::new(AtomicUsize::new(0));
        let counter = n_evaluations.clone();
        let lazy: Lazy<usize, ()> = Lazy::new(move || Ok(counter.fetch_add(1, Ordering::SeqCst)));
        assert_eq!(n_evaluations.load(Ordering::SeqCst), 0, "nobody asked yet");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(lazy.get(), Ok(0)));
            }
        });
        lazy.notify();
        lazy.notify();
        assert_eq!((lazy.get(), lazy.get()), (Ok(1), Ok(1)));
    }

    #[test]
    fn an_error_is_not_kept_sy_07() {
        let n_evaluations = AtomicUsize::new(0);
        let lazy = Lazy::new(move || match n_evaluations.fetch_add(1, Ordering::SeqCst) {
            0 => Err("not yet"),
            n => Ok(n),
        });
        assert_eq!(lazy.get(), Err("not yet"));
        assert_eq!((lazy.get(), lazy.get()), (Ok(1), Ok(1)));
    }

    #[test]
    fn an_evaluation_older_than_a_notification_is_not_kept_sy_07() {
        let (began, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let may_go_on = Mutex::new(may_go_on);
        let n_evaluations = AtomicUsize::new(0);
        let lazy: Lazy<usize, ()> = Lazy::new(move || {
            let n = n_evaluations.fetch_add(1, Ordering::SeqCst);
            if n == 0 {
                began.send(()).unwrap();
                may_go_on.lock().recv().unwrap();
            }
            Ok(n)
        });
        std::thread::scope(|scope| {
            let first = scope.spawn(|| lazy.get());
            has_begun.recv().unwrap();
            lazy.notify();
            assert_eq!(lazy.get(), Ok(1), "evaluated anew while the first evaluation still runs");
            go_on.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(0));
        });
        assert_eq!(lazy.get(), Ok(1));
    }

    #[test]
    fn nothing_is_kept_after_a_notification() {
        let kept = Arc::new(Mutex::new(Weak::<()>::new()));
        let kept_by_lazy = kept.clone();
        let lazy: Lazy<Arc<()>, ()> = Lazy::new(move || {
            let value = Arc::new(());
            *kept_by_lazy.lock() = Arc::downgrade(&value);
            Ok(value)
        });
        lazy.get().unwrap();
        assert!(kept.lock().upgrade().is_some());
        lazy.notify();
        assert!(kept.lock().upgrade().is_none());
    }
}
