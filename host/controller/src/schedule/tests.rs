use std::collections::BTreeSet;

use jiff::civil::date;
use jiff::tz::TimeZone;
use oarlock_plugin::contract::{Schedule, WallTimes};
use parking_lot::Mutex;

use super::*;

/// Runs schedules under a paused clock, with a wall clock that follows it and can be set.
struct Rig {
    queue: PluginQueue,
    active: ActiveSchedules,
    /// How far the wall clock was set.
    set: Arc<Mutex<SignedDuration>>,
    token: CancellationToken,
}

fn wall(year: i16, month: i8, day: i8, hour: i8, minute: i8) -> Timestamp {
    date(year, month, day).at(hour, minute, 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp()
}

fn every(name: &str, seconds: u32) -> Schedule {
    Schedule {
        name: name.to_owned(),
        trigger: contract::Trigger::EverySeconds(seconds),
        at_start: false,
        key: None,
    }
}

fn at(name: &str, cron: &str, time_zone: &str) -> Schedule {
    let times = WallTimes { cron: cron.to_owned(), time_zone: time_zone.to_owned() };
    Schedule { trigger: contract::Trigger::At(times), ..every(name, 1) }
}

fn plans(schedules: &[Schedule]) -> Arc<[SchedulePlan]> {
    schedules.iter().map(|it| SchedulePlan::of(it.clone()).unwrap()).collect()
}

impl Rig {
    fn start(wall_began: Timestamp) -> Self {
        let (queue, began) = (PluginQueue::default(), Instant::now());
        let set: Arc<Mutex<SignedDuration>> = Arc::default();
        let wall_set = Arc::clone(&set);
        let clock = WallClock::controlled(move || {
            let passed = SignedDuration::try_from(began.elapsed()).unwrap();
            let set: SignedDuration = *wall_set.lock();
            (wall_began + passed + set).into()
        });
        let (runner, active) = Runner::new("plugin".into(), queue.clone(), clock, false);
        let token = CancellationToken::new();
        #[expect(clippy::disallowed_methods, reason = "ends with the test")]
        tokio::spawn(runner.run(token.clone()));
        Self { queue, active, set, token }
    }

    fn serve(&self, schedules: &[Schedule]) {
        self.active.send_replace(plans(schedules));
    }

    /// Lets time pass, and returns the kinds of the keys that were added, in their order.
    async fn pass(&self, duration: Duration) -> Vec<String> {
        tokio::time::sleep(duration).await;
        // Timers of this moment have fired; their tasks run.
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        self.queue.take_ready().iter().map(|key| key.kind.clone()).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn an_interval_fires_once_in_each_interval() {
    let rig = Rig::start(wall(2026, 3, 1, 0, 0));
    rig.serve(&[every("expire", 60)]);
    for _ in 0..5 {
        assert_eq!(rig.pass(MINUTE).await, ["expire"]);
    }
    rig.serve(&[]);
    assert!(rig.pass(10 * MINUTE).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_swap_continues_an_equal_schedule_and_at_start_fires_for_the_first_version_only() {
    let rig = Rig::start(wall(2026, 3, 1, 0, 0));
    let catch_up = Schedule { at_start: true, ..every("catch-up", 3_600) };
    rig.serve(std::slice::from_ref(&catch_up));
    assert_eq!(rig.pass(Duration::from_millis(1)).await, ["catch-up"]);
    let mut n_fired = 0;
    // A version each 10 minutes does not delay the schedule.
    for n in 0..18 {
        rig.serve(&[catch_up.clone(), every(&format!("version-{n}"), 86_400)]);
        n_fired += rig.pass(10 * MINUTE).await.iter().filter(|it| *it == "catch-up").count();
    }
    assert_eq!(n_fired, 3);
    // Another interval is another schedule, and no first version.
    rig.serve(&[Schedule { at_start: true, ..every("catch-up", 86_400) }]);
    assert!(rig.pass(Duration::from_millis(1)).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_time_of_day_follows_the_time_zone_over_daylight_saving() {
    // In Berlin the clocks go from 02:00 to 03:00 on 2026-03-29, and back on 2026-10-25.
    let rig = Rig::start(wall(2026, 3, 28, 0, 0));
    rig.serve(&[at("report", "30 2 * * *", "Europe/Berlin")]);
    // 02:30 on the 28th is 01:30 UTC.
    assert!(rig.pass(HOUR + 29 * MINUTE).await.is_empty());
    assert_eq!(rig.pass(2 * MINUTE).await, ["report"]);
    // 02:30 on the 29th does not exist: it fires just after the gap, at 01:00 UTC.
    assert!(rig.pass(23 * HOUR + 28 * MINUTE).await.is_empty());
    assert_eq!(rig.pass(2 * MINUTE).await, ["report"]);
    let rig = Rig::start(wall(2026, 10, 24, 12, 0));
    rig.serve(&[at("report", "30 2 * * *", "Europe/Berlin")]);
    // 02:30 comes twice, at 00:30 and at 01:30 UTC; it fires once.
    assert_eq!(rig.pass(14 * HOUR).await, ["report"]);
}

#[tokio::test(start_paused = true)]
async fn several_times_that_pass_at_once_fire_once() {
    let rig = Rig::start(wall(2026, 3, 1, 0, 0));
    rig.serve(&[at("hourly", "0 * * * *", "")]);
    assert_eq!(rig.pass(HOUR + MINUTE).await, ["hourly"]);
    *rig.set.lock() = SignedDuration::from_hours(7);
    assert_eq!(rig.pass(MINUTE).await, ["hourly"]);
    assert!(rig.pass(50 * MINUTE).await.is_empty());
    assert_eq!(rig.pass(10 * MINUTE).await, ["hourly"]);
}

#[tokio::test(start_paused = true)]
async fn a_time_fires_again_only_if_the_clock_is_set_back_by_more_than_an_hour() {
    let rig = Rig::start(wall(2026, 3, 1, 5, 50));
    rig.serve(&[at("six", "0 6 * * *", "")]);
    assert_eq!(rig.pass(15 * MINUTE).await, ["six"]);
    *rig.set.lock() = SignedDuration::from_mins(-30);
    assert!(rig.pass(HOUR).await.is_empty());
    *rig.set.lock() = SignedDuration::from_hours(-4);
    assert_eq!(rig.pass(4 * HOUR).await, ["six"]);
}

#[tokio::test(start_paused = true)]
async fn the_delay_of_a_wall_time_does_not_depend_on_when_the_schedule_starts() {
    let mut delays = BTreeSet::new();
    for seconds_before in 1..=60 {
        let began = wall(2026, 3, 1, 12, 0) - SignedDuration::from_secs(seconds_before);
        let rig = Rig::start(began);
        rig.serve(&[at("noon", "0 12 * * *", "UTC")]);
        let mut passed = 0;
        while rig.pass(Duration::from_secs(1)).await.is_empty() {
            passed += 1;
            assert!(passed < 120, "it does not fire");
        }
        delays.insert(passed - seconds_before);
    }
    assert_eq!(delays.len(), 1, "{delays:?}");
}

#[tokio::test(start_paused = true)]
async fn a_full_work_queue_does_not_end_a_schedule() {
    let rig = Rig::start(wall(2026, 3, 1, 0, 0));
    let key = |n: usize| WorkKey {
        kind: "other".to_owned(),
        object: contract::ObjectKey { namespace: String::new(), name: n.to_string() },
    };
    let n_keys = (0..).take_while(|n| rig.queue.add(key(*n), None).is_ok()).count();
    rig.serve(&[every("expire", 60)]);
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(rig.pass(Duration::ZERO).await.len(), n_keys);
    assert_eq!(rig.pass(MINUTE).await, ["expire"]);
}

#[test]
fn the_schedules_of_many_plugins_fire_at_many_moments() {
    let delays: BTreeSet<_> =
        (0..1_000).map(|n| spread(&format!("plugin-{n}"), "report", LONGEST_DELAY).as_secs()).collect();
    assert_eq!(delays.len(), 30, "each second of the longest delay");
    assert_eq!(spread("a", "b", LONGEST_DELAY), spread("a", "b", LONGEST_DELAY));
}

#[test]
fn a_cron_expression_has_five_fields_and_a_time() {
    let refused = |cron: &str, zone: &str| SchedulePlan::of(at("s", cron, zone)).unwrap_err().to_string();
    for good in ["0 6 * * mon-fri", "*/15 0-5,22 1 JAN,jul *", "0 0 29 2 *", "0-59/15 * * * 7"] {
        SchedulePlan::of(at("s", good, "America/New_York")).unwrap();
    }
    for bad in [
        "",
        "* * * *",
        "0 0 0 * * *",
        "60 * * * *",
        "0 0 L * *",
        "0 0 * * 5#3",
        "@daily",
        "0 0 ? * *",
        "a b c d e",
    ] {
        assert!(refused(bad, "").contains("is not a cron expression of five fields"), "{bad}");
    }
    assert!(refused("0 0 * * *", "Mars/Olympus").contains("is not a time zone"));
    assert!(
        refused("0 0 30 2 *", "").contains("no time in the next eight years"),
        "{}",
        refused("0 0 30 2 *", "")
    );
}
