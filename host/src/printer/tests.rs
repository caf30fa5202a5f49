use std::collections::VecDeque;

use super::*;

/// An output with scripted results: it accepts a number of bytes, or fails.
#[derive(Default)]
struct Scripted {
    results: VecDeque<Result<usize, ErrorKind>>,
    taken: Vec<u8>,
}

impl Write for Scripted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.results.pop_front().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
        self.taken.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn sink(results: impl IntoIterator<Item = Result<usize, ErrorKind>>) -> Sink<Scripted> {
    Sink::new(Scripted { results: results.into_iter().collect(), taken: Vec::new() }, Arc::default())
}

fn text(sink: &Sink<Scripted>) -> &str {
    std::str::from_utf8(&sink.out.taken).unwrap()
}

#[test]
fn an_output_that_accepts_few_bytes_at_a_time_gets_all() {
    let mut sink = sink([Ok(1), Err(ErrorKind::Interrupted), Ok(2), Err(ErrorKind::WouldBlock)]);
    assert_eq!(sink.write(b"one\ntwo\n"), Ok(true));
    assert_eq!(text(&sink), "one\ntwo\n");
}

/// Such as a disk that is full for some time.
#[test]
fn an_incomplete_line_is_ended_before_the_next_line() {
    let mut sink = sink([Ok(2), Err(ErrorKind::StorageFull), Err(ErrorKind::StorageFull)]);
    assert_eq!(sink.write(b"one\n"), Ok(false));
    assert_eq!(sink.write(b"two\n"), Ok(false));
    assert_eq!(sink.write(b"three\n"), Ok(true));
    assert_eq!(text(&sink), "on\nthree\n");
}

#[test]
fn a_closed_pipe_ends_the_printer() {
    assert_eq!(sink([Err(ErrorKind::BrokenPipe)]).write(b"one\n"), Err(Closed));
}
