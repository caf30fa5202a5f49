use super::*;

fn guest_log(n: usize) -> Event {
    let pairs = Pairs(vec![("n".to_owned(), n.to_string())]);
    Event::GuestLog { level: Level::Info, message: "notified".to_owned(), pairs }
}

fn at(event: Event) -> Line {
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
        @r#"{"time":"2023-11-14T22:13:20.123456Z","event":"guest-log","level":"info","message":"notified","pairs":{"n":"1"},"plugin":"hello","generation":2}"#
    );
    let delivered = Event::Delivered {
        subscription: "pods".into(),
        notification: NotificationType::Update,
        namespace: "default".into(),
        name: "web".into(),
        resource_version: "12".into(),
        attempts: 1,
        took_us: 250,
        outcome: Delivery::Retry { message: "not yet".into(), after_ms: 400 },
    };
    insta::assert_snapshot!(
        serde_json::to_string(&at(delivered)).unwrap(),
        @r#"{"time":"2023-11-14T22:13:20.123456Z","event":"delivered","subscription":"pods","type":"update","namespace":"default","name":"web","resource-version":"12","attempts":1,"took-us":250,"outcome":"retry","message":"not yet","after-ms":400,"plugin":"hello","generation":2}"#
    );
}

#[test]
fn a_guest_cannot_forge_lines() {
    let message = "done\n22:13:21.000 error oarlock: \u{1b}[2Jhacked".to_owned();
    let pairs = Pairs(vec![("a".to_owned(), "b\r".to_owned())]);
    let line = at(Event::GuestLog { level: Level::Info, message, pairs }).to_string();
    assert!(!line.contains(char::is_control), "{line:?}");
    assert!(line.ends_with(r"done\n22:13:21.000 error oarlock: \u{1b}[2Jhacked a=b\r"), "{line:?}");
}

#[test]
fn a_line_for_people() {
    insta::assert_snapshot!(at(guest_log(1)), @"22:13:20.123 info  hello#2: notified n=1");
    let refused = Event::PluginRefused {
        file: "plugins/hello.yaml".into(),
        message: "no component".into(),
        hint: Some("build it".into()),
        older_version_serves: true,
    };
    insta::assert_snapshot!(at(refused), @"22:13:20.123 error hello#2: plugins/hello.yaml is not used: no component; build it (the version before goes on)");
}

#[test]
fn an_exception_is_shown_once_with_its_lines_and_its_object() {
    let lost = Event::InstanceLost {
        function: "on-add",
        about: "pods default/web".into(),
        reason: "trap",
        message: "the guest trapped: unreachable".into(),
        output: "Traceback:\n  File \"a.py\", line 3\nValueError: \u{1b}[31mno".into(),
        backtrace: "wasm backtrace:\n    0: a!<wasm function 7>\n    1: a!on-add".into(),
        losses: 1,
        restart_after_ms: 0,
        again: Some(Again { tries: 1, after_ms: Some(200) }),
    };
    let mut event = serde_json::to_value(&lost).unwrap();
    assert_eq!(event["tries"], 1);
    assert_eq!(event["after-ms"].take(), 200);
    assert_eq!(
        at(lost).to_string().lines().collect::<Vec<_>>(),
        [
            "22:13:20.123 warn  hello#2: instance lost in on-add of pods default/web (trap): the guest trapped: unreachable; \
             a fresh one starts at once; pods default/web is tried again in 200 ms, when nothing else waits (tried 1 times)",
            "    Traceback:",
            "      File \"a.py\", line 3",
            "    ValueError: \\u{1b}[31mno",
            "    wasm backtrace:",
            "        1: a!on-add",
        ]
    );
}

#[tokio::test]
async fn what_does_not_fit_is_counted() {
    let (reporter, mut reports) =
        channel(Config { capacity: 4, when_full: WhenFull::Drop, ..Config::default() });
    (0..7).for_each(|n| reporter.report(guest_log(n)));
    assert_eq!(reporter.dropped(), 3);
    assert!(matches!(reports.next().await.unwrap().event, Event::ReportsDropped { count: 3 }));
    drop(reporter);
    let mut rest = 0;
    while let Some(line) = reports.next().await {
        assert!(matches!(line.event, Event::GuestLog { .. }));
        rest += 1;
    }
    assert_eq!(rest, 4);
}

#[tokio::test(start_paused = true)]
async fn who_can_wait_waits_for_room() {
    let (reporter, mut reports) = channel(Config { capacity: 4, ..Config::default() });
    (0..3).for_each(|n| reporter.report(guest_log(n)));
    let mut room = std::pin::pin!(reporter.room());
    assert!(futures::poll!(&mut room).is_pending());
    reports.next().await.unwrap();
    room.await;
    reporter.report(guest_log(4));
    assert_eq!(reporter.dropped(), 0);
}

#[tokio::test]
async fn lines_below_the_level_are_not_made() {
    let (reporter, mut reports) = channel(Config { level: Level::Warn, ..Config::default() });
    reporter.report(guest_log(1));
    drop(reporter);
    assert!(reports.next().await.is_none());
}
