//! The folder for what a host keeps over restarts: the last good version of each plugin, and the versions
//! that it does not try again.
//!
//! A host locks its folder: two hosts with the same plugins would overwrite each other's versions. A host on
//! standby writes too: it takes over which versions were rolled back. The kernel drops the lock when the
//! process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{args::Environment, failure::Failure, private_folder::prepare};

/// The file that is locked. It says which process uses the folder.
const LOCK: &str = "lock";

/// The longest text that is read from the file: it is for messages only.
const MAX_OWNER: u64 = 256;

/// A folder that this host uses while the value lives.
#[derive(Debug)]
pub(crate) struct StateFolder {
    pub(crate) path: PathBuf,
    _lock: File,
}

/// The result of an attempt to lock a folder.
enum Taken {
    Locked(File),
    /// By another host: what its lock file says, which may be nothing.
    InUse(String),
}

/// Returns the folder, locked. One that the user named must be usable; the default folder is used if it is.
/// Neither may be in use.
pub(crate) fn state_folder(
    given: Option<PathBuf>,
    environment: &Environment,
) -> Result<Option<StateFolder>, Failure> {
    let is_given = given.is_some();
    let Some(path) = given.or_else(|| default_folder(environment)) else { return Ok(None) };
    let folder = path.display();
    let unusable = |error: anyhow::Error| {
        let named = if is_given { "--state-dir" } else { "the state folder" };
        Failure::caller(error.context(format!("{named} {folder} cannot be used")))
    };
    match take(&path, environment, File::try_lock) {
        Ok(Taken::Locked(lock)) => Ok(Some(StateFolder { path, _lock: lock })),
        Ok(Taken::InUse(owner)) => {
            let owner = if owner.is_empty() { owner } else { format!(": {owner}") };
            Err(unusable(anyhow::anyhow!("another host uses it{owner}"))
                .hint("end that host first, or give this one a folder of its own with --state-dir"))
        }
        Err(error) if is_given => {
            Err(unusable(error.into()).hint("name a folder that only this user can write to"))
        }
        Err(error) => {
            tracing::warn!(%folder, %error, "nothing is kept over a restart; name a folder with --state-dir");
            Ok(None)
        }
    }
}

/// Prepares the folder and locks it. On a file system without locks, the folder is used without one.
fn take(
    folder: &Path,
    environment: &Environment,
    try_lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> io::Result<Taken> {
    prepare(folder)?;
    // Closed in the processes that this one starts, so none of them keeps the lock.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(folder.join(LOCK))?;
    let locked = loop {
        match try_lock(&file) {
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            tried => break tried,
        }
    };
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            // Without the text, the message is shorter.
            let _ = file.take(MAX_OWNER).read_to_string(&mut owner);
            return Ok(Taken::InUse(owner.trim().to_owned()));
        }
        Err(TryLockError::Error(error)) => {
            let folder = folder.display();
            tracing::warn!(%folder, %error, "the folder cannot be locked; make sure that no other host uses it");
        }
    }
    let host = environment.hostname.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
    let owner = format!("process {}{host}\n", std::process::id());
    // The disk may be full.
    let _ = file.set_len(0).and_then(|()| file.write_all(owner.as_bytes()));
    Ok(Taken::Locked(file))
}

/// Returns the default folder, whether it is usable or not; `None` without a home folder.
pub(crate) fn default_folder(environment: &Environment) -> Option<PathBuf> {
    let Environment { home, xdg_state_home, .. } = environment;
    // The XDG base directory specification says that a relative path counts as not set.
    let state = xdg_state_home.clone().filter(|path| path.is_absolute());
    let state = state
        .or_else(|| home.as_ref().filter(|path| path.is_absolute()).map(|home| home.join(".local/state")))?;
    Some(state.join("oarlock"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use oarlock_wait_until::{LIMIT, wait_until_blocking};

    use super::*;

    fn state_folder(given: Option<PathBuf>, environment: &Environment) -> Result<Option<PathBuf>, Failure> {
        Ok(super::state_folder(given, environment)?.map(|it| it.path))
    }

    #[test]
    fn the_users_state_folder_is_the_default_and_may_be_unusable() {
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment { home: Some(dir.path().to_owned()), ..Environment::default() };
        let folder = state_folder(None, &environment).unwrap().unwrap();
        assert_eq!(folder, dir.path().join(".local/state/oarlock"));
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let environment = Environment { xdg_state_home: Some(dir.path().join("xdg")), ..environment };
        let folder = state_folder(None, &environment).unwrap();
        assert_eq!(folder, Some(dir.path().join("xdg/oarlock")));

        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        let environment = Environment { xdg_state_home: Some(file.clone()), ..Environment::default() };
        assert_eq!(state_folder(None, &environment).unwrap(), None);
        assert_eq!(state_folder(None, &Environment::default()).unwrap(), None);
        let refused = state_folder(Some(file), &environment).unwrap_err().text();
        assert!(refused.contains("file cannot be used: it is a file, not a folder"), "{refused}");
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = state_folder(Some(open), &environment).unwrap_err().text();
        assert!(refused.contains("other users can write to the folder"), "{refused}");
    }

    #[test]
    fn a_folder_in_use_is_refused_and_that_of_a_host_that_has_ended_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = Environment { home: Some(dir.path().to_owned()), ..Environment::default() };
        let pod = Environment { hostname: Some("oarlock-0".to_owned()), ..Environment::default() };
        let default = dir.path().join(".local/state/oarlock");
        let take =
            |given: Option<&Path>, environment| super::state_folder(given.map(Path::to_owned), environment);
        let refused = |given: Option<&Path>| {
            let text = take(given, &home).unwrap_err().text();
            text.replace(&dir.path().display().to_string(), "HOME")
                .replace(&std::process::id().to_string(), "PID")
        };
        let one = take(None, &home).unwrap().unwrap();
        insta::assert_snapshot!(refused(None), @"
        the state folder HOME/.local/state/oarlock cannot be used: another host uses it: process PID
        hint: end that host first, or give this one a folder of its own with --state-dir
        ");
        drop(one);
        // A process that another test starts has the lock too, until it runs its program.
        let again = || take(Some(&default), &pod).map_err(|it| it.text());
        let one = wait_until_blocking("the end of the lock", LIMIT, again).unwrap();
        insta::assert_snapshot!(refused(Some(&default)), @"
        --state-dir HOME/.local/state/oarlock cannot be used: another host uses it: process PID on oarlock-0
        hint: end that host first, or give this one a folder of its own with --state-dir
        ");
        drop(one);
    }

    #[test]
    fn a_folder_of_a_file_system_without_locks_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let without = |_: &File| Err(TryLockError::Error(io::ErrorKind::Unsupported.into()));
        let taken = take(dir.path(), &Environment::default(), without).unwrap();
        assert!(matches!(taken, Taken::Locked(_)));
        let n_tries = Cell::new(0);
        let interrupted_once = |file: &File| match n_tries.replace(n_tries.get() + 1) {
            0 => Err(TryLockError::Error(io::ErrorKind::Interrupted.into())),
            _ => file.try_lock(),
        };
        let taken = take(dir.path(), &Environment::default(), interrupted_once).unwrap();
        assert!(matches!(taken, Taken::Locked(_)));
        assert_eq!(n_tries.get(), 2);
    }
}
