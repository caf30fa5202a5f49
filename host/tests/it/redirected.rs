//! Output that is redirected into the folder of a plugin is no source of the plugin.

use std::{
    fs::{self, File},
    path::Path,
};

use oarlock_wait_until::{LIMIT, wait_until_blocking};

use crate::rig::{Running, oarlock};

/// Starts `oarlock dev` on a plugin whose builds fail at once: no build writes a component of this name. Its
/// output goes into the plugin's folder.
fn start(folder: &Path, cache: &Path) -> Running {
    let file = "name: a\ncomponent: a.bin\nserviceAccount: {namespace: plugins, name: a}\n";
    for (name, text) in [("plugin.yaml", file), ("a.bin", ""), ("requirements.txt", "")] {
        fs::write(folder.join(name), text).unwrap();
    }
    let mut command = oarlock(folder);
    command.env("XDG_CACHE_HOME", cache).args(["dev", "."]);
    command.stdout(File::create(folder.join("out.txt")).unwrap());
    command.stderr(File::create(folder.join("errors.txt")).unwrap());
    Running::start_redirected(command)
}

/// Waits until a file has so many lines with a part, and returns these lines.
fn until(file: &Path, part: &str, n_lines: usize) -> Vec<String> {
    let mut found = Vec::new();
    wait_until_blocking(part, LIMIT, || {
        let text = fs::read_to_string(file).unwrap();
        found = text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect();
        if found.len() >= n_lines { Ok(()) } else { Err(text) }
    });
    found
}

#[test]
fn dev_builds_again_after_a_change_of_a_source_only() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name);
    let running = start(folder.path(), cache.path());
    // The sources are watched before the host starts.
    until(&at("out.txt"), "refused", 1);
    for n_changes in 1..=2 {
        fs::write(at("z.py"), n_changes.to_string()).unwrap();
        let changes = until(&at("errors.txt"), "has changed", n_changes);
        assert_eq!(changes, vec!["a: z.py has changed"; n_changes]);
    }
    assert_eq!(running.end("TERM").0, Some(0));
}
