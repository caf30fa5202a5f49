//! The grammar of label selectors, and the messages of `apimachinery`'s parser.

use std::collections::BTreeSet;

use crate::requirement::{Requirement, Test};
use crate::validation::{label_key_faults, label_value_faults};

/// A text that is not a label selector. Displays the message of the API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// One of the requirements is not valid.
    #[error("unable to parse requirement: {0}")]
    Requirement(RequirementError),
    /// Another token was expected between two requirements.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// The token in the text; empty at its end.
        found: String,
        /// The tokens that could stand there.
        expected: &'static str,
    },
}

/// The fault of one requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// Another token was expected.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// The token in the text; empty at its end.
        found: String,
        /// The tokens that could stand there.
        expected: &'static str,
    },
    /// The values of `in` or `notin` do not begin with a parenthesis.
    #[error("found '{0}' expected: '('")]
    NoParenthesis(String),
    /// No label can have this key.
    #[error("<nil>: Invalid value: {key:?}: {}", faults.join("; "))]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        faults: Vec<String>,
    },
    /// No label can have this value.
    #[error("values[{index}][{key}]: Invalid value: {value:?}: {}", faults.join("; "))]
    Value {
        /// The key of the requirement.
        key: String,
        /// The index of the value among the requirement's values, in their order.
        index: usize,
        /// The value.
        value: String,
        /// What is wrong with it.
        faults: Vec<String>,
    },
    /// `>` and `<` compare integers of 64 bits.
    #[error("values[0]: Invalid value: {0:?}: for 'Gt', 'Lt' operators, the value must be an integer")]
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

pub(crate) fn parse(text: &str) -> Result<Vec<Requirement>, ParseError> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    match parser.peek() {
        Token::End => return Ok(requirements),
        Token::Word(_) | Token::Symbol("!") => {}
        other => return Err(other.unexpected("!, identifier, or 'end of string'")),
    }
    loop {
        requirements.push(parser.requirement().map_err(ParseError::Requirement)?);
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => {}
            other => return Err(other.unexpected("',' or 'end of string'")),
        }
        if !matches!(parser.peek(), Token::Word(_) | Token::Symbol("!")) {
            return Err(parser.peek().unexpected("identifier after ','"));
        }
    }
}

// === impl Parser ===

impl<'t> Parser<'t> {
    fn requirement(&mut self) -> Result<Requirement, RequirementError> {
        let is_negated = self.take_if("!");
        let key = match self.next() {
            Token::Word(key) => key.to_owned(),
            other => return Err(other.unexpected_in_requirement("identifier")),
        };
        let faults = label_key_faults(&key);
        if !faults.is_empty() {
            return Err(RequirementError::Key { key, faults });
        }
        if is_negated {
            return Ok(Requirement { key, test: Test::DoesNotExist });
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(Requirement { key, test: Test::Exists });
        }
        let test = match self.next() {
            Token::Symbol("=" | "==") => Test::Equals(self.value(&key)?),
            Token::Symbol("!=") => Test::NotEquals(self.value(&key)?),
            Token::Symbol(">") => Test::GreaterThan(self.integer(&key)?),
            Token::Symbol("<") => Test::LessThan(self.integer(&key)?),
            Token::Word("in") => Test::In(self.values(&key)?),
            Token::Word("notin") => Test::NotIn(self.values(&key)?),
            other => return Err(other.unexpected_in_requirement("in, notin, =, ==, !=, gt, lt")),
        };
        Ok(Requirement { key, test })
    }

    fn value(&mut self, key: &str) -> Result<String, RequirementError> {
        let value = self.word()?;
        check_value(key, 0, &value)?;
        Ok(value)
    }

    fn integer(&mut self, key: &str) -> Result<i64, RequirementError> {
        let value = self.word()?;
        let Ok(integer) = value.parse() else { return Err(RequirementError::NotAnInteger(value)) };
        check_value(key, 0, &value)?;
        Ok(integer)
    }

    /// Reads the one value after an operator. A missing value is the empty one.
    fn word(&mut self) -> Result<String, RequirementError> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                Ok(word.to_owned())
            }
            other => Err(other.unexpected_in_requirement("identifier")),
        }
    }

    /// Reads values in parentheses. Between two commas, or a comma and a parenthesis, nothing is the empty
    /// value.
    fn values(&mut self, key: &str) -> Result<BTreeSet<String>, RequirementError> {
        if !self.take_if("(") {
            return Err(RequirementError::NoParenthesis(self.peek().text().to_owned()));
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.insert(word.to_owned());
                    match self.next() {
                        Token::Symbol(",") if self.peek() == Token::Symbol(")") => {
                            values.insert(String::new());
                        }
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => break,
                        other => return Err(other.unexpected_in_requirement("',' or ')'")),
                    }
                }
                Token::Symbol(",") => {
                    values.insert(String::new());
                }
                Token::Symbol(")") => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    break;
                }
                other => return Err(other.unexpected_in_requirement("',', ')' or identifier")),
            }
        }
        for (index, value) in values.iter().enumerate() {
            check_value(key, index, value)?;
        }
        Ok(values)
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

impl<'t> Token<'t> {
    fn text(self) -> &'t str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }

    fn unexpected(self, expected: &'static str) -> ParseError {
        ParseError::Unexpected { found: self.text().to_owned(), expected }
    }

    fn unexpected_in_requirement(self, expected: &'static str) -> RequirementError {
        RequirementError::Unexpected { found: self.text().to_owned(), expected }
    }
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), RequirementError> {
    let faults = label_value_faults(value);
    if faults.is_empty() {
        return Ok(());
    }
    Err(RequirementError::Value { key: key.to_owned(), index, value: value.to_owned(), faults })
}
