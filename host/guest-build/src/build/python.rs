//! Python: a `requirements.txt` with componentize-py, and a module with the plugin: `plugin.py`, or the only
//! one. The component imports the modules beside it, the SDK if the file names it, and the other packages of
//! the file; nothing else of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

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
    let mut check = packages.tools().python();
    check.current_dir(&copied).args(["-c", CHECK]).arg(format!("{module}.py"));
    command::compile("Python", &mut check)?;

    let imports = importable(project, packages, &folder)?;
    let stubs = folder.join("stubs");
    let mut bindings = packages.tools().program("componentize-py");
    bindings.arg("--quiet").arg("--wit-path").arg(&project.wit).args(["--world", &world, "bindings"]);
    command::run(bindings.arg(&stubs))?;
    give_to_editors(project, &stubs, "stubs")?;

    let component = folder.join("component.wasm");
    let mut componentize = packages.tools().program("componentize-py");
    // Without a virtual environment, the packages of this machine would be importable too.
    let environment = folder.join("environment");
    fs::create_dir_all(environment.join("lib/site-packages"))?;
    componentize.env("VIRTUAL_ENV", &environment);
    componentize.current_dir(&copied).arg("--quiet").arg("--wit-path").arg(&project.wit);
    // WASI is not stubbed, since exceptions and print need it.
    componentize.args(["--world", &world, "componentize", "--python-path", ".", "--python-path"]);
    componentize.arg(&imports);
    componentize.arg(&module).arg("--output").arg(&component);
    command::compile("componentize-py", &mut componentize).map_err(|error| {
        match raised(&error.to_string()) {
            Some(traceback) => {
                let advice = advice(&traceback);
                anyhow!("the import of {module}.py, which builds the component, failed:\n{traceback}{advice}")
            }
            None => error,
        }
    })?;
    Ok(component)
}

/// Returns the traceback of the plugin's own exception in the output of componentize-py, which is in Python
/// too: its last frames are those of the program itself.
fn raised(output: &str) -> Option<String> {
    let (_, own) = output.split_once("AssertionError: Traceback")?;
    let (own, _) = own.split_once("\n\nCaused by:")?;
    // The folder of the plugin, and that of the packages.
    let mut own = own.trim_end().to_owned();
    for (shown, known) in
        [("File \"/0/", "File \""), ("File \"/1/", "File \""), (" (/0/", " ("), (" (/1/", " (")]
    {
        own = own.replace(shown, known);
    }
    Some(format!("Traceback{own}"))
}

/// Returns what to do about the exception of a traceback, in a line of its own, if that is known.
fn advice(traceback: &str) -> String {
    let last = traceback.lines().next_back().unwrap_or_default();
    let named =
        last.strip_prefix("ModuleNotFoundError: No module named '").and_then(|rest| rest.split('\'').next());
    match named {
        Some(module) => format!(
            "\n{module} is not in the component: add its package to requirements.txt, if it is in pure Python; a \
             module of the plugin itself lies beside requirements.txt"
        ),
        None => String::new(),
    }
}

/// Collects the packages that the component imports, and gives them to editors and tests.
fn importable(project: &Project, packages: &Packages, folder: &Path) -> Result<PathBuf> {
    let imports = folder.join("packages");
    fs::create_dir_all(&imports)?;
    if let Some(installed) = packages.imports() {
        copy(installed, &imports)?;
    }
    for sdk in packages.sdks() {
        copy(&project.sdk.join(sdk), &imports)?;
    }
    give_to_editors(project, &imports, "packages")?;
    Ok(imports)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_of_the_plugin_is_shown_without_the_frames_of_the_tool() {
        let output = "componentize-py failed (exit status: 1):\nTraceback (most recent call last):\n  \
            File \"/cache/bin/componentize-py\", line 8, in <module>\nAssertionError: Traceback (most recent \
            call last):\n  File \"/0/plugin.py\", line 3, in <module>\n    f()\nValueError: wrong\n\n\nCaused by:\n    \
            ValueError: wrong";
        let shown = raised(output).unwrap();
        assert_eq!(
            shown,
            "Traceback (most recent call last):\n  File \"plugin.py\", line 3, in <module>\n    f()\nValueError: wrong"
        );
        assert_eq!(raised("componentize-py failed: no such world"), None);
        let output = "AssertionError: Traceback (most recent call last):\n  File \"/1/a.py\", line 3, in <module>\n\
            ImportError: cannot import name 'b' from 'c' (/1/c/__init__.py). Did you mean: 'd'?\n\n\nCaused by:";
        assert_eq!(
            raised(output).unwrap().lines().skip(1).collect::<Vec<_>>(),
            [
                "  File \"a.py\", line 3, in <module>",
                "ImportError: cannot import name 'b' from 'c' (c/__init__.py). Did you mean: 'd'?"
            ]
        );
    }

    #[test]
    fn a_module_that_is_missing_is_advised_to_be_added() {
        let text = advice("Traceback …\nModuleNotFoundError: No module named 'requests'");
        assert!(
            text.starts_with("\nrequests is not in the component: add its package to requirements.txt"),
            "{text}"
        );
        assert_eq!(advice("Traceback …\nValueError: wrong"), "");
    }
}
