//! Kubernetes' functions on strings: `find` and `findAll`.

use cel::extractors::This;
use cel::{Context, DeclarationError, ExecutionError, Value};
use std::sync::Arc;

pub(super) const NAMES: super::Functions = &["find", "findAll"];

pub(super) fn declare(context: &mut Context<'static, 'static>) -> Result<(), DeclarationError> {
    context.add_function("find", find)?;
    context.add_function("findAll", find_all)
}

type Text = Arc<String>;

fn regex(name: &str, pattern: &str) -> Result<regex::Regex, ExecutionError> {
    regex::Regex::new(pattern).map_err(|error| ExecutionError::function_error(name, error))
}

fn find(This(text): This<Text>, pattern: Text) -> Result<Value, ExecutionError> {
    Ok(Value::from(regex("find", &pattern)?.find(&text).map(|found| found.as_str()).unwrap_or_default()))
}

/// `findAll(pattern)` and `findAll(pattern, limit)`; a negative limit means no limit.
fn find_all(This(text): This<Text>, arguments: cel::extractors::Arguments) -> Result<Value, ExecutionError> {
    let (pattern, limit) = match arguments.0.as_slice() {
        [Value::String(pattern)] => (pattern, -1),
        [Value::String(pattern), Value::Int(limit)] => (pattern, *limit),
        other => return Err(ExecutionError::invalid_argument_count(1, other.len())),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let regex = regex("findAll", pattern)?;
    let found = regex.find_iter(&text).take(limit).map(|found| Value::from(found.as_str()));
    Ok(Value::List(Arc::new(found.collect())))
}
