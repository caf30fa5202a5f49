//! The names of Plugin and ClusterPlugin objects, in place of the paths that stand for their files.
//!
//! The host keeps the definition of an object under a path such as
//! `/plugins.oarlock.dev/NAMESPACE/NAME/UID/ACCOUNT`, which is no file. JSON has this path; people read
//! `Plugin NAMESPACE/NAME`.

use std::borrow::Cow;

/// The folder of the paths of Plugins, and of those of ClusterPlugins.
const PLUGINS: &str = "/plugins.oarlock.dev/";
const CLUSTER_PLUGINS: &str = "/clusterplugins.oarlock.dev/";

/// The parts of a path after the name: the uid and the account.
const AFTER_NAME: usize = 2;

/// Returns a text with the names of objects in place of the paths that stand for their files.
#[must_use]
pub fn with_object_names(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((at, name, length)) = first(rest, text.len() > rest.len()) {
        shown += &rest[..at];
        shown += &name;
        rest = &rest[at + length..];
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(shown + rest)
}

/// Returns the place, the name and the length of the first path of an object. `is_within` says that the text
/// is the rest of a longer one.
fn first(text: &str, is_within: bool) -> Option<(usize, String, usize)> {
    let places = text.match_indices('/').map(|(at, _)| at);
    // Within a longer path it is a folder of the machine.
    let begins = |at: &usize| match text[..*at].chars().next_back() {
        Some(before) => !is_part(before) && before != '/',
        None => !is_within,
    };
    places.filter(begins).find_map(|at| {
        let path = &text[at..];
        let (folder, n_names, kind) = match path.starts_with(PLUGINS) {
            true => (PLUGINS, 2, "Plugin"),
            false => (CLUSTER_PLUGINS, 1, "ClusterPlugin"),
        };
        let parts = path.strip_prefix(folder)?;
        let end = parts.find(|it| !is_part(it) && it != '/').unwrap_or(parts.len());
        // The full stop of a sentence is no part of the path.
        let parts: Vec<_> =
            parts[..end].trim_end_matches(['.', '/']).split('/').take(n_names + AFTER_NAME).collect();
        let names = parts.get(..n_names).filter(|names| names.iter().all(|it| !it.is_empty()))?;
        Some((at, format!("{kind} {}", names.join("/")), folder.len() + parts.join("/").len()))
    })
}

fn is_part(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '-' || it == '.' || it == '_'
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::plugin_resource::is_of_object;

    #[test]
    fn the_file_of_an_object_is_shown_as_its_kind_and_name() {
        for (file, shown) in [
            ("/plugins.oarlock.dev/team-a/mirror/4f2a-1/mirror", "Plugin team-a/mirror"),
            ("/plugins.oarlock.dev/team-a/mirror", "Plugin team-a/mirror"),
            ("/clusterplugins.oarlock.dev/census/4f2a-1/a.b", "ClusterPlugin census"),
        ] {
            assert_eq!(with_object_names(file), shown);
            assert!(is_of_object(Path::new(file)), "{file}");
        }
        for file in [
            "plugins/mirror.yaml",
            "/home/a/plugins.oarlock.dev/b/c.yaml",
            "/plugins.oarlock.dev",
            "/plugins.oarlock.dev/a",
            "/clusterplugins.oarlock.dev/",
            "Plugin of a.yaml",
            "Plugin team-a/mirror",
        ] {
            assert_eq!(with_object_names(file), file);
        }
    }

    #[test]
    fn each_path_of_an_object_in_a_text_is_replaced() {
        let text = "/plugins.oarlock.dev/a/b/1/c: the name `b` is already used in \
                    \"/clusterplugins.oarlock.dev/b/2/c\", not in /tmp/plugins.oarlock.dev/a/b.";
        assert_eq!(
            with_object_names(text),
            "Plugin a/b: the name `b` is already used in \"ClusterPlugin b\", not in /tmp/plugins.oarlock.dev/a/b."
        );
        assert_eq!(with_object_names("see /plugins.oarlock.dev/a/b/1/c. Then"), "see Plugin a/b. Then");
    }
}
