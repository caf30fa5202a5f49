mod messages;

use super::*;

fn guest_log(n: usize) -> HostEvent {
    let pairs = Pairs(vec![("n".to_owned(), n.to_string())]);
    HostEvent::GuestLog { level: Level::Info, object: None, message: "notified".to_owned(), pairs }
}

fn at(event: HostEvent) -> Line {
    Line {
        time: Timestamp::from_microseconds(1_700_000_000_123_456),
        event,
        plugin: Some("hello".into()),
        generation: Some(2),
    }
}

#[test]
fn a_line_is_one_json_object() {
    insta::assert_snapshot!(
        serde_json::to_string(&at(guest_log(1))).unwrap(),
        @r#"{"time":"2023-11-14T22:13:20.123456Z","level":"info","event":"guest-log","message":"notified","pairs":{"n":"1"},"plugin":"hello","generation":2}"#
    );
    let delivered = HostEvent::Delivered {
        subscription: "pods".into(),
        notification: NotificationType::Update,
        namespace: "default".into(),
        name: "web".into(),
        resource_version: "12".into(),
        attempts: 1,
        took_us: 250,
        outcome: CallOutcome::Retry { message: "not yet".into(), after_ms: 400 },
    };
    insta::assert_snapshot!(
        serde_json::to_string(&at(delivered)).unwrap(),
        @r#"{"time":"2023-11-14T22:13:20.123456Z","level":"warn","event":"delivered","subscription":"pods","type":"update","namespace":"default","name":"web","resource-version":"12","attempts":1,"took-us":250,"outcome":"retry","message":"not yet","after-ms":400,"plugin":"hello","generation":2}"#
    );
}

#[test]
fn a_guest_log_line_cannot_forge_another_line() {
    let message = "done\n22:13:21.000 error oarlock: \u{1b}[2Jhacked".to_owned();
    let pairs = Pairs(vec![("a".to_owned(), "b\r".to_owned())]);
    let line = at(HostEvent::GuestLog { level: Level::Info, object: None, message, pairs }).to_string();
    assert!(!line.contains(char::is_control), "{line:?}");
    assert!(line.ends_with(r"done\n22:13:21.000 error oarlock: \u{1b}[2Jhacked a=b\r"), "{line:?}");
}

#[test]
fn every_json_line_has_its_level() {
    for (event, level) in [
        (HostEvent::HostStopping { asked: true }, "info"),
        (HostEvent::WatchTrouble { resource: "v1/pods".into(), message: "no".into() }, "warn"),
        (HostEvent::ReportsDropped { count: 1 }, "error"),
        (
            HostEvent::GuestLog {
                level: Level::Trace,
                object: None,
                message: String::new(),
                pairs: Pairs::default(),
            },
            "trace",
        ),
    ] {
        let line = Line { time: Timestamp::now(), event, plugin: None, generation: None };
        let text = serde_json::to_string(&line).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["level"], level);
        assert_eq!(json["hint"].as_str(), line.event.hint());
        assert_eq!(text.matches(r#""level":"#).count(), 1, "{text}");
    }
}

#[test]
fn text_of_a_guest_cannot_control_a_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}txt\r\u{7f}";
    let text = || evil.to_owned();
    for event in [
        HostEvent::PluginLoaded {
            version: text(),
            digest: text(),
            mode: Mode::First,
            took_ms: 1,
            took_us: 1,
            stands_by: false,
        },
        HostEvent::PluginRefused {
            file: text(),
            message: text(),
            hint: Some(text()),
            older_version_serves: false,
        },
        HostEvent::PluginWaiting { waits_for: vec![text()] },
        HostEvent::SubscriptionForbidden {
            subscription: text(),
            resource: text(),
            message: text(),
            hint: Some(text()),
        },
        HostEvent::InstanceLost {
            function: "on-add",
            about: text(),
            reason: "trap",
            message: text(),
            output: text(),
            backtrace: text(),
            losses: 1,
            restart_after_ms: Some(1),
            next_try: None,
        },
        HostEvent::GuestLog {
            level: Level::Error,
            object: None,
            message: text(),
            pairs: Pairs(vec![(text(), text())]),
        },
        HostEvent::Reconciled {
            kind: text(),
            namespace: text(),
            name: text(),
            took_us: 1,
            outcome: CallOutcome::Parked { message: text() },
        },
    ] {
        let line = at(event);
        // Indented continuation lines are allowed.
        let shown = line.to_string().replace("\n    ", " ");
        assert!(!shown.contains(|it: char| it.is_control() || it == '\u{202e}'), "{shown:?}");
        assert!(shown.contains(r"\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}txt"), "{shown}");
        let json = String::from_utf8(to_json(&line).unwrap()).unwrap();
        assert!(!json.contains(|it: char| it.is_control() || it == '\u{202e}'), "{json:?}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&json).unwrap(),
            serde_json::to_value(&line).unwrap()
        );
    }
}

#[test]
fn the_message_of_a_guest_panic_keeps_its_lines() {
    let message = "panicked at src/lib.rs:12:5:\nexpected a Pod,\tgot\n\u{1b}[31mnothing\n".to_owned();
    let line =
        at(HostEvent::GuestLog { level: Level::Error, object: None, message, pairs: Pairs::default() });
    insta::assert_snapshot!(line, @r"
    22:13:20.123 error hello#2: panicked at src/lib.rs:12:5:
        expected a Pod,    got
        \u{1b}[31mnothing
    ");
}

#[test]
fn a_lost_instance_is_reported_with_its_object_output_and_named_frames() {
    let lost = HostEvent::InstanceLost {
        function: "on-add",
        about: "pods default/web".into(),
        reason: "trap",
        message: "the guest trapped: unreachable".into(),
        output: "Traceback:\n  File \"a.py\", line 3\n\tin f\nValueError: \u{1b}[31mno".into(),
        backtrace: "wasm backtrace:\n    0: a!<wasm function 7>\n    1: a!on-add".into(),
        losses: 1,
        restart_after_ms: Some(0),
        next_try: Some(NextTry { tries: 1, after_ms: Some(200) }),
    };
    let mut event = serde_json::to_value(&lost).unwrap();
    assert_eq!(event["tries"], 1);
    assert_eq!(event["after-ms"].take(), 200);
    assert_eq!(
        at(lost).to_string().lines().collect::<Vec<_>>(),
        [
            "22:13:20.123 warn  hello#2: instance lost in on-add of pods default/web (trap): the guest trapped: unreachable. \
             A fresh instance starts at once. The next call for pods default/web is made in 200 ms or later, when no other \
             work is ready (calls so far: 1)",
            "    Traceback:",
            "      File \"a.py\", line 3",
            "        in f",
            "    ValueError: \\u{1b}[31mno",
            "    wasm backtrace:",
            "        1: a!on-add",
        ]
    );
}

#[test]
fn a_backtrace_without_names_is_not_shown_beside_what_the_guest_wrote() {
    let lost = |output: &str| HostEvent::InstanceLost {
        function: "on-add",
        about: String::new(),
        reason: "trap",
        message: "unreachable".into(),
        output: output.into(),
        backtrace: "wasm backtrace:\n    0: a!<wasm function 7>".into(),
        losses: 1,
        restart_after_ms: Some(0),
        next_try: None,
    };
    assert!(!at(lost("panic: no")).to_string().contains("wasm backtrace"));
    assert!(at(lost("")).to_string().contains("<wasm function 7>"));
}

/// Receives a line if there is one, however many were received before.
fn next_now(reports: &mut Reports) -> Option<Line> {
    futures::FutureExt::now_or_never(tokio::task::unconstrained(reports.next())).flatten()
}

/// Receives all lines that wait; returns how many there were, and how many were dropped.
async fn received(reports: &mut Reports) -> (usize, u64) {
    let (mut n_lines, mut n_dropped) = (0, 0);
    while let Some(line) = next_now(reports) {
        match line.event {
            HostEvent::ReportsDropped { count } => n_dropped += count,
            _ => n_lines += 1,
        }
    }
    (n_lines, n_dropped)
}

fn long_log(length: usize) -> HostEvent {
    HostEvent::GuestLog {
        level: Level::Info,
        object: None,
        message: "x".repeat(length),
        pairs: Pairs::default(),
    }
}

#[tokio::test]
async fn unread_lines_take_no_more_memory_than_the_limit() {
    let max_bytes = 1 << 20;
    let (reporter, mut reports) = channel(Config { max_bytes, ..Config::default() });
    let started = HostEvent::HostStarted { server: "s".repeat(9_000), version: "1" };
    for n in 0..10_000 {
        reporter.about(&format!("p{n}").into(), 1).report(long_log(28_000));
        reporter.report(started.clone());
        assert!(reporter.waiting_bytes() <= max_bytes, "{}", reporter.waiting_bytes());
    }
    let dropped = reporter.dropped();
    assert!(dropped > 19_000, "{dropped}");
    let (n_lines, n_dropped) = received(&mut reports).await;
    assert_eq!((n_lines as u64 + n_dropped, n_dropped), (20_000, dropped), "each line is printed or counted");
    assert_eq!(reporter.waiting_bytes(), 0);
    reporter.report(started);
    assert_eq!(received(&mut reports).await, (1, 0), "a reader that is back gets lines again");
}

#[tokio::test]
async fn lines_without_text_count_with_their_own_size() {
    let (reporter, mut reports) = channel(Config { max_bytes: 1 << 20, ..Config::default() });
    (0..100_000).for_each(|_| reporter.report(HostEvent::HostStopping { asked: true }));
    let (n_lines, n_dropped) = received(&mut reports).await;
    assert!(n_lines * size_of::<Line>() <= 1 << 20 && n_dropped > 90_000, "{n_lines} and {n_dropped}");
}

#[tokio::test]
async fn a_plugin_that_floods_its_log_leaves_room_for_other_plugins_and_the_host() {
    let (reporter, mut reports) = channel(Config { max_bytes: 1 << 20, ..Config::default() });
    let flooding = reporter.about(&"flood".into(), 1);
    (0..10_000).for_each(|_| flooding.report(long_log(1000)));
    let before = reporter.dropped();
    assert!(before > 0);
    for n in 0..5 {
        reporter.about(&format!("calm-{n}").into(), 1).report(long_log(1000));
    }
    assert_eq!(reporter.dropped(), before, "other plugins still have room");
    for n in 0..20 {
        let other = reporter.about(&format!("other-{n}").into(), 1);
        (0..1000).for_each(|_| other.report(long_log(1000)));
    }
    let before = reporter.dropped();
    reporter.report(HostEvent::HostStopping { asked: true });
    assert_eq!(reporter.dropped(), before, "the host still has room");
    let mut received_from = Vec::new();
    while let Some(line) = next_now(&mut reports) {
        received_from.extend(line.plugin.map(|plugin| plugin.to_string()));
        if matches!(line.event, HostEvent::HostStopping { .. }) {
            received_from.push("the host".to_owned());
        }
    }
    for sender in ["flood", "calm-0", "calm-4", "the host"] {
        assert!(received_from.iter().any(|it| it == sender), "{sender}");
    }
}

#[tokio::test]
async fn lines_without_a_receiver_are_counted() {
    let (reporter, reports) = channel(Config::default());
    drop(reports);
    reporter.about(&"p".into(), 1).report(guest_log(1));
    reporter.report(guest_log(2));
    assert_eq!((reporter.dropped(), reporter.waiting_bytes()), (2, 0));
}

#[tokio::test]
async fn lines_that_the_printer_could_not_print_are_reported_later() {
    let (reporter, mut reports) = channel(Config::default());
    reports.lost(3);
    assert_eq!((received(&mut reports).await, reporter.dropped()), ((0, 3), 3));
}

#[tokio::test]
async fn events_below_the_level_are_not_reported() {
    let (reporter, mut reports) = channel(Config { level: Level::Warn, ..Config::default() });
    reporter.report(guest_log(1));
    drop(reporter);
    assert!(reports.next().await.is_none());
}
