//! The JSON schemas that editors read, beside what a build writes into the folder of a plugin.

use std::{fs, path::Path};

use anyhow::Context;
use oarlock_controller::config::PluginFile;
use oarlock_plugin_test::Case;

/// Writes `.oarlock/plugin.schema.json` and `.oarlock/case.schema.json`, which the first lines of a new
/// plugin's files name. A file that is up to date is left alone.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    let folder = folder.join(".oarlock");
    for (name, schema) in [("plugin", PluginFile::schema()), ("case", Case::schema())] {
        let path = folder.join(format!("{name}.schema.json"));
        let text = format!("{schema:#}\n");
        if fs::read_to_string(&path).is_ok_and(|is| is == text) {
            continue;
        }
        let write = || {
            fs::create_dir_all(&folder)?;
            fs::write(&path, text)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
