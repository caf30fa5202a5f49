//! A `requirements.txt`: which of its packages build the component, and which become part of it.

use anyhow::{Result, bail, ensure};

/// The package that builds components.
const BUILDER: &str = "componentize-py";

/// The packages of which this binary has one version, with the folders of their modules among the SDKs. The
/// second imports the first.
const OWN: [(&str, &[&str]); 2] =
    [("oarlock-sdk", &["python/src"]), ("oarlock-kopf", &["python/src", "python-kopf/src"])];
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Options of pip about where packages are; they hold for both lists.
const INDEX_OPTIONS: [&str; 6] =
    ["-i", "-f", "--index-url", "--extra-index-url", "--find-links", "--trusted-host"];

/// The packages of a `requirements.txt`, as two files of that format.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// Packages that run on this machine.
    pub(crate) tools: String,
    /// Packages that the component imports; empty if there are none.
    pub(crate) imports: String,
    /// The folders of the packages among the SDKs that the component imports.
    pub(crate) sdks: Vec<&'static str>,
}

// === impl Requirements ===

impl Requirements {
    /// Parses the text of a `requirements.txt`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (mut tools, mut imports) = (vec![], vec![]);
        let (mut options, mut sdks) = (vec![], vec![]);
        let text = text.replace("\r\n", "\n").replace("\\\n", " ");
        for line in text.lines() {
            let line = line.split_once(" #").map_or(line, |(line, _)| line).trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with('-') {
                let option = line.split([' ', '=']).next().unwrap_or_default();
                ensure!(
                    INDEX_OPTIONS.contains(&option),
                    "requirements.txt has {option}, which a build does not know: name the packages in this file"
                );
                options.push(line);
                continue;
            }
            let (name, version) = name_and_version(line);
            let is_own_version = version.is_empty() || version == format!("=={OWN_VERSION}");
            match OWN.iter().find(|(own, _)| *own == name) {
                _ if name == BUILDER => tools.push(line),
                Some((_, folders)) if is_own_version => sdks.extend(*folders),
                _ => imports.push(line),
            }
        }
        if tools.is_empty() {
            bail!("requirements.txt does not name {BUILDER}: add the line `{BUILDER}==0.25.1`");
        }
        let file = |packages: Vec<&str>| {
            if packages.is_empty() {
                String::new()
            } else {
                [options.clone(), packages].concat().join("\n") + "\n"
            }
        };
        Ok(Self { tools: file(tools), imports: file(imports), sdks })
    }
}

/// Returns the normalized name of a package, and what is demanded of its version.
fn name_and_version(line: &str) -> (String, String) {
    let is_of_name = |it: char| it.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&it);
    let end = line.find(|it| !is_of_name(it)).unwrap_or(line.len());
    let (name, version) = line.split_at(end);
    let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
    (name, version.chars().filter(|it| !it.is_whitespace()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_package_decides_where_it_goes() {
        let text = "# what a build needs\ncomponentize_py==0.25.1  # pinned\noarlock-sdk\n\n\
            --index-url https://pypi.example\nidna>=3 \\\n  --hash=sha256:00\npackaging\n";
        let parsed = Requirements::parse(text).unwrap();
        let index = "--index-url https://pypi.example\n";
        assert_eq!(parsed.tools, format!("{index}componentize_py==0.25.1\n"));
        assert_eq!(parsed.imports, format!("{index}idna>=3    --hash=sha256:00\npackaging\n"));
        assert_eq!(parsed.sdks, ["python/src"]);
    }

    #[test]
    fn another_version_of_the_sdk_comes_from_the_index() {
        let parse = |sdk: &str| Requirements::parse(&format!("componentize-py\n{sdk}\n")).unwrap();
        for own in ["oarlock-sdk", "Oarlock.SDK", &format!("oarlock-sdk == {OWN_VERSION}")] {
            assert_eq!((parse(own).sdks.len(), parse(own).imports.as_str()), (1, ""), "{own}");
        }
        let other = parse("oarlock-sdk==99.0");
        assert_eq!((other.sdks.len(), other.imports.as_str()), (0, "oarlock-sdk==99.0\n"));
        assert_eq!(parse("oarlock-kopf").sdks, ["python/src", "python-kopf/src"]);
    }

    #[test]
    fn a_file_that_a_build_cannot_follow_is_refused() {
        for (text, reason) in [
            ("idna\n", "does not name componentize-py"),
            ("componentize-py\n-r others.txt\n", "has -r"),
            ("componentize-py\n--constraint=a.txt\n", "has --constraint"),
            ("componentize-py\n-e .\n", "has -e"),
        ] {
            let error = Requirements::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }
}
