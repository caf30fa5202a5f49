//! Plugin files and components that are not regular files: the host refuses them, keeps running, and ends on
//! a signal.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use crate::rig::{Running, oarlock, run};

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn plugin(folder: &Path, name: &str, component: &str) {
    let text =
        format!("name: {name}\ncomponent: {component}\nserviceAccount: {{namespace: default, name: a}}\n");
    fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
}

/// Returns the messages of the next refusals, sorted by file.
fn refusals(running: &mut Running, count: usize) -> Vec<String> {
    let mut messages: Vec<_> = (0..count)
        .map(|_| {
            let line = running.until("plugin-refused");
            format!("{}: {}", line["file"].as_str().unwrap(), line["message"].as_str().unwrap())
        })
        .collect();
    messages.sort();
    messages
}

#[test]
fn no_kind_of_file_blocks_the_host_or_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    fifo(&plugins.join("a-fifo.yaml"));
    symlink("/dev/zero", plugins.join("b-zero.yaml")).unwrap();
    fs::create_dir(plugins.join("c-folder.yaml")).unwrap();
    symlink("nowhere", plugins.join("d-dangling.yaml")).unwrap();
    fs::write(plugins.join("e-deep.yaml"), "[".repeat(200_000)).unwrap();
    fs::File::create(plugins.join("f-huge.yaml")).unwrap().set_len(1 << 40).unwrap();
    fifo(&plugins.join("fifo.wasm"));
    plugin(&plugins, "g-fifo-component", "fifo.wasm");
    plugin(&plugins, "h-zero-component", "/dev/zero");
    plugin(&plugins, "i-folder-component", ".");
    for signal in ["TERM", "INT"] {
        let mut command = oarlock(folder.path());
        command.args(["dev", "--output", "json", "plugins"]);
        let mut running = Running::start(command);
        insta::allow_duplicates! {
            insta::assert_snapshot!(refusals(&mut running, 9).join("\n"), @"
            plugins/a-fifo.yaml: cannot be read: it is a FIFO, and only regular files are read
            plugins/b-zero.yaml: cannot be read: it is a device, and only regular files are read
            plugins/c-folder.yaml: cannot be read: it is a folder, and only regular files are read
            plugins/d-dangling.yaml: cannot be read: No such file or directory (os error 2)
            plugins/e-deep.yaml: line 1: more than 64 brackets are open at once
            plugins/f-huge.yaml: cannot be read: it has 1099511627776 bytes, more than the 1048576 allowed
            plugins/g-fifo-component.yaml: the component plugins/fifo.wasm cannot be read: it is a FIFO, and only regular files are read
            plugins/h-zero-component.yaml: the component /dev/zero cannot be read: it is a device, and only regular files are read
            plugins/i-folder-component.yaml: the component plugins/. cannot be read: it is a folder, and only regular files are read
            ");
        }
        let (code, rest) = running.end(signal);
        assert_eq!(code, Some(0), "{rest:?}");
    }
    let said = run(folder.path(), &["rbac", "plugins"]);
    assert_eq!(said.code, Some(2));
    for args in [["plugin", "inspect", "plugins/fifo.wasm"], ["plugin", "inspect", "plugins/a-fifo.yaml"]] {
        let said = run(folder.path(), &args);
        assert_eq!(said.code, Some(2));
        assert!(said.stderr.contains("it is a FIFO, and only regular files are read"), "{}", said.stderr);
    }
}
