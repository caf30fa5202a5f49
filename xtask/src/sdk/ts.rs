//! The SDK for TypeScript and JavaScript: its types, format, lints and tests, and the tests of the templates
//! and plugins that use it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use oarlock_guest_build::new::{Kind, NewPlugin};
use oarlock_guest_build::{Language, Project};

use super::readme;
use crate::toolchain::command;
use crate::toolchain::node::Packages;
use crate::{checkout, progress};

/// Plugins in `plugins/` with tests of their own.
const PLUGINS: [&str; 2] = ["expiry", "mirror-ts"];

/// A test of the package that [`check_packages`] adds.
const MS_TEST: &str = r#"
test("a package from npm is imported", () => {
  const host = new FakeHost(plugin);
  host.added("objects", { metadata: { namespace: "default", name: "web" } });
  assert.equal(host.logs[0]?.pairs.created, "172800000");
});
"#;

/// Checks the SDK, and runs all tests. Needs Node.js.
pub(crate) fn check() -> Result<()> {
    progress::step("the SDK for TypeScript", check_sdk)?;
    for name in PLUGINS {
        let folder = checkout::root().join("plugins").join(name);
        let project = Project {
            name: name.to_owned(),
            language: Language::TypeScript,
            component: checkout::guests().join(format!("{name}.wasm")),
            build_folder: checkout::guest_build(name),
            wit: checkout::wit(),
            sdk: checkout::guest_sdk(),
            folder,
        };
        run_tests(&project)?;
    }
    for language in [Language::TypeScript, Language::JavaScript] {
        for kind in [Kind::Handler, Kind::Reconciler] {
            run_tests(&new_project("template", language, kind)?)?;
        }
    }
    check_packages()?;
    check_readme()
}

/// Adds a package from npm to a plugin, as its author would, and tests and builds it.
fn check_packages() -> Result<()> {
    let project = new_project("packages", Language::JavaScript, Kind::Handler)?;
    add_package(&project, &["ms@2.1.3", "--omit=dev"])?;
    let source = project.folder.join("plugin.js");
    let text = format!("import ms from \"ms\";\n{}", fs::read_to_string(&source)?);
    let field = "object.field(\"/metadata/creationTimestamp\")";
    ensure!(text.contains(field), "the template does not read {field}");
    fs::write(&source, text.replace(field, "ms(\"2 days\")"))?;
    let test = project.folder.join("test/plugin.test.js");
    let text = fs::read_to_string(&test)?;
    fs::write(&test, format!("{text}{MS_TEST}"))?;
    run_tests(&project)
}

/// Makes the plugin of the README, builds it and runs its test.
fn check_readme() -> Result<()> {
    let project = new_project("readme", Language::TypeScript, Kind::Handler)?;
    add_package(&project, &["kubernetes-types@1.30.0", "--save-dev"])?;
    readme::write(&checkout::guest_sdk().join("ts/README.md"), "ts", &project.folder)?;
    run_tests(&project)
}

/// Adds a package from npm to a plugin, as its author would. The build before it puts the SDK where npm finds
/// it.
fn add_package(project: &Project, arguments: &[&str]) -> Result<()> {
    oarlock_guest_build::build(project)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&project.folder).arg("install").args(arguments).args(["--no-audit", "--no-fund"]);
    command::run(&mut npm)
}

fn check_sdk() -> Result<()> {
    let folder = checkout::guest_sdk().join("ts");
    let packages = Packages::install(&folder)?;
    // Those that npm has installed there stay.
    if !folder.join("node_modules/.package-lock.json").exists() {
        link(&packages, &folder)?;
    }
    let program = |name: &str, arguments: &[&OsStr]| -> Result<()> {
        let mut program = packages.program(name)?;
        command::compile(name, program.current_dir(&folder).args(arguments)).map(drop)
    };
    let words = |text: &'static str| text.split(' ').map(OsStr::new).collect::<Vec<_>>();
    let wit = checkout::wit();
    let mut types = words("guest-types --world-name plugin --out-dir types");
    types.push(wit.as_os_str());
    program("jco", &types)?;
    let mut biome = words(
        "check --error-on-warnings . ../../templates/ts ../../templates/js ../../tests/fixtures/uses-sdk-ts",
    );
    let plugins = PLUGINS.map(|name| Path::new("../../plugins").join(name));
    biome.extend(plugins.iter().map(|folder| folder.as_os_str()));
    program("biome", &biome)?;
    program("tsc", &[])?;
    program("tsc", &words("-p test"))?;
    node_test(&folder.join("build"))
}

/// Makes a plugin from a template, in a folder of its own.
fn new_project(prefix: &str, language: Language, kind: Kind) -> Result<Project> {
    let name = format!("{prefix}-{}-{}", language.short_name(), format!("{kind:?}").to_lowercase());
    let folder = checkout::guest_build(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let plugin = NewPlugin { name: name.parse()?, language, kind, watch: "v1/configmaps".parse()? };
    plugin.write(&folder)?;
    Ok(Project {
        component: folder.join("plugin.wasm"),
        build_folder: folder.join(".oarlock/build"),
        wit: checkout::wit(),
        sdk: checkout::guest_sdk(),
        name,
        language,
        folder,
    })
}

/// Builds a plugin, which gives it the SDK, and runs its tests in Node.js.
fn run_tests(project: &Project) -> Result<()> {
    oarlock_guest_build::build(project)?;
    progress::step(&format!("the tests of {}", project.name), || {
        let tests = project.folder.join("test");
        if project.language == Language::JavaScript {
            return node_test(&tests);
        }
        let packages = Packages::install(&project.folder)?;
        let types = checkout::guest_build("types-for-tests");
        link(&packages, &types)?;
        let mut tsc = packages.program("tsc")?;
        tsc.arg("-p").arg(&tests).arg("--typeRoots").arg(types.join("node_modules/@types"));
        command::compile("tsc", &mut tsc)?;
        node_test(&project.folder.join(".oarlock/test/test"))
    })
}

/// Links these packages, and no others, into the `node_modules` of a folder.
fn link(packages: &Packages, folder: &Path) -> Result<()> {
    let modules = folder.join("node_modules");
    if modules.exists() {
        fs::remove_dir_all(&modules).with_context(|| format!("cannot remove {}", modules.display()))?;
    }
    packages.link(folder)
}

/// Runs the files `*.test.js` of a folder, of which there must be one.
fn node_test(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let is_test = |path: &&PathBuf| path.to_string_lossy().ends_with(".test.js");
    let tests: Vec<_> = paths.iter().filter(is_test).collect();
    ensure!(!tests.is_empty(), "{} has no tests", folder.display());
    command::run(Command::new("node").arg("--test").args(tests))
}
