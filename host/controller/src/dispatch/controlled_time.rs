//! Instances of a host whose clock a test controls.

use async_trait::async_trait;

use super::call::{Answering, Call, Instance};

/// An instance whose calls end at the time of the runtime's clock. The instance itself reads the machine's,
/// which a controlled clock does not follow.
pub(super) struct InControlledTime<I>(pub(super) I);

#[async_trait]
impl<I: Instance> Instance for InControlledTime<I> {
    async fn call(&mut self, call: &Call<'_>) -> Answering {
        let answering = self.0.call(call).await;
        // What the call wrote is in the caches before the next call begins, if no time passes.
        tokio::task::yield_now().await;
        answering
    }

    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use oarlock_plugin::contract::Synced;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;
    use crate::dispatch::call::Answer;

    /// An instance that has read another clock.
    struct Guest(mpsc::Sender<()>);

    #[async_trait]
    impl Instance for Guest {
        async fn call(&mut self, _: &Call<'_>) -> Answering {
            self.0.send(()).await.expect("the receiver exists");
            Ok(Ok(Answer::Done))
        }

        fn ended_at(&self) -> Option<Instant> {
            Some(Instant::now())
        }

        fn memory_bytes(&self) -> u64 {
            7
        }
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the task ends with the test")]
    async fn tasks_that_a_call_has_woken_run_before_it_ends() {
        let (sender, mut written) = mpsc::channel(1);
        let informer = tokio::spawn(async move { written.recv().await });
        // The informer waits already.
        tokio::task::yield_now().await;
        let mut instance = InControlledTime(Guest(sender));
        let synced = Synced { subscription: "pods".to_owned(), remaining: 0 };
        assert_eq!(instance.call(&Call::Synced(&synced)).await.unwrap().unwrap(), Answer::Done);
        assert!(informer.is_finished());
        assert_eq!((instance.ended_at(), instance.memory_bytes()), (None, 7));
    }
}
