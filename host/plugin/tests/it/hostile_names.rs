//! Components with names that are expensive or dangerous to show: in backtraces, and in errors about links
//! and types.

use std::fmt::Write as _;
use std::time::Duration;

use oarlock_plugin::{CallError, Component, Limits, describe::DescribeError};
use serde_json::json;

use super::support::{Add as _, Host, deadline, engine, guest};

/// The maximum length of the output for one trap.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// Returns a name in Rust's v0 mangling whose demangled form doubles with each level: a tuple of a type, and
/// of the same type by a back reference.
fn doubling(levels: usize) -> String {
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let back_reference = |to: usize| match to {
        0 => "B_".to_owned(),
        to if to <= 62 => format!("B{}_", digits[to - 1] as char),
        to => format!("B{}{}_", digits[(to - 1) / 62] as char, digits[(to - 1) % 62] as char),
    };
    let mut name = format!("_RIC1a{}h", "T".repeat(levels));
    for level in (0..levels).rev() {
        // Positions are relative to the end of `_R`. The type of a level begins after its T.
        let _ = write!(name, "{}E", back_reference("IC1a".len() + level + 1));
    }
    name + "E"
}

fn hostile_names() -> Vec<(&'static str, String)> {
    vec![
        ("doubles 16 times", doubling(16)),
        ("doubles 24 times", doubling(24)),
        ("doubles 60 times", doubling(60)),
        ("refers to itself", "_RNvB_1a".to_owned()),
        ("a lifetime beyond all binders", "_RIC1aRLzzzzzzzzzzz_hE".to_owned()),
        ("a length that overflows", "_RNvC99999999999999999999a1b".to_owned()),
        ("a disambiguator that overflows", "_RNvCsZZZZZZZZZZZZZZZZ_1a1b".to_owned()),
        ("punycode", format!("_RNvC1au{}_{}", 5000, "a".repeat(5000))),
        ("C++, substitutions", format!("_Z1f{}", "IS_S_E".repeat(2000))),
        ("C++, nested templates", format!("_Z1aI{}{}vE", "1aI".repeat(5000), "E".repeat(5000))),
        ("legacy", format!("_ZN{}17h0123456789abcdefE", "5$LT$a".repeat(3000))),
        ("long", "x".repeat(90_000)),
        (
            "escapes",
            "\u{1b}[2J\u{1b}]0;owned\u{7}\r\n22:13:21.000 error oarlock: forged\u{202e}\u{9b}31m".to_owned(),
        ),
        ("wide", "\u{10ffff}".repeat(20_000)),
        ("empty", String::new()),
    ]
}

/// Returns the bytes of a guest in which every function of every module has this name.
fn named(guest_name: &str, function_name: &str) -> Vec<u8> {
    let component = guest(guest_name);
    let mut renamed = component[..8].to_vec();
    for (id, payload) in sections(&component) {
        match id {
            1 => section(&mut renamed, id, &with_names(payload, function_name)),
            _ => section(&mut renamed, id, payload),
        }
    }
    renamed
}

fn with_names(module: &[u8], function_name: &str) -> Vec<u8> {
    let mut renamed = module[..8].to_vec();
    let mut n_functions = 0;
    for (id, payload) in sections(module) {
        // Removes custom sections: the names, and sections that refer to them. Counts function bodies, and
        // estimates imports.
        match id {
            0 => continue,
            10 => n_functions = leb(payload).0,
            _ => {}
        }
        section(&mut renamed, id, payload);
    }
    // A few names of 90 kB are enough.
    let n_named = if function_name.len() > 4096 { 200 } else { n_functions.min(2000) };
    let first = n_functions - n_functions.min(n_named);
    let mut names = Vec::new();
    push_leb(&mut names, n_named.min(n_functions));
    for idx in first..n_functions {
        push_leb(&mut names, idx);
        push_leb(&mut names, function_name.len());
        names.extend_from_slice(function_name.as_bytes());
    }
    let mut custom = b"\x04name".to_vec();
    section(&mut custom, 0, &{
        let mut module_name = Vec::new();
        push_leb(&mut module_name, function_name.len());
        module_name.extend_from_slice(function_name.as_bytes());
        module_name
    });
    section(&mut custom, 1, &names);
    section(&mut renamed, 0, &custom);
    renamed
}

fn sections(binary: &[u8]) -> Vec<(u8, &[u8])> {
    let mut found = Vec::new();
    let mut at = 8;
    while at < binary.len() {
        let (size, size_bytes) = leb(&binary[at + 1..]);
        let begin = at + 1 + size_bytes;
        found.push((binary[at], &binary[begin..begin + size]));
        at = begin + size;
    }
    found
}

fn section(binary: &mut Vec<u8>, id: u8, payload: &[u8]) {
    binary.push(id);
    push_leb(binary, payload.len());
    binary.extend_from_slice(payload);
}

fn leb(bytes: &[u8]) -> (usize, usize) {
    let mut value = 0;
    for (idx, byte) in bytes.iter().enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * idx);
        if byte & 0x80 == 0 {
            return (value, idx + 1);
        }
    }
    panic!("a number without end");
}

fn push_leb(bytes: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn is_harmless(text: &str) -> bool {
    text.len() <= MAX_SHOWN_BYTES
        && !text.contains(|it: char| it.is_control() && it != '\n')
        && !text.contains('\u{202e}')
}

#[tokio::test]
async fn promise_4_a_trap_in_functions_with_hostile_names_has_a_short_error() {
    for (what, name) in hostile_names() {
        let component = Component::compile(engine(), named("traps", &name)).await.unwrap();
        let host = Host::of(component, Limits::default(), json!({}));
        for object in ["panic", "overflow"] {
            match host.add_once(object).await.unwrap_err() {
                CallError::Trap { message, backtrace, .. } => {
                    assert!(is_harmless(&message) && is_harmless(&backtrace), "{what}: {backtrace}");
                    assert!(backtrace.lines().count() > 1, "{what}: {backtrace}");
                    assert!(!backtrace.contains("\n22:13"), "{what}: {backtrace}");
                }
                other => panic!("{what}: {other:?}"),
            }
        }
        // The next instance works.
        host.instance().await.unwrap().add("default", "any").await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn promise_4_a_deadline_in_functions_with_hostile_names_has_a_short_error() {
    for (what, name) in hostile_names() {
        let component = Component::compile(engine(), named("loops", &name)).await.unwrap();
        let host = Host::of(component, deadline(Duration::from_millis(20)), json!({}));
        match host.add_once("any").await.unwrap_err() {
            CallError::DeadlineExceeded { backtrace, .. } => {
                assert!(is_harmless(&backtrace), "{what}: {backtrace}")
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn promise_4_a_trap_in_describe_with_hostile_names_has_a_short_error() {
    for (what, name) in hostile_names() {
        let component = Component::compile(engine(), named("panics-in-describe", &name)).await.unwrap();
        let error = Host::of(component, Limits::default(), json!({})).describe().await.unwrap_err();
        assert!(is_harmless(&error.to_string()), "{what}: {error}");
        assert!(matches!(error, DescribeError::Call(CallError::Trap { .. })), "{what}: {error}");
    }
}

#[tokio::test]
async fn promise_4_a_trap_in_reconcile_with_hostile_names_has_a_short_error() {
    let key = oarlock_plugin::contract::WorkKey {
        kind: "trap".into(),
        object: oarlock_plugin::contract::ObjectKey { namespace: "default".into(), name: "a".into() },
    };
    for (what, name) in hostile_names() {
        let component = Component::compile(engine(), named("reconciles", &name)).await.unwrap();
        let host = Host::of(component, Limits::default(), json!({}));
        match host.instance().await.unwrap().reconcile(&key).await.unwrap_err() {
            CallError::Trap { backtrace, .. } => assert!(is_harmless(&backtrace), "{what}: {backtrace}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn a_demangler_would_expand_the_hostile_names() {
    // More levels would make the name far longer than this.
    assert_eq!(doubling(2), "_RIC1aTThB5_EB4_EE");
    assert!(doubling(60).len() < 400);
}
