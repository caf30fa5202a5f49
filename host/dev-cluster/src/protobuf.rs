//! Built-in types in Protobuf, as kubectl and other Go clients send and ask for them: turned into JSON and back by the
//! table of types.
//!
//! Custom resources have no Protobuf: those who ask for nothing else are refused, as by the real server.

mod decode;
mod encode;
mod wire;

pub(crate) use decode::decode;
pub(crate) use encode::{bare, enveloped, event, list, partial_metadata, partial_metadata_enveloped};

pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The type of a watch's answer: its events are framed by their length.
pub(crate) const WATCH_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// What an enveloped object begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("it does not begin as objects in Protobuf do")]
    NoMagic,
    #[error("it ends in the middle of a Protobuf field")]
    Truncated,
    #[error("it has a Protobuf wire type that no Kubernetes object has: {0}")]
    WireType(u64),
    #[error("the field `{0}` is not of its type")]
    Mismatch(String),
}
