//! The bundler of jco, and what a component cannot contain: modules of Node.js that call the machine.
//!
//! For such a module jco adds an import to the world in the WIT package that it was given. No host has these
//! imports, so the build gives it a copy, and fails if jco changes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::super::{copy, fresh_folder};

/// The configuration of the bundler: the host provides the interfaces of the contract, and no package
/// resolves to its variant for Node.js. Imports of Node.js's modules are written to a file, each with the
/// module that has it; jco's own are not. So are the names of the exports, and the bundle, of which stacks
/// name the lines.
const CONFIG: &str = r#"import { appendFileSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";

const files = {
  name: "files of the build",
  resolveId(id, importer) {
    const isOfJco = !importer || importer.startsWith("\0") || importer.includes("/@bytecodealliance/");
    if (isBuiltin(id) && !isOfJco) {
      appendFileSync(new URL("node-imports", import.meta.url), `${importer}\t${id}\n`);
    }
  },
  generateBundle(options, bundle) {
    for (const { code, exports } of Object.values(bundle)) {
      writeFileSync(new URL("bundle.js", import.meta.url), code);
      writeFileSync(new URL("exports", import.meta.url), exports.join("\n"));
    }
  },
};

export default {
  external: [/^oarlock:/],
  resolve: { conditionNames: ["import", "module", "default"] },
  plugins: [files],
};
"#;

/// What jco writes above an import that it adds to a world.
const ADDED: &str = "// Added by Jco";

/// The files of one run of the bundler.
pub(super) struct Bundle {
    pub(super) config: PathBuf,
    /// A copy of the WIT package.
    pub(super) wit: PathBuf,
    imports: PathBuf,
    exports: PathBuf,
}

// === impl Bundle ===

impl Bundle {
    /// Writes the files into the folder of a build.
    pub(super) fn write(folder: &Path, wit: &Path) -> Result<Self> {
        let bundle = Self {
            config: folder.join("bundle.mjs"),
            wit: fresh_folder(&folder.join("wit"))?,
            imports: folder.join("node-imports"),
            exports: folder.join("exports"),
        };
        fs::write(&bundle.config, CONFIG)
            .with_context(|| format!("cannot write {}", bundle.config.display()))?;
        copy(wit, &bundle.wit)?;
        Ok(bundle)
    }

    /// Fails if the main module was bundled and lacks an export of the world.
    pub(super) fn check_exports(&self, main: &str, world: &str) -> Result<()> {
        let Ok(exported) = fs::read_to_string(&self.exports) else { return Ok(()) };
        let wanted: &[&str] = match world {
            "handler-plugin" => &["metadata", "handler"],
            "reconciler-plugin" => &["metadata", "reconciler"],
            _ => &["metadata", "handler", "reconciler"],
        };
        let is_missing = |name: &&&str| !exported.lines().any(|other| other == **name);
        let missing: Vec<String> = wanted.iter().filter(is_missing).map(|name| format!("`{name}`")).collect();
        ensure!(
            missing.is_empty(),
            "{main} does not export {}, which the world {world} in oarlock.toml needs: write \
             `export const {{ {} }} = plugin(…)`",
            missing.join(" and "),
            wanted.join(", ")
        );
        Ok(())
    }

    /// Fails if the component would need Node.js. `project` is the folder that was bundled.
    pub(super) fn check_imports(&self, project: &Path) -> Result<()> {
        for file in crate::embedded::below(&self.wit)? {
            let text = fs::read(self.wit.join(&file))?;
            if String::from_utf8_lossy(&text).contains(ADDED) {
                let imports = fs::read_to_string(&self.imports).unwrap_or_default();
                bail!(needs_node(&imports, project));
            }
        }
        Ok(())
    }
}

/// Returns the error for imports, one in each line: the importing file, a tab, the module.
fn needs_node(imports: &str, project: &Path) -> String {
    let shown = |line: &str| {
        let (file, module) = line.split_once('\t')?;
        let file = Path::new(file);
        let inner = file.strip_prefix(project).ok().map(|file| file.display().to_string());
        // Packages are linked from the cache.
        let text = file.to_string_lossy();
        let package = || text.find("node_modules/").map(|at| text[at..].to_owned());
        Some(format!("  {} imports {module}", inner.or_else(package).unwrap_or_else(|| text.into_owned())))
    };
    let lines: BTreeSet<String> = imports.lines().filter_map(shown).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    format!(
        "the plugin needs Node.js, which a component does not have:\n{}\n\
         A plugin has no files, connections or processes: read and write objects with `lister` and `client` of \
         the SDK, and choose packages that only compute. Of Node.js's modules, assert, buffer, events, \
         querystring, stream, string_decoder and util can be imported",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_that_the_world_needs_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let wit = folder.path().join("contract");
        fs::create_dir(&wit).unwrap();
        let bundle = Bundle::write(folder.path(), &wit).unwrap();
        bundle.check_exports("plugin.js", "plugin").unwrap();
        fs::write(&bundle.exports, "handler\nmetadata").unwrap();
        bundle.check_exports("plugin.js", "handler-plugin").unwrap();
        let error = bundle.check_exports("plugin.js", "plugin").unwrap_err().to_string();
        assert!(
            error.starts_with("plugin.js does not export `reconciler`, which the world plugin"),
            "{error}"
        );
        fs::write(&bundle.exports, "default").unwrap();
        let error = bundle.check_exports("plugin.js", "reconciler-plugin").unwrap_err().to_string();
        assert!(error.contains("`metadata` and `reconciler`"), "{error}");
        assert!(error.ends_with("`export const { metadata, reconciler } = plugin(…)`"), "{error}");
    }

    #[test]
    fn an_import_that_jco_adds_is_an_error_which_names_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let wit = folder.path().join("contract");
        fs::create_dir(&wit).unwrap();
        fs::write(wit.join("worlds.wit"), "world plugin {\n}\n").unwrap();
        let build = folder.path().join("build");
        fs::create_dir(&build).unwrap();
        let bundle = Bundle::write(&build, &wit).unwrap();
        bundle.check_imports(&build).unwrap();

        let added = "world plugin {\n  // Added by Jco because bundled source imports node:fs.\n}\n";
        fs::write(bundle.wit.join("worlds.wit"), added).unwrap();
        let project = build.join("project");
        let imports = format!(
            "{0}/plugin.js\tnode:fs\n{0}/plugin.js\tnode:fs\n/cache/npm-1/node_modules/got/index.js\thttp\n",
            project.display()
        );
        fs::write(&bundle.imports, imports).unwrap();
        let error = bundle.check_imports(&project).unwrap_err().to_string();
        let lines: Vec<_> = error.lines().collect();
        assert_eq!(lines[1], "  node_modules/got/index.js imports http");
        assert_eq!(lines[2], "  plugin.js imports node:fs");
        assert!(lines[3].starts_with("A plugin has no files"), "{error}");
        assert_eq!(fs::read_to_string(wit.join("worlds.wit")).unwrap(), "world plugin {\n}\n");
    }
}
