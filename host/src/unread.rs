//! Standard output that no one can read any more: the pipe of `oarlock dev | head` after the end of `head`.
//!
//! A write to it fails, but a command that follows what happens may have nothing to write for hours.

use std::{future::Future, io, os::fd::AsFd};

use tokio::{io::Interest, net::unix::pipe::Sender};

use crate::failure::{Ended, Failure};

/// Returns when standard output is a pipe without a reader, or a terminal that is gone. With a file it never
/// does, and with a socket only the next write notices.
pub(crate) async fn until_unread() {
    let no_reader = async {
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        // The kernel reports the end of the last reader as an error of the writing end. Nothing is written
        // here, so the pipe may be a blocking one, or no pipe.
        let stdout = Sender::from_owned_fd_unchecked(stdout)?;
        while !stdout.ready(Interest::ERROR).await?.is_error() {}
        Ok::<_, io::Error>(())
    };
    if no_reader.await.is_err() {
        // What cannot be watched: a file.
        std::future::pending().await
    }
}

/// Runs a command. One that follows ends when no one reads its output any more.
pub(crate) async fn while_read(follows: bool, command: impl Future<Output = Ended>) -> Ended {
    tokio::select! {
        ended = command => ended,
        () = until_unread(), if follows => Err(Failure::unread()),
    }
}
