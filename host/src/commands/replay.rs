//! `oarlock plugin replay`: runs a component as a record says, without a cluster.

use std::{fs::File, io::Write as _, path::Path, time::Duration};

use oarlock_controller::{regular_file, report::OneLine};
use oarlock_plugin::{
    Component, EngineConfig,
    component::MAX_COMPONENT_BYTES,
    record::{Call, Ended, Reader},
    replay::{self, Difference, Options, Report, Step, shorten},
};

use super::examine;
use crate::{
    args::{ReplayArgs, ReplayOutput},
    failure::{Ended as CommandEnded, Failure},
};

pub(crate) async fn run(args: ReplayArgs, engine: EngineConfig) -> CommandEnded {
    let ReplayArgs { record, component, call, keep_going, ignore, print, output } = args;
    let engine = examine::engine(engine)?;
    let unusable =
        |path: &Path, error: anyhow::Error| Failure::caller(error.context(path.display().to_string()));
    let file = File::open(&record).map_err(|error| unusable(&record, error.into()))?;
    let mut reader =
        Reader::new(std::io::BufReader::new(file)).map_err(|error| unusable(&record, error.into()))?;
    let bytes = regular_file::read(&component, MAX_COMPONENT_BYTES as u64)
        .map_err(|error| unusable(&component, error.into()))?;
    let component =
        Component::compile(&engine, bytes).await.map_err(|error| unusable(&component, error.into()))?;

    let options = Options { until: call, keep_going, ignore };
    let mut text = String::new();
    let each = |step: Step<'_>| {
        if call == Some(step.call.number) && output == ReplayOutput::Human {
            text.push_str(&detail(&step));
        } else if print && output == ReplayOutput::Human {
            text.push_str(&line(&step));
        }
        if text.len() > 64 << 10 {
            // A reader that is gone ends the command at the report.
            let _ = std::io::stdout().write_all(text.as_bytes());
            text.clear();
        }
    };
    let report = Box::pin(replay::replay(&mut reader, &component, &options, each))
        .await
        .map_err(|error| unusable(&record, error.into()))?;
    match output {
        ReplayOutput::Human => text.push_str(&shown(&report)),
        ReplayOutput::Json => {
            text = serde_json::to_string_pretty(&report).map_err(Failure::running)?;
            text.push('\n');
        }
    }
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::running)?;
    match report.differences.len() {
        0 => Ok(()),
        n => Err(Failure::running(anyhow::anyhow!(
            "the component differs from the record in {n} {}",
            if n == 1 { "place" } else { "places" }
        ))),
    }
}

/// Returns one line about a call.
fn line(step: &Step<'_>) -> String {
    let Step { call, ended, differences } = step;
    let verdict = match (ended, differences.len()) {
        (None, _) => "skipped".to_owned(),
        (Some(_), 0) => "equal".to_owned(),
        (Some(_), n) => format!("{n} different"),
    };
    let number = match call.number {
        0 => "start".to_owned(),
        n => format!("call {n}"),
    };
    let Call { instance, function, imports, .. } = call;
    let (function, about) = (OneLine(function).to_string(), about(call));
    format!(
        "{number:<10} instance {instance:<3} {function:<10} {about:<40} {:>4} imports  {verdict}\n",
        imports.len()
    )
}

/// Returns the object or key that a call is about.
fn about(call: &Call) -> String {
    let text = |pointer: &str| call.argument.pointer(pointer).and_then(|it| it.as_str()).unwrap_or_default();
    let kind = [text("/subscription"), text("/kind")].concat();
    let about = match (text("/object/namespace"), text("/object/name")) {
        ("", "") => kind,
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    };
    OneLine(about).to_string()
}

/// Returns everything about one call.
fn detail(step: &Step<'_>) -> String {
    let Step { call, ended, .. } = step;
    let seconds = Duration::from_millis(call.time_ms).as_secs();
    let mut text = format!("{}  at {seconds} s since 1970\n", line(step).trim_end());
    text += &format!("  argument  {}\n", OneLine(shorten(&call.argument.to_string())));
    for (i, import) in call.imports.iter().enumerate() {
        let answer = import.answer.as_ref().map_or_else(|| "no answer".to_owned(), ToString::to_string);
        let arguments = shorten(&import.arguments.to_string());
        let function = OneLine(&import.function);
        text += &format!("  import {:<3} {function} {}\n", i + 1, OneLine(arguments));
        text += &format!("             → {}\n", OneLine(shorten(&answer)));
    }
    text += &format!("  recorded  {}\n", OneLine(end(&call.ended)));
    if let Some(ended) = ended {
        text += &format!("  replayed  {}\n", OneLine(end(ended)));
    }
    text
}

fn end(ended: &Ended) -> String {
    match ended {
        Ended::Answer(answer) => shorten(&answer.to_string()),
        Ended::Failed { message, .. } => shorten(message),
        Ended::Cancelled => "the host dropped the call".to_owned(),
    }
}

/// Returns the result for people.
fn shown(report: &Report) -> String {
    let Report { plugin, exact, calls, imports, skipped, differences, notes } = report;
    let mut text = String::new();
    for Difference { call, instance, function, import, at, recorded, actual, comparable } in differences {
        let call =
            if *call == 0 { "start".to_owned() } else { format!("call {call}, {}", OneLine(function)) };
        let import = import.map(|n| format!(", import {n}")).unwrap_or_default();
        text += &format!("{call}, instance {instance}{import}: {}\n", OneLine(at));
        text += &format!("  recorded  {}\n  replayed  {}\n", OneLine(recorded), OneLine(actual));
        if !comparable {
            text += "  The imports diverge here: the rest of the call is not comparable.\n";
        }
    }
    for note in notes {
        text += &format!("note: {}\n", OneLine(note));
    }
    if !exact && !differences.is_empty() {
        text +=
            "note: values of Secrets are pseudonyms in this record: a guest that looks at them may differ\n";
    }
    let verdict = match differences.len() {
        0 => "equal".to_owned(),
        n => format!("{n} different"),
    };
    let skipped = match skipped {
        0 => String::new(),
        n => format!(", {n} calls skipped: the record lacks a part of them"),
    };
    let plugin = OneLine(plugin);
    text += &format!("{plugin}: {calls} calls, {imports} imports: {verdict}{skipped}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_both_values() {
        let mut report = Report {
            plugin: "mirror".to_owned(),
            exact: false,
            calls: 7,
            imports: 31,
            skipped: 0,
            differences: vec![Difference {
                call: 7,
                instance: 1,
                function: "on-add".to_owned(),
                import: Some(3),
                at: "client.apply /json → /metadata/labels/app".to_owned(),
                recorded: "\"a\"".to_owned(),
                actual: "\"b\"".to_owned(),
                comparable: true,
            }],
            notes: vec!["the record reached its limit: later calls are not in it".to_owned()],
        };
        insta::assert_snapshot!(shown(&report), @r#"
        call 7, on-add, instance 1, import 3: client.apply /json → /metadata/labels/app
          recorded  "a"
          replayed  "b"
        note: the record reached its limit: later calls are not in it
        note: values of Secrets are pseudonyms in this record: a guest that looks at them may differ
        mirror: 7 calls, 31 imports: 1 different
        "#);
        report.differences.clear();
        report.notes.clear();
        report.skipped = 2;
        insta::assert_snapshot!(shown(&report), @"mirror: 7 calls, 31 imports: equal, 2 calls skipped: the record lacks a part of them");
    }

    #[test]
    fn no_text_of_a_record_controls_the_terminal() {
        let evil = "a\u{1b}[2J\nb".to_owned();
        for argument in [
            serde_json::json!({"kind": evil}),
            serde_json::json!({"subscription": evil, "object": {"namespace": evil, "name": evil}}),
        ] {
            let call = Call {
                number: 1,
                instance: 1,
                time_ms: 0,
                function: evil.clone(),
                argument,
                imports: vec![oarlock_plugin::record::Import {
                    function: evil.clone(),
                    arguments: evil.clone().into(),
                    answer: Some(evil.clone().into()),
                }],
                ended: Ended::Answer(evil.clone().into()),
                lost_before: 0,
                cut: false,
            };
            let text = detail(&Step { call: &call, ended: Some(&call.ended), differences: &[] });
            assert!(!text.contains('\u{1b}') && text.lines().count() == 6, "{text}");
        }
        let report = Report {
            plugin: evil.clone(),
            exact: true,
            calls: 1,
            imports: 1,
            skipped: 0,
            differences: vec![Difference {
                call: 1,
                instance: 1,
                function: evil.clone(),
                import: None,
                at: evil.clone(),
                recorded: evil.clone(),
                actual: evil.clone(),
                comparable: true,
            }],
            notes: vec![evil],
        };
        let text = shown(&report);
        assert!(!text.contains('\u{1b}') && text.lines().count() == 5, "{text}");
    }
}
