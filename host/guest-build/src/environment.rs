//! The environment variables that only builds read.

/// The folder of a WASI SDK.
pub(crate) const WASI_SDK_PATH: &str = "WASI_SDK_PATH";

/// The names and meanings of the variables. The folder for caches is named as usual, by `XDG_CACHE_HOME` or
/// `HOME`.
pub const ENVIRONMENT: [(&str, &str); 1] = [(
    WASI_SDK_PATH,
    "The folder of a WASI SDK (release 25 or newer), with which plugins in C are built. Otherwise, on Debian, clang and \
     wasi-libc are fetched.",
)];
