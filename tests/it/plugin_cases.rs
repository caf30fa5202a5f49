//! `oarlock plugin test`: the cases of the plugins of this repository, and what the command does with cases
//! that fail, are wrong, or are to be accepted.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use oarlock_built_guests::{component, missing, skip, skip_rest};
use oarlock_tests::host_process::checkout;

use crate::command::{oarlock, refused, written};

/// A plugin's folder in which a test writes cases.
struct Plugin {
    folder: tempfile::TempDir,
}

/// Mirrors a ConfigMap.
const COPIED: &str = "\
description: A ConfigMap is copied, and the copy follows.
cluster:
- {apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
steps:
- apply:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings, namespace: shop, annotations: {oarlock.dev/mirror-to: team-a}}
    data: {color: red}
  expect:
    writes:
    - create: v1/configmaps team-a/settings
      body: {data: {color: red}}
    objects:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: team-a}, data: {color: red}}
- delete: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}
  expect:
    writes:
    - delete: v1/configmaps team-a/settings
    gone:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: team-a}}
";

// === impl Plugin ===

impl Plugin {
    /// Makes a folder with the plugin `mirror` and these cases.
    fn mirror(cases: &[(&str, &str)]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let component = component("mirror");
        let file = fs::read_to_string(checkout().join("plugins/mirror/plugin.yaml"))?;
        let file = file.replace("../../target/guests/mirror.wasm", &component.to_string_lossy());
        fs::write(folder.path().join("plugin.yaml"), file)?;
        fs::create_dir(folder.path().join("cases"))?;
        let plugin = Self { folder };
        for (name, text) in cases {
            fs::write(plugin.case(name), text)?;
        }
        Ok(plugin)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn case(&self, name: &str) -> PathBuf {
        self.path().join("cases").join(name).with_extension("yaml")
    }
}

#[test]
fn the_cases_of_all_plugins_pass() -> anyhow::Result<()> {
    cases_pass(&["plugins", "tests/fixtures"])
}

/// Controllers that others wrote, for controller-runtime and kopf.
#[test]
fn the_cases_of_ported_controllers_pass() -> anyhow::Result<()> {
    cases_pass(&["tests/ported"])
}

/// Runs the cases of all plugins in some folders.
fn cases_pass(places: &[&str]) -> anyhow::Result<()> {
    let mut plugins = Plugins::in_folders(places)?;
    plugins.found.retain(|folder| folder.join("cases").is_dir());
    plugins.pass(&[])
}

/// All languages do what the one in Rust does.
#[test]
fn the_cases_of_mirror_pass_in_all_languages() -> anyhow::Result<()> {
    let mut plugins = Plugins::in_folders(&["plugins"])?;
    plugins.found.retain(|folder| name(folder).starts_with("mirror-"));
    plugins.pass(&["--cases", "plugins/mirror/cases"])
}

/// Folders of plugins of this repository.
struct Plugins {
    found: Vec<PathBuf>,
}

impl Plugins {
    fn in_folders(places: &[&str]) -> anyhow::Result<Self> {
        let mut found = vec![];
        for place in places {
            for entry in fs::read_dir(checkout().join(place))? {
                found.push(entry?.path());
            }
        }
        found.sort();
        Ok(Self { found })
    }

    /// Runs the cases of those that were built, and skips the rest of the test if there are others.
    fn pass(&self, arguments: &[&str]) -> anyhow::Result<()> {
        assert!(!self.found.is_empty(), "no plugin has cases");
        let mut skipped = vec![];
        let mut built = vec![];
        for folder in &self.found {
            match missing(&name(folder)) {
                Some(lack) => skipped.push(format!("{}: {lack}", name(folder))),
                None => built.push(folder.to_str().context("a path of UTF-8")?),
            }
        }
        if built.is_empty() {
            skip(&skipped.join("; "));
        }
        written(checkout(), &[&["plugin", "test", "--no-build"], &built[..], arguments].concat())?;
        skip_rest(&skipped);
        Ok(())
    }
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[test]
fn a_case_passes_in_the_time_of_its_own_clock() -> anyhow::Result<()> {
    let plugin = Plugin::mirror(&[("copied", COPIED)])?;
    let printed = written(plugin.path(), &["plugin", "test"])?;
    assert!(printed.contains("mirror: 1 case\n  ok        copied"), "{printed}");
    assert!(printed.contains("1 passed, 0 failed"), "{printed}");
    Ok(())
}

#[test]
fn what_differs_is_shown_and_reported_and_can_be_accepted() -> anyhow::Result<()> {
    let wrong = COPIED.replace("body: {data: {color: red}}", "body: {data: {color: blue}}");
    let plugin = Plugin::mirror(&[("copied", COPIED), ("wrong", &wrong)])?;
    let output = oarlock(plugin.path(), &["plugin", "test", "--junit", "report.xml"])?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}{errors}");
    for part in [
        "  FAILED    wrong",
        "steps[0]: - is expected, + happened",
        "color: blue",
        "color: red",
        "1 passed, 1 failed",
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    assert!(errors.contains("1 case failed") && errors.contains("--accept"), "{errors}");
    let report = fs::read_to_string(plugin.path().join("report.xml"))?;
    assert!(report.contains("tests=\"2\" failures=\"1\"") && report.contains("color: blue"), "{report}");

    written(plugin.path(), &["plugin", "test", "--accept"])?;
    let printed = written(plugin.path(), &["plugin", "test"])?;
    assert!(printed.contains("2 passed, 0 failed"), "{printed}");
    assert_eq!(fs::read_to_string(plugin.case("copied"))?, COPIED, "what passed stays as it was");
    Ok(())
}

#[test]
fn cases_that_cannot_be_run_are_explained() -> anyhow::Result<()> {
    let plugin = Plugin::mirror(&[("a", "steps:\n- wait: 10m\n"), ("copied", COPIED)])?;
    let output = oarlock(plugin.path(), &["plugin", "test"])?;
    let [printed, error] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("cases/a.yaml: steps[0]: unknown field `wait`"), "{error}");
    for part in ["  FAILED    a", "  ok        copied", "1 passed, 1 failed"] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }

    let unknown = "cluster: [{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}]\n";
    let plugin = Plugin::mirror(&[("a", unknown)])?;
    let output = oarlock(plugin.path(), &["plugin", "test"])?;
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains(
            "start: Widget a is of a kind that the API server does not serve: example.com/v1 Widget"
        ),
        "{printed}"
    );

    // What happened before is often why.
    let wrong = COPIED.replace("color: red}}\n    objects", "color: blue}}\n    objects");
    let absent =
        "- patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: none, namespace: shop}, data: {a: b}}\n";
    let plugin = Plugin::mirror(&[("a", &format!("{wrong}{absent}"))])?;
    let output = oarlock(plugin.path(), &["plugin", "test"])?;
    let printed = String::from_utf8_lossy(&output.stdout);
    for part in
        ["steps[0]: - is expected, + happened", "color: blue", "steps[2]: cannot patch ConfigMap shop/none"]
    {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }

    let plugin = Plugin::mirror(&[])?;
    let error = refused(plugin.path(), &["plugin", "test"], 2)?;
    assert!(error.contains("there are no cases") && error.contains("cases/first.yaml"), "{error}");
    let error = refused(plugin.path(), &["plugin", "test", "--cases", "none"], 2)?;
    assert!(error.contains("the folder none cannot be read"), "{error}");

    fs::write(plugin.path().join("broken.wasm"), "")?;
    let file = "name: a\ncomponent: broken.wasm\nserviceAccount: {namespace: default, name: a}\n";
    fs::write(plugin.path().join("plugin.yaml"), file)?;
    fs::write(plugin.case("a"), "steps: []\n")?;
    let error = refused(plugin.path(), &["plugin", "test"], 2)?;
    assert!(error.contains("broken.wasm"), "{error}");
    Ok(())
}
