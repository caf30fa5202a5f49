//! Label selectors of Kubernetes: `app=web,tier in (a,b),!legacy`.
//!
//! A [`LabelSelector`] is parsed from the string form that `kubectl -l` takes, or from the JSON form that
//! objects carry (`matchLabels`, `matchExpressions`). It matches any type that implements [`Labels`].
//! Grammar, meaning and error messages are those of `k8s.io/apimachinery/pkg/labels`.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use oarlock_label_selector::LabelSelector;
//!
//! let selector: LabelSelector = "app=web,tier notin (test)".parse()?;
//! let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
//! assert!(selector.matches(&labels));
//!
//! let error = "app in web".parse::<LabelSelector>().unwrap_err();
//! assert_eq!(error.to_string(), "unable to parse requirement: found 'web' expected: '('");
//! # Ok::<(), oarlock_label_selector::ParseError>(())
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod labels;
mod parser;
mod requirement;
mod selector;
pub mod validation;

pub use labels::Labels;
pub use parser::{ParseError, RequirementError};
pub use selector::{JsonError, LabelSelector};
