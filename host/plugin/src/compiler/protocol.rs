//! What the host and its compiler send each other: one request and one answer at a time.
//!
//! ```text
//!   request   limits, length │ the component
//!   answer    kind, whether to go on, length │ the code, or why the component is refused
//! ```

use std::io::{self, Read, Write};

use super::ProcessLimits;

/// The kind of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Code = 0,
    Refused = 1,
}

/// The beginning of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) cpu_seconds: u64,
    pub(super) memory: u64,
    /// The bytes of the component.
    pub(super) length: u64,
}

/// The beginning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) kind: Kind,
    /// The process can compile another component.
    pub(super) goes_on: bool,
    /// The bytes of the code or text.
    pub(super) length: u64,
}

// === impl Request ===

impl Request {
    pub(super) fn new(limits: &ProcessLimits, component: &[u8]) -> Self {
        let ProcessLimits { cpu_seconds, memory, is_all_memory: _, wall: _, code: _ } = *limits;
        Self { cpu_seconds, memory, length: u64::try_from(component.len()).unwrap_or(u64::MAX) }
    }

    pub(super) fn write(self, mut to: impl Write) -> io::Result<()> {
        let Self { cpu_seconds, memory, length } = self;
        to.write_all(&[cpu_seconds, memory, length].map(u64::to_le_bytes).concat())
    }

    /// Reads a request. `None` at the end of the input.
    pub(super) fn read(mut from: impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; 24];
        match from.read(&mut bytes[..1])? {
            0 => return Ok(None),
            _ => from.read_exact(&mut bytes[1..])?,
        }
        let [cpu_seconds, memory, length] = numbers(&bytes);
        Ok(Some(Self { cpu_seconds, memory, length }))
    }
}

// === impl Answer ===

impl Answer {
    pub(super) fn write(self, mut to: impl Write) -> io::Result<()> {
        let Self { kind, goes_on, length } = self;
        to.write_all(&[kind as u64, goes_on.into(), length].map(u64::to_le_bytes).concat())
    }

    pub(super) fn read(mut from: impl Read) -> io::Result<Self> {
        let mut bytes = [0; 24];
        from.read_exact(&mut bytes)?;
        let [kind, goes_on, length] = numbers(&bytes);
        let kind = match kind {
            0 => Kind::Code,
            1 => Kind::Refused,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(Self { kind, goes_on: goes_on == 1, length })
    }
}

fn numbers(bytes: &[u8; 24]) -> [u64; 3] {
    let mut numbers = [0; 3];
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_read_as_they_were_written() {
        let request = Request { cpu_seconds: 20, memory: u64::MAX, length: 3 };
        let mut bytes = Vec::new();
        request.write(&mut bytes).unwrap();
        assert_eq!(Request::read(&*bytes).unwrap(), Some(request));
        assert!(Request::read(&bytes[..23]).is_err(), "the host ended in the middle");
        assert_eq!(Request::read(&[][..]).unwrap(), None);
        for answer in [
            Answer { kind: Kind::Code, goes_on: true, length: 1 << 40 },
            Answer { kind: Kind::Refused, goes_on: false, length: 0 },
        ] {
            let mut bytes = Vec::new();
            answer.write(&mut bytes).unwrap();
            assert_eq!(Answer::read(&*bytes).unwrap(), answer);
            bytes[0] = 2;
            assert!(Answer::read(&*bytes).is_err());
        }
    }
}
