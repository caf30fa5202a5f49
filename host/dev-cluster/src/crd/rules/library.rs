//! The functions of rules: CEL's standard library and extensions, and Kubernetes' own functions.
//!
//! Missing are `authorizer`, which only admission policies have, and `semver`. A rule that calls them is
//! refused by name.

mod lists;
mod net;
mod quantity;
mod strings;

use cel::{Context, Env, ExecutionError, Program, Value, extensions};
use std::sync::{Arc, LazyLock};

struct Library {
    env: Arc<Env>,
    context: Context<'static, 'static>,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(Library::new);

/// The function names of `strings`, `net` and `quantity`, for the check of a definition.
type Functions = &'static [&'static str];

// === impl Library ===

impl Library {
    #[expect(clippy::expect_used, reason = "each name is declared once, which a test shows")]
    fn new() -> Self {
        let mut env = Env::stdlib();
        for extension in [extensions::strings, extensions::lists, extensions::math, extensions::encoders] {
            env.add_extension(extension).expect("an extension is added once");
        }
        lists::declare(&mut env).expect("a function is declared once");
        let env = Arc::new(env);
        let mut context = Context::with_env(env.clone());
        strings::declare(&mut context).expect("a function is declared once");
        net::declare(&mut context).expect("a function is declared once");
        quantity::declare(&mut context).expect("a function is declared once");
        Self { env, context }
    }
}

/// Compiles an expression. The error is for the author of the definition.
pub(super) fn compile(source: &str) -> Result<Program, String> {
    LIBRARY.env.compile(source).map_err(|errors| errors.to_string())
}

/// Evaluates an expression with these variables. A variable without a value is undefined.
pub(super) fn evaluate(
    program: &Program,
    variables: &[(&str, Option<Value>)],
) -> Result<Value, ExecutionError> {
    let mut context = LIBRARY.context.new_inner_scope();
    for (name, value) in variables {
        if let Some(value) = value {
            context.add_variable_from_value(*name, value.clone());
        }
    }
    program.execute(&context)
}

/// Returns the value of an expression over `self`.
pub(super) fn convert(source: &str, value: Value) -> Option<Value> {
    evaluate(&compile(source).ok()?, &[("self", Some(value))]).ok()
}

/// Parses a duration such as `1h30m`.
pub(super) fn duration(text: &str) -> Option<Value> {
    convert("duration(self)", Value::String(Arc::new(text.to_owned())))
}

/// The functions of `cel`'s environment, as its parser names them.
const STANDARD: Functions = &[
    "!_",
    "-_",
    "@in",
    "@not_strictly_false",
    "_!=_",
    "_%_",
    "_&&_",
    "_*_",
    "_+_",
    "_-_",
    "_/_",
    "_<=_",
    "_<_",
    "_==_",
    "_>=_",
    "_>_",
    "_?_:_",
    "_[?_]",
    "_?._",
    "_[_]",
    "_||_",
    "_?_",
    "in",
    "__not_strictly_false__",
    "base64.decode",
    "base64.encode",
    "bool",
    "bytes",
    "charAt",
    "contains",
    "decode",
    "distinct",
    "double",
    "duration",
    "dyn",
    "encode",
    "endsWith",
    "flatten",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "int",
    "join",
    "lowerAscii",
    "matches",
    "none",
    "of",
    "ofNonZeroValue",
    "optMap",
    "optFlatMap",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "quote",
    "range",
    "replace",
    "reverse",
    "size",
    "slice",
    "sort",
    "split",
    "startsWith",
    "string",
    "strings.quote",
    "substring",
    "timestamp",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "value",
    "abs",
    "bitAnd",
    "bitNot",
    "bitOr",
    "bitShiftLeft",
    "bitShiftRight",
    "bitXor",
    "ceil",
    "floor",
    "greatest",
    "isFinite",
    "isInf",
    "isNaN",
    "least",
    "round",
    "sign",
    "sqrt",
    "trunc",
    "lists.range",
    "@sortByAssociatedKeys",
];

/// Returns whether rules may call this function.
pub(super) fn has_function(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_namespaced = name.split_once('.').is_some_and(|(first, _)| is_namespace(first));
    name.starts_with(['@', '_'])
        || [STANDARD, lists::NAMES, strings::NAMES, net::NAMES, quantity::NAMES]
            .iter()
            .any(|names| names.contains(&name) || is_namespaced && names.contains(&last))
}

/// Returns whether this is a namespace of functions.
pub(super) fn is_namespace(name: &str) -> bool {
    matches!(name, "math" | "strings" | "lists" | "base64" | "optional" | "cel" | "format" | "ip" | "cidr")
}

/// Returns whether an identifier names a type.
pub(super) fn is_type(name: &str) -> bool {
    matches!(
        name,
        "bool"
            | "bytes"
            | "double"
            | "dyn"
            | "int"
            | "list"
            | "map"
            | "null_type"
            | "string"
            | "type"
            | "uint"
            | "google"
    )
}
