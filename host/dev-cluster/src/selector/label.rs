//! Label selectors in the API's string syntax: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>3`.

use crate::status::StatusError;
use crate::validation::{label_value_faults, qualified_name_faults};

/// All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Exists,
    DoesNotExist,
    In(Vec<String>),
    NotIn(Vec<String>),
    GreaterThan(i64),
    LessThan(i64),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

struct Parser<'a> {
    rest: &'a str,
}

// === impl LabelSelector ===

impl LabelSelector {
    pub(crate) fn parse(text: &str) -> Result<Self, StatusError> {
        let parse = || -> Result<Self, String> {
            let mut parser = Parser { rest: text };
            let mut requirements = Vec::new();
            if parser.peek() == Token::End {
                return Ok(Self::default());
            }
            loop {
                let requirement = parser.requirement().and_then(Requirement::checked);
                requirements.push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
                match parser.next() {
                    Token::End => return Ok(Self { requirements }),
                    Token::Sign(",") => {}
                    other => {
                        return Err(format!("found '{}', expected: ',' or 'end of string'", other.text()));
                    }
                }
            }
        };
        parse().map_err(StatusError::bad_request)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(crate) fn matches(&self, labels: &[(String, String)]) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.iter().find(|(key, _)| *key == requirement.key).map(|(_, value)| value);
            requirement.test.holds(value.map(String::as_str))
        })
    }
}

// === impl Requirement ===

impl Requirement {
    /// Refuses keys and values that no label can have.
    fn checked(self) -> Result<Self, String> {
        if let Some(fault) = qualified_name_faults(&self.key).first() {
            return Err(format!("<nil>: Invalid value: {:?}: {fault}", self.key));
        }
        if let Test::In(values) | Test::NotIn(values) = &self.test {
            for (at, value) in values.iter().enumerate() {
                if let Some(fault) = label_value_faults(value).first() {
                    return Err(format!("values[{at}][{}]: Invalid value: {value:?}: {fault}", self.key));
                }
            }
        }
        Ok(self)
    }
}

// === impl Test ===

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.iter().any(|v| v == value)),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

// === impl Token ===

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
            Self::End => "",
        }
    }
}

// === impl Parser ===

impl Parser<'_> {
    fn requirement(&mut self) -> Result<Requirement, String> {
        if self.peek() == Token::Sign("!") {
            self.next();
            return Ok(Requirement { key: self.key()?, test: Test::DoesNotExist });
        }
        let key = self.key()?;
        let test = match self.peek() {
            Token::End | Token::Sign(",") => Test::Exists,
            Token::Sign("=" | "==") => {
                self.next();
                Test::In(vec![self.value()?])
            }
            Token::Sign("!=") => {
                self.next();
                Test::NotIn(vec![self.value()?])
            }
            Token::Sign(sign @ (">" | "<")) => {
                self.next();
                let value = self.value()?;
                let bound = value
                    .parse()
                    .map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())?;
                if sign == ">" { Test::GreaterThan(bound) } else { Test::LessThan(bound) }
            }
            Token::Word(word) if word == "in" || word == "notin" => {
                self.next();
                let values = self.values()?;
                if word == "in" { Test::In(values) } else { Test::NotIn(values) }
            }
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
            }
        };
        Ok(Requirement { key, test })
    }

    fn key(&mut self) -> Result<String, String> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// A value may be missing: `a=` asks for the empty one.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Sign(",") => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            Token::Sign(sign) => Err(format!("found '{sign}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Sign("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.push(word);
                    match self.next() {
                        Token::Sign(",") => {}
                        Token::Sign(")") => return Ok(values),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Sign(",") => values.push(String::new()),
                Token::Sign(")") => {
                    values.push(String::new());
                    return Ok(values);
                }
                other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
            }
        }
    }

    fn peek(&self) -> Token {
        Parser { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token {
        self.rest = self.rest.trim_start();
        for sign in ["==", "!=", "=", "!", ">", "<", "(", ")", ","] {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return Token::Sign(sign);
            }
        }
        let end = self.rest.find(|c: char| c.is_whitespace() || "=!><(),".contains(c));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        if word.is_empty() { Token::End } else { Token::Word(word.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels: Vec<_> = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        LabelSelector::parse(selector).unwrap().matches(&labels)
    }

    #[test]
    fn every_operator_of_a_requirement_matches() {
        let labels = &[("app", "web"), ("tier", "front"), ("n", "5"), ("e", "")];
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app!=web", false),
            ("missing!=x", true),
            ("app in (db, web)", true),
            ("app notin (db,cache)", true),
            ("missing notin (db)", true),
            ("missing in (db)", false),
            ("app", true),
            ("!app", false),
            ("!missing", true),
            ("n>4,n<6", true),
            ("n>5", false),
            ("e=", true),
            ("app=", false),
            ("in=x", false),
        ] {
            assert_eq!(matches(selector, labels), expected, "{selector}");
        }
    }

    #[test]
    fn a_malformed_selector_is_a_bad_request() {
        let error = LabelSelector::parse("a b c").unwrap_err();
        assert_eq!(error.code, 400);
        assert_eq!(
            error.message,
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
        );
        assert!(LabelSelector::parse("a in b").is_err());
        assert!(LabelSelector::parse("=").is_err());
    }
}
