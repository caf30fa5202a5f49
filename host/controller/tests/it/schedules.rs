//! A real guest with schedules.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use jiff::Timestamp;
use oarlock_controller::runtime::{Config, WallClock};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::rig::{Rig, until_ok};

/// Counts how often the guest was called with a key of this kind.
fn n_reconciled(lines: &[Value], kind: &str) -> usize {
    lines.iter().filter(|line| line["event"] == "reconciled" && line["kind"] == kind).count()
}

/// A wall clock that stands still until the test sets it.
#[derive(Clone)]
struct Clock {
    time: Arc<Mutex<SystemTime>>,
    /// How often the host has read it.
    n_reads: Arc<AtomicUsize>,
}

// === impl Clock ===

impl Clock {
    fn at(time: &str) -> Self {
        Self { time: Arc::new(Mutex::new(parsed(time))), n_reads: Arc::default() }
    }

    fn set(&self, time: &str) {
        *self.time.lock() = parsed(time);
    }

    /// Waits until the host has read it: a schedule begins at the time that it has read.
    async fn is_read(&self) {
        until_ok("the host to read the clock", async || match self.n_reads.load(Ordering::Acquire) {
            0 => Err("it has not"),
            _ => Ok(()),
        })
        .await;
    }

    /// Starts a host with this clock.
    async fn host(&self) -> Rig {
        let Self { time, n_reads } = self.clone();
        let wall_clock = WallClock::controlled(move || {
            let now = *time.lock();
            n_reads.fetch_add(1, Ordering::AcqRel);
            now
        });
        Rig::start_with(|config| Config { wall_clock, ..config }).await
    }
}

fn parsed(time: &str) -> SystemTime {
    time.parse::<Timestamp>().unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_adds_its_key_again_and_again() {
    let rig = Rig::start().await;
    rig.plugin_with("reconciles", "reconciles", json!({"config": {"everySeconds": 1}}));
    rig.serves("reconciles", 1).await;
    rig.until(|lines| n_reconciled(lines, "tick") >= 2).await;
    rig.plugin_with("reconciles", "reconciles", json!({"config": {"everySeconds": 0}}));
    let refused = rig.event("reconciles", "plugin-refused").await;
    assert!(refused["message"].as_str().unwrap().contains("not 1 to 31536000"), "{refused}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_of_day_fires_in_its_time_zone() {
    // In summer, half past two in Berlin is half past twelve in UTC.
    let clock = Clock::at("2026-07-01T00:29:59Z");
    let rig = clock.host().await;
    let config = json!({"cron": "30 2 * * *", "timeZone": "Europe/Berlin"});
    rig.plugin_with("reconciles", "reconciles", json!({"config": config}));
    rig.serves("reconciles", 1).await;
    clock.is_read().await;
    // One minute later: the delay of a schedule is at most 30 s.
    clock.set("2026-07-01T00:31:00Z");
    rig.until(|lines| n_reconciled(lines, "tick") == 1).await;
    // The next day.
    clock.set("2026-07-02T00:31:00Z");
    rig.until(|lines| n_reconciled(lines, "tick") == 2).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_time_of_day_is_refused_by_name() {
    let rig = Rig::start().await;
    for (config, message) in [
        (json!({"cron": "61 2 * * *"}), "61 2 * * *"),
        (json!({"cron": "0 0 30 2 *"}), "has no time"),
        (json!({"cron": "0 6 * * *", "timeZone": "Europe/Berlyn"}), "Europe/Berlyn"),
    ] {
        rig.plugin_with("reconciles", "reconciles", json!({"config": config}));
        let refused = rig
            .line(|line| {
                line["event"] == "plugin-refused"
                    && line["message"].as_str().is_some_and(|it| it.contains(message))
            })
            .await;
        let text = refused["message"].as_str().unwrap();
        assert!(text.contains("tick"), "it names the schedule: {text}");
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_continues_a_schedule_and_does_not_start_it_again() {
    let clock = Clock::at("2026-07-01T00:29:59Z");
    let rig = clock.host().await;
    let version = |version: usize| {
        let config = json!({"cron": "30 0 * * *", "atStart": true, "version": version});
        rig.plugin_with("reconciles", "reconciles", json!({"config": config}));
    };
    version(1);
    rig.serves("reconciles", 1).await;
    rig.until(|lines| n_reconciled(lines, "tick") == 1).await;
    // The time comes while the next version is loaded: of a schedule that began with the second version, the
    // next time would be tomorrow.
    clock.set("2026-07-01T00:31:00Z");
    version(2);
    rig.serves("reconciles", 2).await;
    rig.until(|lines| n_reconciled(lines, "tick") >= 2).await;
    // A clock that is set back does not repeat it, for the version after that neither. A key that is added
    // when the fourth version begins comes after one of the third.
    clock.set("2026-07-01T00:29:59Z");
    version(3);
    rig.serves("reconciles", 3).await;
    clock.set("2026-07-02T00:31:00Z");
    version(4);
    rig.serves("reconciles", 4).await;
    rig.until(|lines| n_reconciled(lines, "tick") >= 3).await;
    assert_eq!(n_reconciled(&rig.lines(), "tick"), 3);
    rig.end().await;
}
