//! Built-in types in Protobuf, as Go clients send and accept them: converted to JSON and back by the table of
//! types.
//!
//! Custom resources have no Protobuf: as in kube-apiserver, a client that accepts nothing else gets a 406.

mod decode;
mod encode;
mod wire;

pub(crate) use decode::decode;
pub(crate) use encode::{bare, enveloped, event, list, partial_metadata, partial_metadata_enveloped};

pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a watch: its events are length-delimited.
pub(crate) const WATCH_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// The prefix of an enveloped object.
const MAGIC: &[u8] = b"k8s\0";

/// The reason why a body could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("it does not start with the prefix of Kubernetes' Protobuf")]
    NoMagic,
    #[error("it ends in the middle of a Protobuf field")]
    Truncated,
    #[error("it has the Protobuf wire type {0}, which no Kubernetes object has")]
    WireType(u64),
    #[error("the field `{0}` has the wrong type")]
    Mismatch(String),
}
