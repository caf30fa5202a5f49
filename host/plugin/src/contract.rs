//! The types of the contract (`wit/`), as the rest of the host uses them.
//!
//! Each type is generated from the WIT type of the same name, which documents it.

mod arguments;

pub use self::arguments::{
    AddedArgument, Borrowed, DeletedArgument, FieldTexts, ObjectRefArgument, UpdatedArgument,
};
pub use crate::bindings::exports::oarlock::plugin::handler::{Added, Deleted, Synced, Updated};
pub use crate::bindings::exports::oarlock::plugin::metadata::{
    Content, Description, Enqueue, FieldCondition, Index, IndexSource, NamedAt, OwnerKind, Read, Request,
    Schedule, Scope, Subscription, Test, Trigger, WallTimes,
};
pub use crate::bindings::exports::oarlock::plugin::reconciler::Outcome;
pub use crate::bindings::oarlock::plugin::client::{PatchKind, Preconditions, Propagation, Written};
pub use crate::bindings::oarlock::plugin::clock::Datetime;
pub use crate::bindings::oarlock::plugin::event::Version;
pub use crate::bindings::oarlock::plugin::events::EventType;
pub use crate::bindings::oarlock::plugin::log::Level;
pub use crate::bindings::oarlock::plugin::types::{
    Entry, Error, Failure, GroupVersionResource, Namespaces, ObjectKey, ObjectRef, Page, PageRequest,
    Projection, RetryInfo, Row, ThrottledInfo,
};
pub use crate::bindings::oarlock::plugin::work_queue::WorkKey;
