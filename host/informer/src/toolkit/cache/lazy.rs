//! A value that is computed on demand, and again only after a notification (client-go: `synctrack.Lazy`).

use std::sync::Arc;

use parking_lot::Mutex;

/// Computes a value on demand and keeps it until [`Lazy::notify`].
///
/// - It evaluates at most once between two notifications; concurrent callers share one evaluation.
/// - A call after a notification never returns the result of an evaluation that started before it.
/// - It does not keep an error: the next call evaluates again.
///
/// A call blocks during the evaluation of another caller. `evaluate` must not call [`Lazy::get`] of the same
/// value.
pub struct Lazy<T, E> {
    evaluate: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    generation: Mutex<Arc<Generation<T>>>,
}

/// The value since one notification. Locked during the evaluation.
struct Generation<T>(Mutex<Option<T>>);

// === impl Lazy ===

impl<T: Clone, E> Lazy<T, E> {
    /// Returns a value that is not yet evaluated.
    #[must_use]
    pub fn new(evaluate: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Self {
        Self { evaluate: Box::new(evaluate), generation: Mutex::new(Generation::new()) }
    }

    /// Drops the value: its inputs have changed.
    pub fn notify(&self) {
        *self.generation.lock() = Generation::new();
    }

    /// Returns the value; evaluates it if that has not been done since the last notification.
    ///
    /// # Errors
    ///
    /// The error of `evaluate`.
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
    fn a_value_is_evaluated_once_between_notifications_sy_07() {
        let n_evaluations = Arc::new(AtomicUsize::new(0));
        let counter = n_evaluations.clone();
        let lazy: Lazy<usize, ()> = Lazy::new(move || Ok(counter.fetch_add(1, Ordering::SeqCst)));
        assert_eq!(n_evaluations.load(Ordering::SeqCst), 0, "not yet evaluated");
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
    fn an_evaluation_from_before_a_notification_is_not_kept_sy_07() {
        let (started, has_started) = mpsc::channel();
        let (resume, may_resume) = mpsc::channel();
        let may_resume = Mutex::new(may_resume);
        let n_evaluations = AtomicUsize::new(0);
        let lazy: Lazy<usize, ()> = Lazy::new(move || {
            let n = n_evaluations.fetch_add(1, Ordering::SeqCst);
            if n == 0 {
                started.send(()).unwrap();
                may_resume.lock().recv().unwrap();
            }
            Ok(n)
        });
        std::thread::scope(|scope| {
            let first = scope.spawn(|| lazy.get());
            has_started.recv().unwrap();
            lazy.notify();
            assert_eq!(lazy.get(), Ok(1), "evaluated again while the first evaluation runs");
            resume.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(0));
        });
        assert_eq!(lazy.get(), Ok(1));
    }

    #[test]
    fn a_notification_drops_the_value() {
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
