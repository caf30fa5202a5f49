//! Python: a `requirements.txt` with componentize-py, and a module with the plugin: `plugin.py`, or the only
//! one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Outcome, copy, fresh_folder, give_to_editors, install};
use crate::toolchain::command;
use crate::toolchain::python::Packages;
use crate::{Project, progress};

/// Finds errors of syntax in the files that are its arguments.
const CHECK: &str = "import sys; sys.tracebacklimit = 0; [compile(open(path, 'rb').read(), path, 'exec') for path in sys.argv[1:]]";

/// Builds CPython with the module, initialized until its imports are done.
pub(super) fn build(project: &Project) -> Result<Outcome> {
    let packages = Packages::install(&project.folder.join("requirements.txt"))?;
    progress::step(&format!("Python: {}", project.name), || {
        install(&compile(project, &packages)?, &project.component)
    })
}

fn compile(project: &Project, packages: &Packages) -> Result<PathBuf> {
    let world = project.world()?;
    let module = module(&project.folder)?;
    let folder = fresh_folder(&project.build_folder)?;
    let copied = folder.join("project");
    copy(&project.folder, &copied)?;

    // Within a second, and with the line. The build of the component would find them too, after many.
    let mut check = packages.python();
    check.current_dir(&copied).args(["-c", CHECK]).arg(format!("{module}.py"));
    command::compile("Python", &mut check)?;

    let stubs = folder.join("stubs");
    let mut bindings = packages.program("componentize-py");
    bindings.arg("--quiet").arg("--wit-path").arg(&project.wit).args(["--world", &world, "bindings"]);
    command::run(bindings.arg(&stubs))?;
    give_to_editors(project, &stubs, "stubs")?;

    let component = folder.join("component.wasm");
    let mut componentize = packages.program("componentize-py");
    componentize.current_dir(&copied).arg("--quiet").arg("--wit-path").arg(&project.wit);
    // WASI is not stubbed, since exceptions and print need it.
    componentize.args(["--world", &world, "componentize", "--python-path", "."]);
    componentize.arg(module).arg("--output").arg(&component);
    command::compile("componentize-py", &mut componentize)?;
    Ok(component)
}

/// Returns the name of the module with the plugin.
fn module(folder: &Path) -> Result<String> {
    let mut modules = vec![];
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            modules.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    if modules.iter().any(|module| module == "plugin") {
        return Ok("plugin".to_owned());
    }
    modules.sort();
    if modules.len() > 1 {
        let modules = modules.join(", ");
        bail!(
            "several modules beside requirements.txt: {modules}; the one with the plugin must be plugin.py"
        );
    }
    modules.pop().context("no module beside requirements.txt; the plugin is in plugin.py")
}
