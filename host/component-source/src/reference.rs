//! References to artifacts in OCI registries.

use std::{fmt, str::FromStr};

use crate::{
    digest::Digest,
    error::{Error, Reason},
};

/// The longest reference that is parsed.
const MAX_BYTES: usize = 512;

/// A reference to an artifact: `REGISTRY/REPOSITORY[:TAG][@sha256:HEX]`.
///
/// The registry is always written: a reference without one would depend on the host that reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The host of the registry, with its port if it has one.
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

// === impl Reference ===

impl Reference {
    /// Returns the host of the registry, with its port if it has one.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the repository in the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns the tag.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the digest. A manifest with another digest is an error.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns registry and repository.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Returns what names the manifest in a request: the digest, or else the tag.
    pub(crate) fn manifest(&self) -> String {
        match (self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |why: &str| {
            Err(Error::new(Reason::Invalid, format!("reference {text:.200?} {why}"))
                .hint("write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST, such as ghcr.io/team-a/mirror:1.4.0"))
        };
        if text.len() > MAX_BYTES {
            return refused("is too long");
        }
        let (text_before, digest) = match text.split_once('@') {
            None => (text, None),
            Some((before, digest)) => match digest.parse() {
                Ok(digest) => (before, Some(digest)),
                Err(()) => {
                    return refused(
                        "has a digest that is not sha256: and 64 hexadecimal digits in lower case",
                    );
                }
            },
        };
        let Some((registry, rest)) = text_before.split_once('/') else {
            return refused("names no registry");
        };
        // As Docker decides: a registry has a dot or a port, or is `localhost`.
        if !(registry.contains(['.', ':']) || registry == "localhost") {
            return refused("names no registry: its first part has neither a dot nor a port");
        }
        if !is_host(registry) {
            return refused("has no well-formed host before the first /");
        }
        let (repository, tag) = match rest.split_once(':') {
            None => (rest, None),
            Some((repository, tag)) => (repository, Some(tag)),
        };
        if repository.is_empty() || !repository.split('/').all(is_path_part) {
            return refused("has a repository that is not lower-case letters, digits and . _ - / only");
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return refused("has a tag that is not up to 128 letters, digits and . _ - only");
        }
        // The short names of Docker Hub.
        let is_official = registry == "docker.io" && !repository.contains('/');
        let repository = if is_official { format!("library/{repository}") } else { repository.to_owned() };
        Ok(Self { registry: registry.to_owned(), repository, tag: tag.map(str::to_owned), digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

/// Returns whether this is a host name, an IPv4 address or an IPv6 address in brackets, with or without a
/// port.
pub(crate) fn is_host(text: &str) -> bool {
    let (host, port) = match text.rfind(':') {
        Some(at) if !text.ends_with(']') => (&text[..at], Some(&text[at + 1..])),
        _ => (text, None),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    let is_v6 = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    is_port && (is_v6 || host.split('.').all(is_label))
}

fn is_path_part(part: &str) -> bool {
    let is_alphanumeric = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    part.bytes().next().is_some_and(is_alphanumeric)
        && part.bytes().last().is_some_and(is_alphanumeric)
        && part.bytes().all(|it| is_alphanumeric(it) || matches!(it, b'.' | b'_' | b'-'))
}

fn is_tag(tag: &str) -> bool {
    (1..=128).contains(&tag.len())
        && !tag.starts_with(['.', '-'])
        && tag.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_registry_repository_and_tag_or_digest() {
        let digest = Digest::of(b"");
        for text in
            ["ghcr.io/a/b:1.0", "localhost:5000/b", "localhost/b:x", "[::1]:5000/a:t", "10.0.0.1/a/b/c:V_1"]
        {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
        }
        let reference: Reference = format!("ghcr.io/a/b:1@{digest}").parse().unwrap();
        assert_eq!(reference.manifest(), digest.to_string(), "the digest wins");
        assert_eq!("a.io/b".parse::<Reference>().unwrap().manifest(), "latest");
        let official: Reference = "docker.io/nginx".parse().unwrap();
        assert_eq!(official.repository(), "library/nginx");
    }

    #[test]
    fn a_malformed_reference_says_what_is_wrong() {
        let refusal = |text: &str| text.parse::<Reference>().unwrap_err().to_string();
        insta::assert_snapshot!(refusal("nginx:1"), @r#"reference "nginx:1" names no registry"#);
        insta::assert_snapshot!(
            refusal("team/nginx:1"),
            @r#"reference "team/nginx:1" names no registry: its first part has neither a dot nor a port"#
        );
        insta::assert_snapshot!(
            refusal("a.io/b@sha256:12"),
            @r#"reference "a.io/b@sha256:12" has a digest that is not sha256: and 64 hexadecimal digits in lower case"#
        );
        for text in [
            "",
            "/",
            "a.io/",
            "a.io//b",
            "a.io/B",
            "a.io/../b",
            "a.io/b:",
            "a.io/b:.x",
            "a.io/b:a:b",
            "a.io:0/b",
            "user@a.io/b",
            "a.io/b c",
            "https://a.io/b",
            "a.io/b?x",
            "-a.io/b",
            &format!("a.io/{}", "b".repeat(600)),
        ] {
            assert_eq!(text.parse::<Reference>().unwrap_err().reason(), Reason::Invalid, "{text}");
        }
    }
}
