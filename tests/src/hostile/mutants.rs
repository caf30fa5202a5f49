//! Mutated components, and others that only damage makes.

use std::fs;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use serde_json::json;
use tokio::process::Command;

use super::bound::Bound;
use super::process::Resources;
use super::stage::{Latencies, Plugin, Stage};
use oarlock_built_guests::component;

/// Returns bytes that are no WebAssembly, behind the first bytes of a component.
#[must_use]
pub fn garbage(bytes: usize) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64(1);
    let mut garbage = b"\0asm\x0d\0\x01\0".to_vec();
    garbage.extend((0..bytes).map(|_| random.random::<u8>()));
    garbage
}

/// Returns a mutant of a component: bytes flipped, removed, repeated, moved, or a length changed. The same
/// number makes the same mutant.
#[must_use]
pub fn mutant(component: &[u8], number: u64) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64(number);
    let mut bytes = component.to_vec();
    // Every other mutant has one byte changed and keeps its lengths: many of these are valid, and run.
    let is_gentle = number.is_multiple_of(2);
    let (changes, kinds) = if is_gentle { (1, 3) } else { (random.random_range(1..=4), 9) };
    for _ in 0..changes {
        if bytes.len() < 16 {
            break;
        }
        let at = random.random_range(0..bytes.len());
        let length = random.random_range(1..=64).min(bytes.len() - at);
        match random.random_range(0..kinds) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + length)),
            5 => {
                let piece = bytes[at..at + length].to_vec();
                let to = random.random_range(0..bytes.len());
                bytes.splice(to..to, piece);
            }
            6 => bytes[at..at + length].fill(random.random()),
            7 => bytes[at..at + length].reverse(),
            // The largest number of five bytes, in place of one.
            _ => drop(bytes.splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0x0f])),
        }
    }
    bytes
}

/// Returns a plugin with one function that keeps a compiler busy for hours: many locals, all of them used
/// within nested loops.
///
/// # Errors
///
/// When the text is no module, which would be a mistake here.
pub fn compile_bomb() -> anyhow::Result<Vec<u8>> {
    const LOCALS: usize = 9_000;
    const LOOPS: usize = 900;
    let locals = "i32 ".repeat(LOCALS);
    let mut body = "loop ".repeat(LOOPS);
    for local in 0..LOCALS {
        body.push_str(&format!("local.get {local} i32.const 1 i32.add local.set {local} "));
    }
    for depth in 0..LOOPS {
        body.push_str(&format!("local.get {} br_if 0 end ", depth % LOCALS));
    }
    let text = format!(
        r#"(component
            (core module $m (func (local {locals}) {body}))
            (core instance $i (instantiate $m))
            (instance $empty)
            (export "oarlock:plugin/metadata@0.1.0" (instance $empty))
            (export "oarlock:plugin/handler@0.1.0" (instance $empty)))"#
    );
    Ok(wat::parse_str(text)?)
}

/// Mutants that the host loads at the same time.
const BATCH: u64 = 16;

/// Changes while a batch of mutants loads, and again while it serves.
const CHANGES: usize = 16;

/// The time between two changes.
const PACE: Duration = Duration::from_millis(5);

/// What the host did with mutants.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The number of mutants.
    pub mutants: u64,
    /// Mutants that the host refused.
    pub refused: u64,
    /// Mutants that served, though they may have failed at each call.
    pub served: u64,
    /// Mutants that waited, for example for a resource that does not exist.
    pub waited: u64,
    /// From a write until a good plugin reports it, before the first mutant.
    pub alone: Latencies,
    /// The same while mutants load and serve.
    pub beside: Latencies,
    /// The good plugins' p99 beside mutants, divided by the p99 without them.
    pub mutants_p99_ratio: f64,
    /// The host's resources before the first mutant.
    pub before: Resources,
    /// The maximum of each while mutants ran.
    pub peak: Resources,
    /// The host's resources after the last mutant was removed.
    pub after: Resources,
    /// The stated bound of the host's memory, in bytes.
    pub bound: Bound,
}

/// After so many mutants a line says how far the run is.
const PROGRESS: u64 = 500;

/// Runs mutants of real components beside three good plugins, `BATCH` at a time. `host` is the program; the
/// seed of the first mutant is `from`.
///
/// # Errors
///
/// When the host ends or is not healthy, when a good plugin misses anything, when the host's memory exceeds
/// its bound, or when the host keeps resources of mutants that were removed.
pub async fn run(host: Command, mutants: u64, from: u64) -> anyhow::Result<Outcome> {
    let guests = ["hostile", "declares-the-most", "traps", "hello-c"];
    let read = |name: &&str| fs::read(component(name));
    let mut components: Vec<Vec<u8>> = guests.iter().map(read).collect::<Result<_, _>>()?;
    components.push(super::handwritten::component(super::handwritten::Lie::None)?);
    // The compiled mutants go with the folder.
    let code = tempfile::tempdir()?;
    let code = code.path().to_string_lossy().into_owned();
    let mut stage = Stage::start_program(host, &["--cache-dir", &code]).await?;
    stage.change(80, Duration::ZERO).await?;
    let alone = stage.measure(2_000, PACE).await?;
    let before = stage.resources()?;
    let mut outcome = Outcome {
        mutants,
        alone,
        before,
        bound: super::bound::of_plugins(BATCH, super::cases::MEMORY),
        ..Outcome::default()
    };
    stage.forget_latencies();
    let begun = Instant::now();
    let mut number = from;
    while number < from + mutants {
        let n_done = number - from;
        // Earlier lines are about earlier mutants, and there are many.
        let n_before = stage.host().printed().lines.len();
        let batch: Vec<String> =
            (number..(number + BATCH).min(from + mutants)).map(|number| format!("mutant-{number}")).collect();
        for name in &batch {
            let bytes = mutant(&components[(number % components.len() as u64) as usize], number);
            let component = stage.component(name, &bytes)?;
            let config = json!({"mode": "good", "stateless": number.is_multiple_of(2)});
            let limits =
                json!({"memory": super::cases::MEMORY, "callDeadline": "200ms", "startDeadline": "1s"});
            let more = json!({"config": config, "limits": limits});
            stage.plugin(&Plugin { name, component: &component, account: "hostile", more })?;
            number += 1;
        }
        stage.change(CHANGES, PACE).await?;
        let verdicts = stage
            .host()
            .wait_for("a verdict of each mutant", |printed| {
                let new = &printed.lines[n_before..];
                let verdict = |name: &String| {
                    let of = |event: &str| {
                        new.iter().any(|line| line["event"] == event && line["plugin"] == **name)
                    };
                    match () {
                        () if of("plugin-loaded") => Some(Verdict::Served),
                        () if of("plugin-refused") => Some(Verdict::Refused),
                        () if of("plugin-waiting") => Some(Verdict::Waited),
                        () => None,
                    }
                };
                batch.iter().map(verdict).collect::<Option<Vec<_>>>()
            })
            .await?;
        let count = |verdict| verdicts.iter().filter(|it| **it == verdict).count() as u64;
        outcome.served += count(Verdict::Served);
        outcome.refused += count(Verdict::Refused);
        outcome.waited += count(Verdict::Waited);
        // Each mutant that serves is called.
        stage.change(CHANGES, PACE).await?;
        stage.expect_health().await?;
        stage.remove_all(batch.iter().map(String::as_str)).await?;
        if (number - from) / PROGRESS > n_done / PROGRESS {
            stage.judge().await?;
            super::say(&outcome.progress(number - from, begun.elapsed()));
        }
    }
    stage.judge().await?;
    outcome.beside = stage.latencies();
    outcome.mutants_p99_ratio = outcome.beside.p99_ms / outcome.alone.p99_ms.max(0.001);
    outcome.peak = stage.peak();
    outcome.bound.check(&outcome.peak)?;
    outcome.after = stage.released(&before).await?;
    stage.end().await?;
    Ok(outcome)
}

// === impl Outcome ===

impl Outcome {
    /// Returns how far the run is after `n_done` mutants.
    fn progress(&self, n_done: u64, elapsed: Duration) -> String {
        let Self { mutants, refused, served, waited, .. } = self;
        let n_left = mutants.saturating_sub(n_done);
        let left = elapsed.as_secs_f64() * n_left as f64 / n_done.max(1) as f64;
        format!(
            "{n_done} of {mutants} mutants: {refused} refused, {served} served, {waited} waited; about {left:.0} s left"
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Served,
    Refused,
    Waited,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_names_all_verdicts_and_the_time_that_is_left() {
        let outcome = Outcome { mutants: 2_000, refused: 390, served: 109, waited: 1, ..Outcome::default() };
        assert_eq!(
            outcome.progress(500, Duration::from_secs(30)),
            "500 of 2000 mutants: 390 refused, 109 served, 1 waited; about 90 s left"
        );
    }
}
