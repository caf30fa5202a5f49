//! Cluster IPs of Services, allocated in order from a usual service range.
//!
//! Nothing listens on them. Node ports are not allocated.

use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The addresses of 10.96.0.0/12 after the first, which is the API server's on a real cluster.
#[derive(Debug)]
pub(crate) struct ClusterIps {
    next: AtomicU32,
}

const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 2]);

// === impl ClusterIps ===

impl Default for ClusterIps {
    fn default() -> Self {
        Self { next: AtomicU32::new(FIRST) }
    }
}

impl ClusterIps {
    /// Allocates the addresses of a new Service that does not choose them.
    pub(crate) fn assign(&self, service: &mut Value) {
        let spec = &mut service["spec"];
        if !spec.is_object() || spec["type"] == "ExternalName" {
            return;
        }
        let asked = spec["clusterIP"].as_str().unwrap_or_default();
        let address = match asked {
            "" => Ipv4Addr::from(self.next.fetch_add(1, Ordering::Relaxed)).to_string(),
            asked => asked.to_owned(),
        };
        spec["clusterIP"] = address.as_str().into();
        spec["clusterIPs"] = json!([address]);
        for (field, default) in [("ipFamilies", json!(["IPv4"])), ("ipFamilyPolicy", json!("SingleStack"))] {
            if spec.get(field).is_none_or(Value::is_null) {
                spec[field] = default;
            }
        }
    }
}

/// The Service through which Pods reach the API server on a real cluster.
pub(crate) fn kubernetes_service() -> Value {
    json!({
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}],
        },
    })
}

/// Keeps the addresses in an update that omits them.
pub(crate) fn keep_address(new: &mut Value, old: &Value) {
    if new["spec"]["type"] == "ExternalName" || !new["spec"].is_object() {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if let (None, Some(kept)) = (new["spec"].get(field), old["spec"].get(field)) {
            new["spec"][field] = kept.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_allocated_once_and_kept() {
        let ips = ClusterIps::default();
        let service = |spec: Value| json!({"spec": spec});
        let mut first = service(json!({"type": "ClusterIP"}));
        ips.assign(&mut first);
        assert_eq!(first["spec"]["clusterIP"], "10.96.0.2");
        let mut second = service(json!({"type": "NodePort"}));
        ips.assign(&mut second);
        assert_eq!(second["spec"]["clusterIPs"], json!(["10.96.0.3"]));
        let mut headless = service(json!({"type": "ClusterIP", "clusterIP": "None"}));
        ips.assign(&mut headless);
        assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
        let mut updated = service(json!({"type": "ClusterIP"}));
        keep_address(&mut updated, &first);
        assert_eq!(updated["spec"]["clusterIP"], "10.96.0.2");
        let mut external = service(json!({"type": "ExternalName"}));
        ips.assign(&mut external);
        assert!(external["spec"].get("clusterIP").is_none());
    }
}
