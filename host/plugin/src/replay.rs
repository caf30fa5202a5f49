//! Replays a record: calls a component as the record says, answers its imports from the record, and reports
//! the first difference.
//!
//! Nothing outside of the record answers an import, so a replay needs no cluster, and two replays of one
//! component are equal. Instances run as they did: one after the other or at once, in the order in which
//! their calls ended.

mod compare;
mod interceptor;
mod player;
mod report;
mod versions;

use std::{
    collections::{BTreeSet, HashMap},
    io::Read,
};

use self::{player::Player, versions::Versions};
use crate::{
    Component, Limits,
    record::{self, Call, Ended, Entry, File, Reader, Start, targets_secrets},
};

pub use self::compare::shorten;
pub use self::report::{Difference, Options, ReplayError, Report, Step};

/// The maximum number of instances that are alive at once: more than one plugin has in a host.
const MOST_INSTANCES: usize = 1_024;

/// The maximum length of the starts of instances that are alive at once. They are kept, since an instance is
/// started again after a difference.
const MOST_START_BYTES: usize = 64 << 20;

/// The maximum number of differences in a report. The replay stops there.
const MOST_DIFFERENCES: usize = 1_000;

/// Replays the entries of a record with a component. `each` sees every call.
///
/// # Errors
///
/// When the record cannot be read or does not fit the contract. A record that ends within a block is replayed
/// up to there.
pub async fn replay<R: Read>(
    reader: &mut Reader<R>,
    component: &Component,
    options: &Options,
    mut each: impl FnMut(Step<'_>),
) -> Result<Report, ReplayError> {
    let file = match reader.next_entry()? {
        Some(Entry::File(file)) => file,
        Some(_) => return Err(ReplayError::NoFile),
        None => return Err(ReplayError::NoEntries),
    };
    let mut replayer = Replayer::new(component, options, file);
    let mut versions = Versions::new(options);
    let mut stopped = false;
    let mut is_read = false;
    while let Some(entry) = reader.next_entry()? {
        is_read = matches!(entry, Entry::End(_));
        versions.add(&entry);
        stopped = match &entry {
            Entry::Call(call) if versions.is_other(&entry) => versions.pass_over(call, options.until),
            _ if versions.is_other(&entry) => false,
            _ => replayer.entry(entry, reader.entry_len(), &mut each).await?,
        };
        if stopped {
            break;
        }
    }
    if reader.is_truncated() {
        replayer.note(
            "the record ends within a block: the host was ended while it wrote, or its disk was full"
                .to_owned(),
        );
    } else if !stopped {
        replayer.note(
            "the record has no last entry: the host was ended before it wrote one, or still writes"
                .to_owned(),
        );
    }
    if options.of.is_some() || !replayer.report.differences.is_empty() || is_read || !stopped {
        // A version of a later call may be the reason of a difference, or have the digest that is asked for.
        while !is_read && let Ok(Some(entry)) = reader.next_entry() {
            is_read = matches!(entry, Entry::End(_));
            versions.add(&entry);
        }
        let digest = component.digest().to_string();
        versions.check(&replayer.report, &digest)?;
        if options.of.is_none()
            && let Some(note) = versions.note(&digest)
        {
            replayer.note(note);
        }
    }
    Ok(replayer.report)
}

struct Replayer<'a> {
    component: &'a Component,
    options: &'a Options,
    players: HashMap<u64, Player>,
    /// Whether values of Secrets are in the record as they were.
    has_secrets: bool,
    /// The generations that declare no Secrets.
    without_secrets: BTreeSet<u64>,
    report: Report,
}

// === impl Replayer ===

impl<'a> Replayer<'a> {
    fn new(component: &'a Component, options: &'a Options, file: File) -> Self {
        let File { plugin, exact, host: _, time_ms: _ } = file;
        let report = Report {
            plugin,
            exact: true,
            calls: 0,
            starts: 0,
            imports: 0,
            skipped: 0,
            differences: Vec::new(),
            notes: Vec::new(),
        };
        let (players, without_secrets) = (HashMap::new(), BTreeSet::new());
        Self { component, options, players, has_secrets: exact, without_secrets, report }
    }

    /// Notes that values of Secrets may be replaced in the part of the record that is replayed.
    fn note_secrets(&mut self) {
        self.report.exact = self.has_secrets;
    }

    /// Replays one entry. Returns whether it is the last one to replay.
    async fn entry(
        &mut self,
        entry: Entry,
        n_bytes: usize,
        each: &mut impl FnMut(Step<'_>),
    ) -> Result<bool, ReplayError> {
        match entry {
            Entry::File(_) => Ok(false),
            Entry::Generation(generation) => {
                if !generation.declares_secrets && self.without_secrets.len() < MOST_INSTANCES {
                    self.without_secrets.insert(generation.generation);
                }
                Ok(false)
            }
            Entry::Start(start) => self.start(start, n_bytes, each).await,
            Entry::Call(call) => self.call(call, each).await,
            Entry::Gone(gone) => {
                self.players.remove(&gone.instance);
                Ok(false)
            }
            Entry::End(end) => {
                if end.reason == record::EndReason::Limit {
                    self.note("the record reached its limit: later calls are not in it".to_owned());
                }
                if end.reason == record::EndReason::SecretsMissed {
                    self.note(
                        "the record ends where a call with Secrets is missing: their values could not be \
                         replaced in later calls"
                            .to_owned(),
                    );
                }
                if end.forgotten_values > 0 {
                    let n = end.forgotten_values;
                    let values = if n == 1 { "value" } else { "values" };
                    self.note(format!(
                        "copies of {n} {values} of Secrets were not replaced: too many values"
                    ));
                }
                Ok(true)
            }
        }
    }

    async fn start(
        &mut self,
        start: Start,
        n_bytes: usize,
        each: &mut impl FnMut(Step<'_>),
    ) -> Result<bool, ReplayError> {
        let Start { limits, call, generation } = start;
        let id = call.instance;
        if !self.without_secrets.contains(&generation) {
            self.note_secrets();
        }
        let damaged = |reason: String| ReplayError::Limits { instance: id, reason };
        let limits: Limits = serde_json::from_value(limits).map_err(|error| damaged(error.to_string()))?;
        limits.check().map_err(|reason| damaged(reason.to_string()))?;
        if self.players.len() >= MOST_INSTANCES && !self.players.contains_key(&id) {
            return Err(ReplayError::TooManyInstances);
        }
        let others = self.players.iter().filter(|(other, _)| **other != id);
        if others.map(|(_, player)| player.n_bytes).sum::<usize>() + n_bytes > MOST_START_BYTES {
            return Err(ReplayError::StartsTooLarge);
        }
        let mut player = Player::new(call.clone(), n_bytes, limits);
        if call.cut {
            player.has_gap = true;
            self.players.insert(id, player);
            return Ok(self.skip(&call, each));
        }
        let ended = player.start(self.component, self.options).await;
        let is_last = self.result(&call, &player, ended, each)?;
        self.players.insert(id, player);
        Ok(is_last)
    }

    async fn call(&mut self, call: Call, each: &mut impl FnMut(Step<'_>)) -> Result<bool, ReplayError> {
        let Some(mut player) = self.players.remove(&call.instance) else {
            return Ok(self.skip(&call, each));
        };
        player.has_gap |= call.lost_before > 0;
        if call.cut {
            player.has_gap = true;
            self.players.insert(call.instance, player);
            return Ok(self.skip(&call, each));
        }
        let ended = player.call(self.component, &call, self.options).await?;
        let has_gap = player.has_gap;
        let is_last = self.result(&call, &player, ended, each)?;
        if has_gap && is_last && !self.report.differences.is_empty() {
            self.note(format!(
                "calls of instance {} are missing in the record, so its state may differ",
                call.instance
            ));
        }
        self.players.insert(call.instance, player);
        Ok(is_last)
    }

    fn skip(&mut self, call: &Call, each: &mut impl FnMut(Step<'_>)) -> bool {
        self.report.skipped += 1;
        each(Step { call, ended: None, differences: &[] });
        self.ends_with(call)
    }

    fn ends_with(&self, call: &Call) -> bool {
        self.options.until.is_some_and(|until| call.number >= until)
    }

    /// Counts a call and its differences. Returns whether it is the last one to replay.
    fn result(
        &mut self,
        call: &Call,
        player: &Player,
        ended: Ended,
        each: &mut impl FnMut(Step<'_>),
    ) -> Result<bool, ReplayError> {
        if call.imports.iter().any(targets_secrets) {
            self.note_secrets();
        }
        let outcome = player.replay.finish();
        if let Some((import, reason)) = outcome.other_contract {
            return Err(ReplayError::other_contract(call, &format!("answer of {import}"), &reason));
        }
        let mut differences = outcome.differences;
        let mut end = None;
        // A call that was stopped has no end of its own.
        if outcome.stop.is_none()
            && let Some((at, recorded, actual)) = compare::ended(&call.ended, &ended)
        {
            let difference = Difference::of(call);
            end = Some(Difference { import: None, at, recorded, actual, comparable: true, ..difference });
        }
        // A failure is the reason why imports are missing.
        match ended {
            Ended::Failed { .. } => differences.extend(end.into_iter().chain(outcome.missing)),
            _ => differences.extend(outcome.missing.into_iter().chain(end)),
        }
        match call.number {
            0 => self.report.starts += 1,
            _ => self.report.calls += 1,
        }
        self.report.imports += outcome.n_imports;
        each(Step { call, ended: Some(&ended), differences: &differences });
        let differs = !differences.is_empty();
        let goes_on = self.options.keep_going || self.options.until.is_some();
        if goes_on {
            differences.truncate(MOST_DIFFERENCES - self.report.differences.len());
            self.report.differences.append(&mut differences);
        } else {
            self.report.differences.extend(differences.into_iter().next());
        }
        let is_enough = self.report.differences.len() >= MOST_DIFFERENCES;
        if is_enough && self.options.until.is_some() {
            self.note(format!("only the first {MOST_DIFFERENCES} differences are listed"));
        } else if is_enough {
            self.note(format!("the replay stops after {MOST_DIFFERENCES} differences"));
            return Ok(true);
        }
        Ok(self.ends_with(call) || differs && !goes_on)
    }

    fn note(&mut self, note: String) {
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }
}
