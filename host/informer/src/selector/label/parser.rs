//! The grammar of label selectors, as `apimachinery` parses it.

use std::collections::BTreeSet;

use super::{Requirement, Test};

/// A text that is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Something else was expected where `found` stands.
    #[error("in a label selector, found '{found}', expected {expected}")]
    Unexpected {
        /// What stands there; empty at the end of the text.
        found: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// A key that no label could have.
    #[error("{0:?} cannot be the key of a label")]
    Key(String),
    /// A value that no label could have.
    #[error("{0:?} cannot be the value of a label")]
    Value(String),
    /// `>` and `<` compare integers.
    #[error("{0:?} is not an integer to compare a label with")]
    NotAnInteger(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Symbol(&'static str),
    End,
}

/// Reads tokens off the front of a text.
struct Parser<'t> {
    rest: &'t str,
}

/// Longer ones first.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    if parser.peek() == Token::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(parser.requirement()?);
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => {}
            other => return Err(other.unexpected("',' or the end")),
        }
    }
}

// === impl Parser ===

impl<'t> Parser<'t> {
    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let is_negated = self.take_if("!");
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(other.unexpected("a key")),
        };
        if !is_label_key(key) {
            return Err(SelectorError::Key(key.to_owned()));
        }
        let key = key.to_owned();
        if is_negated {
            return Ok(Requirement { key, test: Test::DoesNotExist });
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(Requirement { key, test: Test::Exists });
        }
        let test = match self.next() {
            Token::Symbol("=" | "==") => Test::Equals(self.value()?),
            Token::Symbol("!=") => Test::NotEquals(self.value()?),
            Token::Symbol(">") => Test::GreaterThan(self.integer()?),
            Token::Symbol("<") => Test::LessThan(self.integer()?),
            Token::Word("in") => Test::In(self.values()?),
            Token::Word("notin") => Test::NotIn(self.values()?),
            other => return Err(other.unexpected("one of =, ==, !=, in, notin, <, >")),
        };
        Ok(Requirement { key, test })
    }

    /// The one value after `=`, which may be missing and is empty then.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                checked_value(word)
            }
            other => Err(other.unexpected("a value")),
        }
    }

    fn integer(&mut self) -> Result<i64, SelectorError> {
        let value = self.value()?;
        value.parse().map_err(|_| SelectorError::NotAnInteger(value))
    }

    /// Values in parentheses. What stands between two commas, or between comma and parenthesis, may be nothing: the empty
    /// value.
    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        if !self.take_if("(") {
            return Err(self.peek().unexpected("'('"));
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.insert(checked_value(word)?);
                    match self.next() {
                        Token::Symbol(",") if self.peek() == Token::Symbol(")") => {
                            values.insert(String::new());
                        }
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(values),
                        other => return Err(other.unexpected("',' or ')'")),
                    }
                }
                Token::Symbol(",") => {
                    values.insert(String::new());
                }
                Token::Symbol(")") => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    return Ok(values);
                }
                other => return Err(other.unexpected("a value, ',' or ')'")),
            }
        }
    }

    fn peek(&self) -> Token<'t> {
        Parser { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'t> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if self.rest.is_empty() {
            return Token::End;
        }
        let symbol = SYMBOLS.into_iter().find(|symbol| self.rest.starts_with(symbol));
        if let Some(symbol) = symbol {
            self.rest = &self.rest[symbol.len()..];
            return Token::Symbol(symbol);
        }
        let is_end =
            |char| matches!(char, ' ' | '\t' | '\r' | '\n' | '=' | '!' | '(' | ')' | ',' | '>' | '<');
        let (word, rest) = self.rest.split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
        self.rest = rest;
        Token::Word(word)
    }

    fn take_if(&mut self, symbol: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Symbol(next) if next == symbol);
        if is_next {
            self.next();
        }
        is_next
    }
}

// === impl Token ===

impl Token<'_> {
    fn unexpected(self, expected: &'static str) -> SelectorError {
        let found = match self {
            Self::Word(found) | Self::Symbol(found) => found.to_owned(),
            Self::End => String::new(),
        };
        SelectorError::Unexpected { found, expected }
    }
}

fn checked_value(word: &str) -> Result<String, SelectorError> {
    if is_name(word) { Ok(word.to_owned()) } else { Err(SelectorError::Value(word.to_owned())) }
}

/// A name of at most 63 characters, with or without a DNS subdomain and a slash before it.
fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
    }
}

fn is_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.len() <= 63
        && name.bytes().all(is_inner)
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().next_back().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

fn is_subdomain(prefix: &str) -> bool {
    prefix.len() <= 253
        && prefix.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        })
}
