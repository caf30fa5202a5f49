//! The one `bindgen!` of the host: the contract in `wit/`, as Rust.
//!
//! Nothing outside this crate names this module: what a caller needs is re-exported by [`crate::contract`].
//! Imports that may have to wait (the gate, the API server) are async, all others are plain functions.

#![allow(missing_docs, unreachable_pub, reason = "generated")]

wasmtime::component::bindgen!({
    world: "plugin",
    path: "../../wit",
    imports: {
        "oarlock:plugin/cache": async,
        "oarlock:plugin/client": async,
    },
    exports: { default: async },
    additional_derives: [PartialEq, Eq, PartialOrd, Ord, Hash],
});
