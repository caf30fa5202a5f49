//! The folder for what a host keeps over restarts: the last good version of each plugin, and the versions
//! that it does not try again.

use std::path::PathBuf;

use crate::{args::Environment, failure::Failure, private_folder::prepare};

/// Returns the folder. One that the user named must be usable; the default folder is used if it is.
pub(crate) fn state_folder(
    given: Option<PathBuf>,
    environment: &Environment,
) -> Result<Option<PathBuf>, Failure> {
    if let Some(folder) = given {
        prepare(&folder).map_err(|error| {
            let context = format!("--state-dir {} cannot be used", folder.display());
            Failure::caller(anyhow::Error::new(error).context(context))
                .hint("name a folder that only this user can write to")
        })?;
        return Ok(Some(folder));
    }
    Ok(default_folder(environment).filter(|folder| match prepare(folder) {
        Ok(()) => true,
        Err(error) => {
            let folder = folder.display();
            tracing::warn!(%folder, %error, "nothing is kept over a restart; name a folder with --state-dir");
            false
        }
    }))
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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
}
