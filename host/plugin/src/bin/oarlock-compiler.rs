//! The compiler that tests and other users of this library run: `oarlock` itself needs none, it runs itself.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    oarlock_plugin::compiler::run(std::env::args_os().skip(1))
}
