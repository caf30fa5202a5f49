//! The target of a request, from its method and path.

use crate::query::decode;

/// The parts of a path below `/api` or `/apis`, and the verb of authorization.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RequestInfo {
    pub(crate) verb: String,
    pub(crate) path: String,
    /// `None` for paths without a resource.
    pub(crate) target: Option<Target>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// The path after the subresource; no resource of this server has any.
    pub(crate) rest: Vec<String>,
}

// === impl RequestInfo ===

impl RequestInfo {
    pub(crate) fn parse(method: &http::Method, path: &str, watch: bool) -> Self {
        let target = Target::parse(path);
        let verb = match (&target, method.as_str()) {
            (None, method) => method.to_lowercase(),
            (Some(target), "GET" | "HEAD") => match (target.name.is_empty(), watch) {
                (true, true) => "watch",
                (true, false) => "list",
                (false, _) => "get",
            }
            .to_owned(),
            (_, "POST") => "create".into(),
            (_, "PUT") => "update".into(),
            (_, "PATCH") => "patch".into(),
            (Some(target), "DELETE") if target.name.is_empty() => "deletecollection".into(),
            (_, "DELETE") => "delete".into(),
            (_, method) => method.to_lowercase(),
        };
        Self { verb, path: path.to_owned(), target }
    }
}

// === impl Target ===

impl Target {
    fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').map(decode);
        let (group, version) = match parts.next()?.as_str() {
            "api" => (String::new(), parts.next()?),
            "apis" => (parts.next()?, parts.next()?),
            _ => return None,
        };
        let mut target = Self { group, version, ..Self::default() };
        let mut parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        if parts.first().is_some_and(|first| first == "namespaces") && parts.len() > 1 {
            target.namespace = parts[1].clone();
            // `namespaces/a` and `namespaces/a/status` name the Namespace itself.
            if parts.len() > 2 && !matches!(parts[2].as_str(), "status" | "finalize") {
                parts.drain(..2);
            }
        }
        let mut parts = parts.into_iter();
        target.resource = parts.next()?;
        target.name = parts.next().unwrap_or_default();
        target.subresource = parts.next().unwrap_or_default();
        target.rest = parts.collect();
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn parse(method: Method, path: &str) -> (String, String) {
        let info = RequestInfo::parse(&method, path, false);
        let target = info.target.map(|t| {
            format!(
                "{}/{} ns={} {} {} {}",
                t.group, t.version, t.namespace, t.resource, t.name, t.subresource
            )
        });
        (info.verb, target.unwrap_or_default())
    }

    #[test]
    fn paths_are_parsed() {
        for (method, path, verb, target) in [
            (Method::GET, "/api/v1/pods", "list", "/v1 ns= pods  "),
            (Method::GET, "/api/v1/namespaces/a/pods/b", "get", "/v1 ns=a pods b "),
            (Method::PUT, "/api/v1/namespaces/a/pods/b/status", "update", "/v1 ns=a pods b status"),
            (Method::DELETE, "/api/v1/namespaces/a/pods", "deletecollection", "/v1 ns=a pods  "),
            (Method::DELETE, "/api/v1/namespaces/a", "delete", "/v1 ns=a namespaces a "),
            (Method::PATCH, "/api/v1/namespaces/a/status", "patch", "/v1 ns=a namespaces a status"),
            (Method::POST, "/apis/apps/v1/namespaces/a/deployments", "create", "apps/v1 ns=a deployments  "),
            (Method::GET, "/apis/apps/v1", "get", ""),
            (Method::GET, "/healthz", "get", ""),
        ] {
            assert_eq!(parse(method, path), (verb.to_owned(), target.to_owned()), "{path}");
        }
    }
}
