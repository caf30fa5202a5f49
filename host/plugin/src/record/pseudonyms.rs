//! Pseudonyms: stable replacements of values of Secrets, of the same shape.
//!
//! A pseudonym has the length of the value and, character by character, its alphabet: lower-case letters,
//! upper-case letters, digits, hexadecimal digits if the value has no other letters; other characters stay.
//! So the pseudonym of a PEM file has the same lines, and that of a JSON text the same structure. The
//! pseudonym of base64 is the base64 of the pseudonym. The key is drawn for each file and is not stored, so
//! it is not possible to compare the values of two files, or to try values.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

/// The characters of values without letters and digits.
const SIGNS: &[u8] = b"!#$%&()*+-./:;=?@^_~";

/// Makes the pseudonyms of one file.
pub(super) struct Pseudonyms {
    key: [u8; 32],
}

/// Pseudo-random numbers that depend on the key and the value.
struct Stream {
    seed: [u8; 32],
    block: [u8; 32],
    used: usize,
    n_blocks: u64,
}

// === impl Pseudonyms ===

impl Pseudonyms {
    pub(super) fn new() -> Self {
        Self { key: rand::random() }
    }

    #[cfg(test)]
    pub(super) fn with_key(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// Returns the pseudonym of a text.
    pub(super) fn of(&self, value: &str) -> String {
        // By chance a short value may be its own pseudonym.
        let mut tries = (0..16).map(|salt| self.salted(value, salt));
        tries.find(|it| it != value).unwrap_or_else(|| value.to_owned())
    }

    /// Returns the pseudonym of base64 text, or of plain text if it is not base64.
    pub(super) fn of_base64(&self, value: &str) -> String {
        let Ok(bytes) = BASE64_STANDARD.decode(value) else { return self.of(value) };
        match String::from_utf8(bytes) {
            Ok(text) => BASE64_STANDARD.encode(self.of(&text)),
            Err(error) => {
                let bytes = error.into_bytes();
                let mut stream = self.stream(&bytes, 0);
                let pseudonym: Vec<u8> = bytes.iter().map(|_| stream.next()).collect();
                BASE64_STANDARD.encode(pseudonym)
            }
        }
    }

    fn salted(&self, value: &str, salt: u8) -> String {
        let mut stream = self.stream(value.as_bytes(), salt);
        let is_hex = |c: char| !c.is_ascii_alphabetic() || c.is_ascii_hexdigit();
        let letters = if value.chars().all(is_hex) { 6 } else { 26 };
        let has_letters = value.chars().any(char::is_alphanumeric);
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let mut is_first = true;
        let mut map = |c: char| {
            let first = std::mem::replace(&mut is_first, false);
            match c {
                'a'..='z' => char::from(b'a' + stream.below(letters)),
                'A'..='Z' => char::from(b'A' + stream.below(letters)),
                // A number has no leading zero.
                '0'..='9' if first && is_number => char::from(b'1' + stream.below(9)),
                '0'..='9' => char::from(b'0' + stream.below(10)),
                _ if c.is_ascii() && !has_letters && SIGNS.contains(&(c as u8)) => {
                    char::from(SIGNS[usize::from(stream.below(20))])
                }
                _ if c.is_ascii() => c,
                // Another character of the same length in UTF-8.
                _ => {
                    let base = match c.len_utf8() {
                        2 => 0xe0,
                        3 => 0x4e00,
                        _ => 0x2_0000,
                    };
                    char::from_u32(base + u32::from(stream.below(20))).unwrap_or(c)
                }
            }
        };
        value.chars().map(&mut map).collect()
    }

    fn stream(&self, value: &[u8], salt: u8) -> Stream {
        let mut seed = Sha256::new();
        seed.update(self.key);
        seed.update([salt]);
        seed.update(value);
        let mut keyed = Sha256::new();
        keyed.update(self.key);
        keyed.update(seed.finalize());
        Stream { seed: keyed.finalize().into(), block: [0; 32], used: 32, n_blocks: 0 }
    }
}

// === impl Stream ===

impl Stream {
    fn next(&mut self) -> u8 {
        if self.used == self.block.len() {
            let mut block = Sha256::new();
            block.update(self.seed);
            block.update(self.n_blocks.to_le_bytes());
            self.block = block.finalize().into();
            self.n_blocks += 1;
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    fn below(&mut self, n: u8) -> u8 {
        self.next() % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonyms() -> Pseudonyms {
        Pseudonyms::with_key([7; 32])
    }

    #[test]
    fn a_pseudonym_is_stable_and_has_the_same_shape() {
        let pseudonyms = pseudonyms();
        for value in [
            "hunter2",
            "S3cret-Pa55 word",
            "deadbeef01",
            "DEADBEEF",
            "12345",
            "!!!!",
            "naïve ✓ 🔑",
            "-----BEGIN KEY-----\nMIIE\n",
        ] {
            let pseudonym = pseudonyms.of(value);
            assert_ne!(pseudonym, value);
            assert_eq!(pseudonym, pseudonyms.of(value));
            assert_eq!(pseudonym.len(), value.len(), "{pseudonym}");
            for (a, b) in value.chars().zip(pseudonym.chars()) {
                assert_eq!(a.is_ascii_lowercase(), b.is_ascii_lowercase(), "{value} {pseudonym}");
                assert_eq!(a.is_ascii_uppercase(), b.is_ascii_uppercase(), "{value} {pseudonym}");
                assert_eq!(a.is_ascii_digit(), b.is_ascii_digit(), "{value} {pseudonym}");
                assert_eq!(a.is_whitespace(), b.is_whitespace(), "{value} {pseudonym}");
            }
        }
        assert!(pseudonyms.of("deadbeef01").chars().all(|c| c.is_ascii_hexdigit()));
        assert_ne!(pseudonyms.of("hunter2"), Pseudonyms::with_key([8; 32]).of("hunter2"));
        assert_eq!(pseudonyms.of(""), "");
    }

    #[test]
    fn base64_stays_base64_of_the_pseudonym() {
        let pseudonyms = pseudonyms();
        for value in ["hunter2", "a", "ab", "user:pa55word", "ünï"] {
            let encoded = BASE64_STANDARD.encode(value);
            let pseudonym = pseudonyms.of_base64(&encoded);
            assert_eq!(pseudonym, BASE64_STANDARD.encode(pseudonyms.of(value)));
            assert_eq!(pseudonym.len(), encoded.len());
        }
        let binary = BASE64_STANDARD.encode([0xff, 0xfe, 0, 1, 2, 3]);
        let pseudonym = pseudonyms.of_base64(&binary);
        assert_ne!(pseudonym, binary);
        assert_eq!(BASE64_STANDARD.decode(pseudonym).unwrap().len(), 6);
        assert_eq!(pseudonyms.of_base64("not base64!"), pseudonyms.of("not base64!"));
    }
}
