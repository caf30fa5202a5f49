use std::collections::VecDeque;

use super::*;

/// An output that does as it is told: takes so many bytes, or fails.
#[derive(Default)]
struct Moody {
    moods: VecDeque<Result<usize, ErrorKind>>,
    taken: Vec<u8>,
}

impl Write for Moody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.moods.pop_front().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
        self.taken.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn sink(moods: impl IntoIterator<Item = Result<usize, ErrorKind>>) -> Sink<Moody> {
    Sink::new(Moody { moods: moods.into_iter().collect(), taken: Vec::new() }, Arc::default())
}

fn text(sink: &Sink<Moody>) -> &str {
    std::str::from_utf8(&sink.out.taken).unwrap()
}

#[test]
fn an_output_that_takes_little_at_a_time_gets_all() {
    let mut sink = sink([Ok(1), Err(ErrorKind::Interrupted), Ok(2), Err(ErrorKind::WouldBlock)]);
    assert_eq!(sink.write(b"one\ntwo\n"), Ok(true));
    assert_eq!(text(&sink), "one\ntwo\n");
}

/// As on a disk that is full for a while.
#[test]
fn after_half_a_line_the_next_one_begins_on_a_line_of_its_own() {
    let mut sink = sink([Ok(2), Err(ErrorKind::StorageFull), Err(ErrorKind::StorageFull)]);
    assert_eq!(sink.write(b"one\n"), Ok(false));
    assert_eq!(sink.write(b"two\n"), Ok(false));
    assert_eq!(sink.write(b"three\n"), Ok(true));
    assert_eq!(text(&sink), "on\nthree\n");
}

#[test]
fn a_closed_pipe_is_the_end_of_printing() {
    assert_eq!(sink([Err(ErrorKind::BrokenPipe)]).write(b"one\n"), Err(Closed));
}
