//! Kubernetes' functions on URLs, IP addresses and CIDR notation.

use cel::extractors::This;
use cel::objects::Opaque;
use cel::{Context, DeclarationError, ExecutionError, Value};
use http::Uri;
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

pub(super) const NAMES: super::Functions = &[
    "url",
    "isURL",
    "getScheme",
    "getHost",
    "getHostname",
    "getPort",
    "getEscapedPath",
    "getQuery",
    "ip",
    "isIP",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "isCanonical",
    "cidr",
    "isCIDR",
    "containsIP",
    "containsCIDR",
    "masked",
    "prefixLength",
];

pub(super) fn declare(context: &mut Context<'static, 'static>) -> Result<(), DeclarationError> {
    context.add_function("url", |text: Text| parse_url(&text).map(wrap))?;
    context.add_function("isURL", |text: Text| parse_url(&text).is_ok())?;
    let parts: [(_, Part); 5] = [
        ("getScheme", |uri| uri.scheme_str().unwrap_or_default().to_owned()),
        ("getHost", |uri| uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default()),
        ("getHostname", |uri| uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned()),
        ("getPort", |uri| uri.port().map(|port| port.as_str().to_owned()).unwrap_or_default()),
        ("getEscapedPath", |uri| uri.path().to_owned()),
    ];
    for (name, part) in parts {
        context.add_function(name, move |This(this): This<Arc<dyn Opaque>>| {
            Ok::<_, ExecutionError>(Value::from(part(&unwrap::<Url>(name, &this)?.0)))
        })?;
    }
    context.add_function("getQuery", |This(this): This<Arc<dyn Opaque>>| query(&this))?;

    context.add_function("ip", ip)?;
    context.add_function("isIP", |text: Text| parse_ip(&text).is_ok())?;
    context.add_function("isCanonical", |text: Text| {
        Ok::<_, ExecutionError>(parse_ip(&text)?.0.to_string() == *text)
    })?;
    context.add_function("family", |This(this): This<Arc<dyn Opaque>>| {
        Ok::<_, ExecutionError>(if unwrap::<Ip>("family", &this)?.0.is_ipv4() { 4_i64 } else { 6 })
    })?;
    let tests: [(_, Test); 5] = [
        ("isUnspecified", IpAddr::is_unspecified),
        ("isLoopback", IpAddr::is_loopback),
        ("isLinkLocalMulticast", is_link_local_multicast),
        ("isLinkLocalUnicast", is_link_local_unicast),
        ("isGlobalUnicast", is_global_unicast),
    ];
    for (name, test) in tests {
        context.add_function(name, move |This(this): This<Arc<dyn Opaque>>| {
            Ok::<_, ExecutionError>(test(&unwrap::<Ip>(name, &this)?.0))
        })?;
    }

    context.add_function("cidr", |text: Text| parse_cidr(&text).map(wrap))?;
    context.add_function("isCIDR", |text: Text| parse_cidr(&text).is_ok())?;
    context.add_function("containsIP", |This(this): This<Arc<dyn Opaque>>, other: Value| {
        let net = unwrap::<Cidr>("containsIP", &this)?.0;
        Ok::<_, ExecutionError>(net.contains(&match &other {
            Value::String(text) => parse_ip(text)?.0,
            Value::Opaque(ip) => unwrap::<Ip>("containsIP", ip)?.0,
            _ => return Err(ExecutionError::function_error("containsIP", "takes an IP address")),
        }))
    })?;
    context.add_function("containsCIDR", |This(this): This<Arc<dyn Opaque>>, other: Value| {
        let net = unwrap::<Cidr>("containsCIDR", &this)?.0;
        Ok::<_, ExecutionError>(net.contains(&match &other {
            Value::String(text) => parse_cidr(text)?.0,
            Value::Opaque(other) => unwrap::<Cidr>("containsCIDR", other)?.0,
            _ => return Err(ExecutionError::function_error("containsCIDR", "takes a CIDR")),
        }))
    })?;
    context.add_function("masked", |This(this): This<Arc<dyn Opaque>>| {
        Ok::<_, ExecutionError>(wrap(Cidr(unwrap::<Cidr>("masked", &this)?.0.trunc())))
    })?;
    context.add_function("prefixLength", |This(this): This<Arc<dyn Opaque>>| {
        Ok::<_, ExecutionError>(i64::from(unwrap::<Cidr>("prefixLength", &this)?.0.prefix_len()))
    })
}

type Text = Arc<String>;
type Part = fn(&Uri) -> String;
type Test = fn(&IpAddr) -> bool;

#[derive(Debug, PartialEq, Eq)]
struct Url(Uri);

#[derive(Debug, PartialEq, Eq)]
struct Ip(IpAddr);

#[derive(Debug, PartialEq, Eq)]
struct Cidr(IpNet);

impl Opaque for Url {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.URL"
    }
}

impl Opaque for Ip {
    fn runtime_type_name(&self) -> &str {
        "net.IP"
    }
}

impl Opaque for Cidr {
    fn runtime_type_name(&self) -> &str {
        "net.CIDR"
    }
}

fn wrap<T: Opaque>(value: T) -> Value {
    Value::Opaque(Arc::new(value))
}

fn unwrap<'a, T: Opaque>(function: &str, value: &'a Arc<dyn Opaque>) -> Result<&'a T, ExecutionError> {
    value.downcast_ref::<T>().ok_or_else(|| {
        let why = format!("no such overload for {}", value.runtime_type_name());
        ExecutionError::function_error(function, why)
    })
}

/// Like Go's `url.ParseRequestURI`: accepts an absolute URL or an absolute path.
fn parse_url(text: &str) -> Result<Url, ExecutionError> {
    let uri: Uri = text.parse().map_err(|error| ExecutionError::function_error("url", error))?;
    if uri.scheme().is_none() && !text.starts_with('/') {
        return Err(ExecutionError::function_error("url", format!("invalid URI for request: {text:?}")));
    }
    Ok(Url(uri))
}

/// Returns the percent-decoded values of each name.
fn query(this: &Arc<dyn Opaque>) -> Result<Value, ExecutionError> {
    let text = unwrap::<Url>("getQuery", this)?.0.query().unwrap_or_default();
    let mut values: std::collections::HashMap<String, Vec<Value>> = std::collections::HashMap::new();
    for (name, value) in crate::query::pairs(text) {
        values.entry(name).or_default().push(Value::from(value));
    }
    Ok(Value::Map(values.into()))
}

/// `ip(text)`, and `cidr.ip()`.
fn ip(This(this): This<Value>) -> Result<Value, ExecutionError> {
    match &this {
        Value::String(text) => parse_ip(text).map(wrap),
        Value::Opaque(cidr) => Ok(wrap(Ip(unwrap::<Cidr>("ip", cidr)?.0.addr()))),
        _ => Err(ExecutionError::function_error("ip", "takes a string")),
    }
}

/// Refuses IPv4-mapped IPv6 addresses and zones, like Kubernetes' library.
fn parse_ip(text: &str) -> Result<Ip, ExecutionError> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(mapped)) if mapped.to_ipv4_mapped().is_some() => Err(ExecutionError::function_error(
            "ip",
            format!("IPv4-mapped IPv6 address {text:?} is not allowed"),
        )),
        Ok(address) => Ok(Ip(address)),
        Err(error) => {
            Err(ExecutionError::function_error("ip", format!("IP Address {text:?} parse error: {error}")))
        }
    }
}

fn parse_cidr(text: &str) -> Result<Cidr, ExecutionError> {
    text.parse().map(Cidr).map_err(|error| {
        ExecutionError::function_error("cidr", format!("network address parse error: {error}"))
    })
}

fn is_link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

/// Like Go's `IsGlobalUnicast`, which includes private addresses.
fn is_global_unicast(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(is_broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address))
}
