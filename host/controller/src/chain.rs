//! The text of an error with all its causes, on one line.

use std::{error::Error, fmt::Write};

/// Joins the messages of an error and of its causes. A message that an earlier one contains already is left
/// out.
#[must_use]
pub(crate) fn text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            // Writing into a String cannot fail.
            let _ = write!(text, ": {message}");
        }
        cause = error.source();
    }
    text
}
