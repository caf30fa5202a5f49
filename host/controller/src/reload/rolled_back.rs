//! The versions in quarantine: those of the folder for state, and those that the status of the plugin's
//! object names.
//!
//! The host that leads decides which these are. A host on standby adopts what the leader has written to the
//! status: after a takeover it knows the same.

use super::roll_out::RollOut;
use super::versions::Version;
use super::{Host, PluginSlot};
use crate::config::PluginFile;
use crate::report::Timestamp;
use crate::state_folder::Quarantine;

/// Returns whether this host is on standby, and the leader has put other versions in quarantine.
pub(super) fn is_behind_the_leader(host: &Host, slot: &PluginSlot) -> bool {
    if host.dispatch.leadership.leads() {
        return false;
    }
    let named = host.definitions.rolled_back(&slot.name);
    let quarantine = slot.quarantine.lock();
    named.is_some_and(|named| quarantine.as_ref().is_some_and(|it| it.differs(&named)))
}

// === impl RollOut ===

impl RollOut {
    /// Reads which versions of the plugin are in quarantine, once.
    pub(super) async fn read_quarantine(&self, file: &PluginFile) {
        let Self { host, slot, .. } = self;
        if slot.quarantine.lock().is_some() {
            return;
        }
        let (state, name, path) = (host.state.clone(), slot.name.clone(), file.path.clone());
        let read = host.tasks.blocking(move || state.quarantine(&name, &path)).await;
        let Some((mut quarantine, error)) = read else { return };
        self.report_trouble(error);
        if let Some(named) = host.definitions.rolled_back(&slot.name) {
            quarantine.add_all(&named);
        }
        // Another task may have read it, and added to it, meanwhile.
        slot.quarantine.lock().get_or_insert(quarantine);
        slot.show_rolled_back();
    }

    /// On standby: adopts the leader's quarantine, and leaves the version that serves if it is in it. Without
    /// a version to go back to it stays.
    pub(super) async fn follow_leader(&self) {
        let Self { host, slot, .. } = self;
        if host.dispatch.leadership.leads() {
            return;
        }
        let Some(named) = host.definitions.rolled_back(&slot.name) else { return };
        self.change_quarantine(|it| it.replace(&named)).await;
        let serving = slot.versions.lock().serving.as_ref().map(|it| it.id);
        let find = |id| slot.quarantine.lock().as_ref().and_then(|it| it.find(id).cloned());
        if let Some(left) = serving.and_then(find) {
            let message = format!("the host that led rolled it back: {}", left.reason);
            // That the newest version is not used is noted when it is loaded.
            let _ = self.go_back(&message).await;
        }
    }

    /// Puts a version in quarantine.
    pub(super) async fn quarantine(&self, version: &Version, reason: &str) {
        let digest = version.component.digest().to_string();
        let since = Timestamp::now().to_string();
        let add = |it: &mut Quarantine| {
            it.add(version.id, &version.stated, &digest, reason, since);
            true
        };
        self.change_quarantine(add).await;
    }

    /// Empties the quarantine. Returns how many versions were in it.
    pub(super) async fn release(&self) -> usize {
        let mut count = 0;
        let clear = |it: &mut Quarantine| {
            count = it.clear();
            true
        };
        self.change_quarantine(clear).await;
        count
    }

    /// Changes the quarantine. If `change` returns that it did, the quarantine is shown, and kept.
    async fn change_quarantine(&self, change: impl FnOnce(&mut Quarantine) -> bool) {
        let Self { host, slot, .. } = self;
        let quarantine = {
            let mut quarantine = slot.quarantine.lock();
            let quarantine = quarantine.get_or_insert_default();
            change(quarantine).then(|| quarantine.clone())
        };
        let Some(quarantine) = quarantine else { return };
        slot.show_rolled_back();
        let saved = host.tasks.blocking(move || quarantine.save()).await;
        self.report_trouble(saved.and_then(Result::err));
    }
}
