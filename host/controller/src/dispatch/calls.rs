//! The calls in progress of one plugin, of its active generation and of those before it.
//!
//! The calls of a plugin with one lane run within the dispatcher's task. Those of several lanes run as tasks
//! of their own, so that guests of one plugin use several cores. Guests that compute for long, or use
//! more than others, run in the background ([`Share::run`]). After a switch the calls of the generation
//! before end as they would have, beside the new generation's.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::stream::{FuturesUnordered, StreamExt};
use oarlock_plugin::CallError;
use oarlock_plugin::engine::{DEFAULT_WEIGHT, Share};
use tokio::time::Instant;
use tokio_util::sync::ReusableBoxFuture;

use super::call::{Answering, Instance, MakeInstance, PreparedCall};
use super::due_call::{CallId, DueCall};
use super::slice::SliceOwner;
use super::trace::TracedCall;
use crate::tasks::Tasks;

/// The calls in progress, and the due calls that wait for them.
pub(super) struct Calls {
    tasks: Tasks,
    /// The plugin's share of the CPU, from the first job on.
    share: Option<Share>,
    /// A job has begun since one ended.
    has_begun: bool,
    /// The call of the only lane. The box is used again for the next call.
    inline: ReusableBoxFuture<'static, Ended>,
    is_inline_busy: bool,
    apart: FuturesUnordered<Pin<Box<dyn Future<Output = Ended> + Send>>>,
    /// The objects and keys of the calls in progress.
    busy: Vec<CallId>,
    /// Due calls of the active generation whose object is in another call.
    held: Vec<(CallId, DueCall)>,
}

/// A call to make, or only an instance.
pub(super) struct Job {
    pub(super) generation: u64,
    pub(super) lane: usize,
    pub(super) instance: Option<Box<dyn Instance>>,
    pub(super) maker: Arc<dyn MakeInstance>,
    pub(super) work: Option<Work>,
}

/// A call, and what it is for.
pub(super) struct Work {
    /// The object or key that the call is about.
    pub(super) id: Option<CallId>,
    pub(super) call: PreparedCall,
    pub(super) began: Instant,
    /// Only of a sampled call.
    pub(super) trace: Option<Box<TracedCall>>,
}

/// The end of a [`Job`].
pub(super) struct Ended {
    pub(super) generation: u64,
    pub(super) lane: usize,
    /// None if the call cost the instance, or none could be made.
    pub(super) instance: Option<Box<dyn Instance>>,
    /// The instance was made for this job.
    pub(super) is_fresh: bool,
    /// The job ran within the dispatcher's task, so this is when the dispatcher hears of its end.
    pub(super) is_inline: bool,
    pub(super) at: Instant,
    /// The object or key that the job was about.
    pub(super) id: Option<CallId>,
    pub(super) what: EndedJob,
}

pub(super) enum EndedJob {
    /// There was nothing to call.
    Made,
    /// No instance could be made. The call was not made.
    CannotStart {
        due: Option<DueCall>,
        error: CallError,
    },
    Called {
        due: DueCall,
        began: Instant,
        result: Answering,
    },
}

// === impl Calls ===

impl Calls {
    pub(super) fn new(tasks: Tasks) -> Self {
        Self {
            tasks,
            share: None,
            has_begun: false,
            inline: nothing(),
            is_inline_busy: false,
            apart: FuturesUnordered::new(),
            busy: Vec::new(),
            held: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_inline_busy && self.apart.is_empty()
    }

    /// Returns how many jobs are in progress.
    pub(super) fn len(&self) -> usize {
        usize::from(self.is_inline_busy) + self.apart.len()
    }

    /// Returns what the end of a slice depends on.
    pub(super) fn slice_owner(&self) -> SliceOwner {
        let weight = self.share.as_ref().map_or(DEFAULT_WEIGHT, Share::weight);
        SliceOwner { has_call: self.is_inline_busy, weight }
    }

    /// Gives back the permit that is kept between two calls: the dispatcher waits for work, or for its next
    /// slice.
    pub(super) fn pass_permit_on(&self) {
        if !self.has_begun
            && let Some(share) = &self.share
        {
            share.pass_permit_on();
        }
    }

    /// Gives back the permit of a call that has ended while the dispatcher waits for its slice.
    pub(super) fn slice_is_awaited(&self) {
        // A call within the task may have begun, and get the permit that is kept.
        if !self.is_inline_busy
            && let Some(share) = &self.share
        {
            share.pass_permit_on();
        }
    }

    /// Returns whether a call about this object or key is in progress.
    pub(super) fn is_busy(&self, id: CallId) -> bool {
        self.busy.contains(&id)
    }

    /// Keeps a due call until the call about the same object or key ends.
    pub(super) fn hold(&mut self, id: CallId, due: DueCall) {
        self.held.push((id, due));
    }

    /// Begins a job: within this task, or in a task of its own.
    pub(super) fn begin(&mut self, job: Job, is_inline: bool) {
        self.busy.extend(job.work.as_ref().and_then(|work| work.id));
        self.has_begun = true;
        if self.share.is_none() {
            self.share = job.maker.share().cloned();
            self.share.iter().for_each(Share::keep_permits);
        }
        if is_inline && !self.is_inline_busy {
            self.inline.set(job.run());
            self.is_inline_busy = true;
            self.move_if_due();
            return;
        }
        self.push_apart(job.run());
    }

    /// Runs a job in a task of its own.
    fn push_apart(&mut self, job: impl Future<Output = Ended> + Send + 'static) {
        let call: Pin<Box<dyn Future<Output = Ended> + Send>> = match &self.share {
            None => Box::pin(self.tasks.apart(job)),
            Some(share) => {
                let call = self.tasks.run_guest(share, job);
                if call.is_in_background() { Box::pin(call) } else { Box::pin(self.tasks.apart(call)) }
            }
        };
        self.apart.push(call);
    }

    /// Moves the call within this task to the background, if its guest belongs there.
    fn move_if_due(&mut self) {
        if let Some(share) = self.share.as_ref().filter(|share| share.belongs_in_background()) {
            let call =
                self.tasks.run_guest_in_background(share, std::mem::replace(&mut self.inline, nothing()));
            self.is_inline_busy = false;
            self.apart.push(Box::pin(call));
        }
    }

    /// Frees the memory that is kept for the next calls.
    pub(super) fn free_spare(&mut self) {
        if self.is_empty() {
            *self = Self { share: self.share.take(), ..Self::new(self.tasks.clone()) };
        }
    }

    /// Makes room for the calls of another generation. Returns the due calls that are held.
    pub(super) fn switch(&mut self) -> Vec<DueCall> {
        if std::mem::take(&mut self.is_inline_busy) {
            let inline = std::mem::replace(&mut self.inline, nothing());
            // Its guest may get a permit while the dispatcher waits for its next slice.
            self.push_apart(inline);
        }
        std::mem::take(&mut self.held).into_iter().map(|(_, due)| due).collect()
    }

    /// Polls for the end of a job. Never ready while there is none.
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if self.is_inline_busy {
            if let Poll::Ready(ended) = self.inline.poll(cx) {
                self.is_inline_busy = false;
                self.has_begun = false;
                return Poll::Ready(ended);
            }
            self.move_if_due();
        }
        if self.apart.is_empty() {
            return Poll::Pending;
        }
        match self.apart.poll_next_unpin(cx) {
            Poll::Ready(Some(mut ended)) => {
                self.has_begun = false;
                ended.is_inline = false;
                Poll::Ready(ended)
            }
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Notes that the call about an object or key has ended. Returns the due calls that waited
    /// for it.
    pub(super) fn free(&mut self, id: Option<CallId>) -> Vec<DueCall> {
        let Some(id) = id else { return Vec::new() };
        if let Some(index) = self.busy.iter().position(|busy| *busy == id) {
            self.busy.swap_remove(index);
        }
        if self.held.is_empty() {
            return Vec::new();
        }
        self.held.extract_if(.., |(held, _)| *held == id).map(|(_, due)| due).collect()
    }
}

/// Returns what `inline` holds while no call is in progress. It takes no memory.
fn nothing() -> ReusableBoxFuture<'static, Ended> {
    ReusableBoxFuture::new(std::future::pending())
}

// === impl Job ===

impl Job {
    async fn run(self) -> Ended {
        let Self { generation, lane, instance, maker, work } = self;
        let is_fresh = instance.is_none();
        let id = work.as_ref().and_then(|work| work.id);
        let ended_at = |at, instance, what| Ended {
            generation,
            lane,
            instance,
            is_fresh,
            is_inline: true,
            at,
            id,
            what,
        };
        let ended = |instance, what| ended_at(Instant::now(), instance, what);
        let made = match instance {
            Some(instance) => Ok(instance),
            None => maker.make().await,
        };
        let mut instance = match made {
            Ok(instance) => instance,
            Err(error) => {
                let due = work.map(|work| work.call.into_due());
                return ended(None, EndedJob::CannotStart { due, error });
            }
        };
        let Some(Work { call, began, trace, .. }) = work else {
            return ended(Some(instance), EndedJob::Made);
        };
        let result = {
            let complete = call.complete().await;
            let calling = instance.call(&complete);
            match trace {
                None => calling.await,
                Some(trace) => Box::pin(trace.follow(calling)).await,
            }
        };
        let instance = result.is_ok().then_some(instance);
        let at = instance.as_ref().and_then(|instance| instance.ended_at()).unwrap_or_else(Instant::now);
        ended_at(at, instance, EndedJob::Called { due: call.into_due(), began, result })
    }
}
