//! The arguments of `oarlock install`.

use std::str::FromStr;

use clap::Args as ClapArgs;
use oarlock_component_source::Reference;

pub(crate) const INSTALL_EXAMPLES: &str = "\
Examples:
  oarlock install --print --image registry.example.com/oarlock | kubectl apply --server-side -f -
  oarlock install --print --image registry.example.com/oarlock | kubectl delete -f -";

#[derive(Debug, ClapArgs)]
pub(crate) struct InstallArgs {
    /// Prints the objects as YAML. The command applies nothing by itself.
    #[arg(long, required = true)]
    pub(crate) print: bool,

    /// The image of the host. Without a tag or digest, the tag is the version of this program.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Image,

    /// The namespace of the host.
    #[arg(long, default_value = "oarlock-system", value_name = "NAME")]
    pub(crate) namespace: NamespaceName,
}

/// The reference of an image, with a tag or digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image(pub(crate) String);

/// The name of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceName(pub(crate) String);

// === impl Image ===

impl FromStr for Image {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A kubelet takes the first part for a registry only if it looks like one.
        let (first, _) = text.split_once('/').unwrap_or_default();
        let is_registry = first.contains(['.', ':']) || first == "localhost";
        let full = if is_registry { text.to_owned() } else { format!("docker.io/{text}") };
        let reference: Reference = full.parse().map_err(|error| {
            let why = format!("{error}").replace("docker.io/", "");
            format!("{why}; write the reference of an image, such as registry.example.com/oarlock:0.1.0")
        })?;
        let is_named = reference.tag().is_some() || reference.digest().is_some();
        Ok(Self(if is_named { text.to_owned() } else { format!("{text}:{}", env!("CARGO_PKG_VERSION")) }))
    }
}

// === impl NamespaceName ===

impl FromStr for NamespaceName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if is_label(text) && text.len() <= 63 {
            Ok(Self(text.to_owned()))
        } else {
            Err(
                "the name of a namespace has at most 63 characters: lowercase letters, digits and, within it, `-`",
            )
        }
    }
}

/// Returns whether a text is a label of a DNS name, of any length.
pub(super) fn is_label(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|it| is_inner(it) || it == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_tag_or_digest_has_the_version_of_the_program() {
        let image = |text: &str| text.parse::<Image>().map(|Image(text)| text);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(image("localhost:5000/oarlock").unwrap(), format!("localhost:5000/oarlock:{version}"));
        let by_digest = format!("r.example.com/a/oarlock@sha256:{}", "0f".repeat(32));
        for complete in ["oarlock:1", "team/oarlock:1", &by_digest, "localhost:5000/oarlock:1-a_b.c"] {
            assert_eq!(image(complete).unwrap(), complete);
        }
        for wrong in [
            "",
            "-a",
            "a b",
            "a\nb",
            "a:",
            "{a}",
            "a#b",
            "a'b",
            &"a".repeat(2000),
            "https://r.example.com/oarlock",
            "r.example.com/Oarlock:1",
            "r.example.com/oarlock@sha256:00ff",
            "r.example.com/oarlock:",
        ] {
            assert!(image(wrong).unwrap_err().contains("registry.example.com/oarlock:0.1.0"), "{wrong:?}");
        }
    }

    #[test]
    fn a_namespace_is_a_dns_label() {
        for right in ["a", "team-a", "123", &"a".repeat(63)] {
            assert_eq!(right.parse::<NamespaceName>(), Ok(NamespaceName(right.to_owned())));
        }
        for wrong in ["", "Team", "a.b", "-a", "a-", "a b", "ä", &"a".repeat(64)] {
            assert!(wrong.parse::<NamespaceName>().is_err(), "{wrong:?}");
        }
    }
}
