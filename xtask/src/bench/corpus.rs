//! Describes the measured objects and how well they compress, since the figures depend on both.

use std::io::Read;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::build::Programs;

/// Returns the description, in lines.
pub(crate) fn describe(programs: &Programs) -> Result<Vec<String>> {
    let mut generator = Command::new(&programs.peers)
        .arg("corpus")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run the generator")?;
    let pods = generator.stdout.take().context("stdout is piped")?;
    let compressed = Command::new(&programs.oarlock)
        .arg("zstd")
        .stdin(pods)
        .output()
        .context("cannot compress the corpus")?;
    let mut description = String::new();
    generator.stderr.take().context("stderr is piped")?.read_to_string(&mut description)?;
    ensure!(
        generator.wait()?.success() && compressed.status.success(),
        "the corpus generator failed: {description}"
    );
    let bytes: u64 = String::from_utf8(compressed.stdout)?.trim().parse()?;
    let mut lines: Vec<_> = description.lines().map(str::to_owned).collect();
    lines.push(format!("all of it compressed with zstd -19: {bytes} bytes, {} per Pod", bytes / 10_000));
    Ok(lines)
}
