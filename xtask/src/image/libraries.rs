//! The dynamic libraries of a program, as the loader of this machine finds them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::toolchain::command;

/// A dynamic library, or the loader.
pub(super) struct Library {
    /// Where the program looks for it.
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// Returns the libraries of a program, sorted. A static program has none.
pub(super) fn of(program: &Path) -> Result<Vec<Library>> {
    let output = Command::new("ldd").arg(program).env("LC_ALL", "C").output().context("cannot run ldd")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    if !output.status.success() {
        bail!("ldd {}: {stderr}", program.display());
    }
    let mut paths = parse(&String::from_utf8_lossy(&output.stdout))?;
    paths.sort();
    paths.dedup();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Library { path, bytes })
    };
    paths.into_iter().map(read).collect()
}

/// Returns the package of Debian that a library is from, and its version, if this machine knows.
pub(super) fn package(library: &Library) -> Option<(String, String)> {
    let found = fs::canonicalize(&library.path).ok()?;
    let owner = [library.path.as_path(), &found]
        .into_iter()
        .find_map(|path| command::output(Command::new("dpkg").arg("-S").arg(path)).ok())?;
    let package = owner.lines().next()?.split([':', ',']).next()?.to_owned();
    let mut query = Command::new("dpkg-query");
    let version = command::output(query.args(["-W", "-f=${Version}\n", &package])).ok()?;
    Some((package, version.lines().next()?.to_owned()))
}

/// Reads the output of ldd.
fn parse(output: &str) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for line in output.lines().map(str::trim) {
        let place = match line.split_once("=>") {
            Some((name, place)) if place.trim() == "not found" => {
                bail!("the library {} of the program is not on this machine", name.trim())
            }
            Some((_, place)) => place.trim(),
            None => line,
        };
        // `linux-vdso.so.1` is a part of the kernel, and has no path.
        if let Some(path) = place.split_whitespace().next().filter(|place| place.starts_with('/')) {
            paths.push(PathBuf::from(path));
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_have_the_paths_that_the_loader_uses() {
        let output = "\tlinux-vdso.so.1 (0x00007f1b)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x0)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x0)\n";
        let paths = parse(output).unwrap();
        assert_eq!(
            paths,
            [Path::new("/lib/x86_64-linux-gnu/libc.so.6"), Path::new("/lib64/ld-linux-x86-64.so.2")]
        );
        assert_eq!(parse("\tstatically linked\n").unwrap(), [] as [PathBuf; 0]);
        let error = parse("\tlibz.so.1 => not found\n").unwrap_err().to_string();
        assert!(error.contains("libz.so.1"), "{error}");
    }
}
