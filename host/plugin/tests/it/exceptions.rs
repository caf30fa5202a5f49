//! The error of a failed call has the guest's exception, once, in every language: message, file and line.

use std::sync::Arc;

use oarlock_plugin::{
    CallError, Instance,
    contract::{Error, Failure},
    kube_access::EventObject,
};

use super::support::{Add as _, Host, add};

/// Calls a hello plugin with other fields than it declared, and returns the error.
async fn exception(name: &str, fields: &[&str]) -> CallError {
    let host = Host::new(name).await;
    let mut instance: Instance = host.instance().await.unwrap();
    let (mut event, object) = add("default", "web");
    event.fields = fields.iter().map(|field| Some((*field).to_owned())).collect();
    let error = instance.on_add(&event.borrowed().argument(), object).await.unwrap_err();
    println!("{error}\n{}\n{}", error.output(), error.backtrace());
    drop(instance);
    let logged = host.lines();
    assert!(logged.is_empty(), "the exception is in the error, and not in the log as well: {logged:?}");
    error
}

fn assert_output_has(error: &CallError, words: &[&str]) {
    for word in words {
        assert_eq!(error.output().matches(word).count(), 1, "{word:?} once in {}", error.output());
    }
    assert!(error.output().lines().count() > 1, "the output has several lines: {}", error.output());
}

/// Returns the number of the line of a guest's source with this text.
fn line_of(source: &str, text: &str) -> usize {
    source.lines().position(|line| line.contains(text)).unwrap() + 1
}

#[tokio::test]
async fn a_panic_in_rust_has_its_message_and_line() {
    let error = exception("hello-rust", &["\"1\""]).await;
    let source = include_str!("../../../../plugins/hello-rust/src/lib.rs");
    let line = line_of(source, "self.text_pair(\"greeting\", fields[1]");
    assert_output_has(
        &error,
        &["index out of bounds: the len is 1 but the index is 1", &format!("lib.rs:{line}:")],
    );
}

#[tokio::test]
async fn an_assertion_in_c_has_its_message_and_line() {
    let error = exception("hello-c", &["\"1\""]).await;
    let line = line_of(include_str!("../../../../plugins/hello-c/hello.c"), "assert(fields->len");
    assert_eq!(
        error.output(),
        format!("Assertion failed: fields->len == N_FIELDS (hello.c: finish: {line})")
    );
}

#[tokio::test]
async fn a_panic_in_go_has_its_message_and_line() {
    let error = exception("hello-go", &["\"1\""]).await;
    let source =
        include_str!("../../../../plugins/hello-go/exports/export_oarlock_plugin_handler/handler.go");
    let line = line_of(source, "n.textPair(\"greeting\", fields[hello.Greeting])");
    assert_output_has(&error, &["index out of range [1] with length 1", &format!("handler.go:{line}")]);
}

#[tokio::test]
async fn an_exception_in_typescript_has_its_message_and_line() {
    let error = exception("hello-ts", &["\"1\"", "no JSON"]).await;
    // Line numbers are those of the bundled JavaScript, without types and comments.
    assert_output_has(&error, &["unexpected token: 'no'", "at text (/hello.ts:"]);
}

#[tokio::test]
async fn an_exception_in_python_has_its_message_and_line() {
    let error = exception("hello-python", &["\"1\"", "no JSON"]).await;
    let source = include_str!("../../../../plugins/hello-python/hello.py");
    let line = line_of(source, "value = json.loads(field)");
    assert_output_has(
        &error,
        &["JSONDecodeError: Expecting value", &format!("hello.py\", line {line}, in text")],
    );
}

#[tokio::test]
async fn prints() {
    let host = Host::new("prints").await;
    let mut instance = host.instance().await.unwrap();
    instance.add("default", "web").await.unwrap().unwrap();
    assert_eq!(host.lines(), ["printed web", "to standard error"]);
    // A failure is not an exception: the output before it is in the log.
    let answer = instance.add("default", "retry").await.unwrap();
    assert_eq!(answer, Err(Failure::Retry("as asked".into())));
    assert_eq!(host.lines().len(), 4);
    instance.add("default", "again").await.unwrap().unwrap();
    // The output just before an exception is part of the error, and is not logged.
    let error = instance.add("default", "raise").await.unwrap_err();
    assert!(error.output().starts_with("printed raise\nto standard error\nTraceback"), "{}", error.output());
    assert!(
        error.output().contains("prints.py\", line 42, in on_add\nValueError: two\nlines"),
        "{}",
        error.output()
    );
    assert_eq!(host.lines().len(), 6);
    let error = host.add_once("exit").await.unwrap_err();
    assert!(error.output().contains("to standard error"), "{error:?}");
}

/// An object whose methods panic, as a bug of the host.
struct Bug;

impl EventObject for Bug {
    fn field(&self, _: &str) -> Result<Option<String>, Error> {
        panic!("a bug\n\u{1b}[2Jof the host")
    }

    fn fields(&self, _: &[String]) -> Result<Vec<Option<String>>, Error> {
        panic!("a bug")
    }

    fn json(&self) -> Result<String, Error> {
        panic!("a bug")
    }
}

#[tokio::test]
async fn promise_4_a_panic_of_the_host_within_a_call_ends_only_the_instance() {
    let host = Host::new("hello-rust").await;
    let mut instance = host.instance().await.unwrap();
    let (mut event, object) = add("default", "web");
    event.fields = vec![None, None];
    let event = event.borrowed();
    let error = instance.on_add(&event.argument(), Arc::new(Bug)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        r"the host panicked while it served the guest: a bug\n\u{1b}[2Jof the host; this is a bug of the host"
    );
    assert_eq!(
        instance.on_add(&event.argument(), Arc::clone(&object) as _).await.unwrap_err(),
        CallError::Dead
    );
    host.instance().await.unwrap().on_add(&event.argument(), object).await.unwrap().unwrap();
}
