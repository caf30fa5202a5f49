//! `oarlock plugin replay`: runs a component as a record says, without a cluster.

use std::{io::Write as _, path::Path, time::Duration};

use oarlock_controller::{
    regular_file,
    report::{Counted, OneLine},
};
use oarlock_plugin::{
    EngineConfig,
    record::{self, Call, Ended, Reader},
    replay::{self, Difference, Options, ReplayError, Report, Step, shorten},
};

use super::examine;
use crate::{
    args::{ReplayArgs, ReplayOutput},
    failure::{Ended as CommandEnded, Failure},
};

pub(crate) async fn run(args: ReplayArgs, engine: EngineConfig) -> CommandEnded {
    let ReplayArgs { record, component, call, keep_going, of, ignore, print, output } = args;
    let engine = examine::engine(engine)?;
    let file = regular_file::open(&record).map_err(|error| unreadable(&record, error))?;
    let mut reader = Reader::new(std::io::BufReader::new(file))
        .map_err(|error| unusable(&record, ReplayError::Record(error)))?;
    let component = examine::compile(&engine, &component).await?;

    let options = Options { until: call, keep_going, ignore, of };
    let mut printer = Printer { to: std::io::stdout(), call, print };
    let mut last = 0;
    let each = |step: Step<'_>| {
        last = last.max(step.call.number);
        if output == ReplayOutput::Human {
            printer.step(&step);
        }
    };
    let report = Box::pin(replay::replay(&mut reader, &component, &options, each))
        .await
        .map_err(|error| unusable(&record, error))?;
    let text = match output {
        ReplayOutput::Human => shown(&report),
        ReplayOutput::Json => serde_json::to_string_pretty(&report).map_err(Failure::running)? + "\n",
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::output)?;
    // A call that is not in the record may have been skipped: the replay stops at the next one then.
    if let Some(call) = call.filter(|call| last < *call) {
        return Err(absent(&record, call, last, options.of.as_deref()));
    }
    // Of one call, everything was printed above, also if the record lacks a part of it.
    if call.is_none() && has_compared_nothing(&report) {
        return Err(nothing_compared(&record, &report));
    }
    differing(&report, &options)
}

/// Prints calls while they are replayed.
struct Printer<W> {
    to: W,
    /// The call that everything is printed about.
    call: Option<u64>,
    /// Whether each call has a line.
    print: bool,
}

impl<W: std::io::Write> Printer<W> {
    fn step(&mut self, step: &Step<'_>) {
        let text = if self.call == Some(step.call.number) {
            detail(step)
        } else if self.print {
            line(step)
        } else {
            return;
        };
        // A replay may take long, and a pipe shows each call at once. A reader that is gone ends the command
        // at the report.
        let _ = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
    }
}

/// Returns the failure of a call that the record ends before.
fn absent(record: &Path, call: u64, last: u64, of: Option<&str>) -> Failure {
    let record = record.display();
    let last = match (last, of) {
        (0, _) => "it has no calls".to_owned(),
        (last, None) => format!("its last one is call {last}"),
        (last, Some(of)) => format!("the last one of the version {of} is call {last}"),
    };
    Failure::caller(anyhow::anyhow!("{record} has no call {call}: {last}")).hint("`--print` lists the calls")
}

/// Returns whether no call was compared, and no start differs.
fn has_compared_nothing(report: &Report) -> bool {
    report.calls == 0 && report.differences.is_empty()
}

/// Returns the failure of a record without a call that can be compared: the file was cut, for example. The
/// component is not equal to it, and does not differ from it.
fn nothing_compared(record: &Path, report: &Report) -> Failure {
    let mut why = match report.skipped {
        0 => "it has no calls".to_owned(),
        _ => "it lacks a part of each call".to_owned(),
    };
    for note in &report.notes {
        why += &format!("; {note}");
    }
    let error = anyhow::anyhow!("nothing to compare in {}: {why}", record.display());
    Failure::caller(error).hint("record again, and end the host after it has called the plugin")
}

/// Returns the failure of a component that differs from its record.
fn differing(report: &Report, options: &Options) -> CommandEnded {
    let Some(first) = report.differences.first() else { return Ok(()) };
    let n = report.differences.len();
    let error = anyhow::anyhow!("the component differs from the record in {}", Counted(n, "place"));
    let mut more = match &options.ignore[..] {
        [] => String::new(),
        ignored => format!(" --ignore {}", ignored.join(",")),
    };
    if let Some(of) = &options.of {
        more += &format!(" --of {of}");
    }
    Err(Failure::running(error).hint_if(match first.call {
        0 => None,
        call if options.until == Some(call) => None,
        call => Some(format!("`--call {call}{more}` prints everything about the first call that differs")),
    }))
}

/// Returns the failure of a record that cannot be read.
fn unreadable(path: &Path, error: regular_file::Error) -> Failure {
    let hint = match &error {
        regular_file::Error::NotRegular("a folder") => Some("name one of its files, such as NAME.record"),
        regular_file::Error::NotRegular(_) => Some("name the file that a host wrote with --record"),
        error if error.is_not_found() => {
            Some("check the path; `oarlock dev PLUGIN --record FILE` writes a record")
        }
        _ => None,
    };
    let error = anyhow::Error::new(error).context(format!("the record {} cannot be read", path.display()));
    Failure::caller(error).hint_if(hint)
}

/// Returns the failure of a record that cannot be replayed.
fn unusable(path: &Path, error: ReplayError) -> Failure {
    let hint = match &error {
        ReplayError::Record(record::Error::NotARecord) => {
            "name the record first and then the component: `oarlock plugin replay RECORD COMPONENT`"
        }
        ReplayError::Record(record::Error::OtherVersion { .. }) | ReplayError::OtherContract { .. } => {
            "replay it with the version of oarlock that recorded it"
        }
        ReplayError::Record(record::Error::Io(_)) => "check the disk, or copy the record again",
        ReplayError::NoVersion { .. } => {
            "give `--of` as much of a digest of the list as only one of them has"
        }
        ReplayError::OtherVersion { .. } => "`--print` with the same `--of` lists the calls of that version",
        ReplayError::NoCalls { .. } => "`--print` without `--of` lists all calls",
        ReplayError::NoEntries => "record again: the file was cut, or the host was ended while it began it",
        // Nothing comes before the damage.
        ReplayError::Record(record::Error::Damaged { at: 0..=record::FIRST_BLOCK, .. })
        | ReplayError::NoFile => "copy the record again from where the host wrote it, or record again",
        ReplayError::Record(record::Error::Damaged { .. })
        | ReplayError::Limits { .. }
        | ReplayError::TooManyInstances
        | ReplayError::StartsTooLarge => {
            "copy the record again from where the host wrote it, or record again; `--call N` replays the \
             calls before the damage"
        }
    };
    let error = match error {
        ReplayError::Record(error) => {
            anyhow::anyhow!("the record {} {:#}", path.display(), anyhow::Error::new(error))
        }
        error => anyhow::Error::new(error).context(path.display().to_string()),
    };
    Failure::caller(error).hint(hint)
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
    let n = imports.len();
    let imports = if n == 1 { "import" } else { "imports" };
    format!("{number:<10} instance {instance:<3} {function:<10} {about:<40} {n:>4} {imports:<7}  {verdict}\n")
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
    let Report { plugin, exact, calls, starts, imports, skipped, differences, notes } = report;
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
        _ if has_compared_nothing(report) => "nothing to compare".to_owned(),
        0 => "equal".to_owned(),
        n => format!("{n} different"),
    };
    let skipped = match skipped {
        0 => String::new(),
        1 => ", 1 skipped: the record lacks a part of it".to_owned(),
        n => format!(", {n} skipped: the record lacks a part of each"),
    };
    let (plugin, calls, starts) = (OneLine(plugin), Counted(*calls, "call"), Counted(*starts, "start"));
    let imports = Counted(*imports, "import");
    text += &format!("{plugin}: {calls}, {starts}, {imports}: {verdict}{skipped}\n");
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
            starts: 1,
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
        mirror: 7 calls, 1 start, 31 imports: 1 different
        "#);
        report.differences.clear();
        report.notes.clear();
        report.skipped = 2;
        insta::assert_snapshot!(shown(&report), @"mirror: 7 calls, 1 start, 31 imports: equal, 2 skipped: the record lacks a part of each");
        (report.calls, report.starts, report.imports, report.skipped) = (1, 2, 1, 1);
        insta::assert_snapshot!(shown(&report), @"mirror: 1 call, 2 starts, 1 import: equal, 1 skipped: the record lacks a part of it");
    }

    #[test]
    fn a_component_that_differs_is_an_error_that_says_how_to_see_more() {
        let report = |differences| Report {
            plugin: "mirror".to_owned(),
            exact: true,
            calls: 7,
            starts: 1,
            imports: 31,
            skipped: 0,
            differences,
            notes: Vec::new(),
        };
        let difference = |call| Difference {
            call,
            instance: 1,
            function: "on-add".to_owned(),
            import: None,
            at: "answer".to_owned(),
            recorded: "1".to_owned(),
            actual: "2".to_owned(),
            comparable: true,
        };
        let mut options = Options::default();
        assert!(differing(&report(Vec::new()), &options).is_ok());
        let said = |calls: &[u64], options: &Options| {
            let report = report(calls.iter().map(|call| difference(*call)).collect());
            differing(&report, options).unwrap_err().text()
        };
        insta::assert_snapshot!(said(&[7, 9], &options), @"
        the component differs from the record in 2 places
        hint: `--call 7` prints everything about the first call that differs
        ");
        insta::assert_snapshot!(said(&[0], &options), @"the component differs from the record in 1 place");
        // The call without these imports, as the user compared it.
        options.ignore = vec!["log".to_owned(), "metrics".to_owned()];
        insta::assert_snapshot!(said(&[7], &options), @"
        the component differs from the record in 1 place
        hint: `--call 7 --ignore log,metrics` prints everything about the first call that differs
        ");
        options.of = Some("1f0c".to_owned());
        insta::assert_snapshot!(said(&[7], &options), @"
        the component differs from the record in 1 place
        hint: `--call 7 --ignore log,metrics --of 1f0c` prints everything about the first call that differs
        ");
        // It is printed already.
        options.until = Some(7);
        insta::assert_snapshot!(said(&[7], &options), @"the component differs from the record in 1 place");
    }

    /// A writer to whom nothing is written before it is flushed.
    #[derive(Default)]
    struct Piped {
        buffered: Vec<u8>,
        written: String,
    }

    impl std::io::Write for Piped {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.buffered.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            self.written += &String::from_utf8(std::mem::take(&mut self.buffered)).unwrap();
            Ok(())
        }
    }

    #[test]
    fn each_call_is_printed_when_it_was_replayed() {
        let call = |number| Call {
            number,
            instance: 1,
            time_ms: 0,
            function: "on-add".to_owned(),
            argument: serde_json::Value::Null,
            imports: Vec::new(),
            ended: Ended::Cancelled,
            lost_before: 0,
            cut: false,
        };
        let mut printer = Printer { to: Piped::default(), call: Some(2), print: true };
        for (number, n_lines) in [(1, 1), (2, 1 + 3), (3, 4 + 1)] {
            printer.step(&Step { call: &call(number), ended: None, differences: &[] });
            assert_eq!(printer.to.written.lines().count(), n_lines, "{}", printer.to.written);
        }
        printer.print = false;
        printer.step(&Step { call: &call(4), ended: None, differences: &[] });
        assert_eq!(printer.to.written.lines().count(), 5);
    }

    #[test]
    fn a_call_that_the_record_lacks_is_an_error_that_names_the_last_one() {
        insta::assert_snapshot!(absent(Path::new("mirror.record"), 99, 42, None).text(), @"
        mirror.record has no call 99: its last one is call 42
        hint: `--print` lists the calls
        ");
        insta::assert_snapshot!(absent(Path::new("mirror.record"), 1, 0, None).text(), @"
        mirror.record has no call 1: it has no calls
        hint: `--print` lists the calls
        ");
    }

    #[test]
    fn a_record_without_calls_has_nothing_to_compare_and_is_not_equal() {
        let mut report = Report {
            plugin: "mirror".to_owned(),
            exact: true,
            calls: 0,
            starts: 1,
            imports: 5,
            skipped: 0,
            differences: Vec::new(),
            notes: vec!["the record ends within a block: the host was ended while it wrote".to_owned()],
        };
        assert!(has_compared_nothing(&report));
        let failure = nothing_compared(Path::new("cut.record"), &report);
        assert_eq!(format!("{:?}", failure.exit_code()), format!("{:?}", std::process::ExitCode::from(2)));
        insta::assert_snapshot!(failure.text(), @"
        nothing to compare in cut.record: it has no calls; the record ends within a block: the host was ended while it wrote
        hint: record again, and end the host after it has called the plugin
        ");
        insta::assert_snapshot!(shown(&report), @"
        note: the record ends within a block: the host was ended while it wrote
        mirror: 0 calls, 1 start, 5 imports: nothing to compare
        ");
        report.notes.clear();
        report.skipped = 2;
        insta::assert_snapshot!(nothing_compared(Path::new("cut.record"), &report).text(), @"
        nothing to compare in cut.record: it lacks a part of each call
        hint: record again, and end the host after it has called the plugin
        ");
        report.calls = 1;
        assert!(!has_compared_nothing(&report));
    }

    #[test]
    fn a_call_that_the_record_lacks_after_those_of_a_version_names_the_last_of_that_version() {
        insta::assert_snapshot!(absent(Path::new("mirror.record"), 9, 3, Some("1f0c")).text(), @"
        mirror.record has no call 9: the last one of the version 1f0c is call 3
        hint: `--print` lists the calls
        ");
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
            starts: 1,
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
