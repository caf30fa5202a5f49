//! The installation: its three forms are equal, and a real API server accepts them.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;
use kube::config::Kubeconfig;
use oarlock_tests::cluster::Cluster;
use oarlock_tests::control_plane;
use oarlock_tests::host_process::checkout;
use oarlock_tests::manifests::{IMAGE, charted, kustomized, printed};
use oarlock_tests::tool;
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

use crate::command::refused;

/// Values of the chart that set everything that can be set.
const ALL_VALUES: &str = r#"
image:
  repository: registry.example.com/oarlock
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  pullPolicy: Always
imagePullSecrets: [registry]
replicas: 3
extraArgs: [--plugins=/plugins, --max-cache-bytes=512Mi]
extraEnv: [{name: OARLOCK_LOG, value: info}]
extraVolumes: [{name: plugins, configMap: {name: plugins}}]
extraVolumeMounts: [{name: plugins, mountPath: /plugins, readOnly: true}]
resources: {requests: {cpu: "1"}, limits: {memory: 8Gi}}
volumes: {cache: 1Gi, state: 1.5Gi, tmp: 100M}
terminationGracePeriodSeconds: 90
priorityClassName: system-cluster-critical
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: infra, operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: infra, operator: Exists}]}]}}}
podLabels: {team: platform}
podAnnotations: {example.com/a: "1"}
serviceAccount: {annotations: {example.com/role: oarlock}}
watch: {defaultRules: false, extraRules: [{apiGroups: [example.com], resources: [widgets], verbs: [list, watch]}]}
clusterPlugins: {enabled: false}
userRoles: {enabled: false}
networkPolicy:
  egressPorts: [16443]
  extraIngress: [{from: [{namespaceSelector: {}}]}]
  extraEgress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]
podDisruptionBudget: {maxUnavailable: 50%}
sourcePolicy: {policy: {kinds: [oci], trustedRoot: root.json}, files: {root.json: "{}"}}
tracing: {endpoint: "https://collector.example.com/otlp", ratio: 0.5}
dashboard: {enabled: true, labels: {dashboards: platform}}
"#;

#[test]
fn the_kustomization_the_chart_and_the_printed_installation_are_equal() -> anyhow::Result<()> {
    let chart = fs::read_to_string(checkout().join("deploy/helm/oarlock/Chart.yaml"))?;
    let chart: Value = serde_norway::from_str(&chart)?;
    assert_eq!([&chart["version"], &chart["appVersion"]], [env!("CARGO_PKG_VERSION"); 2]);
    assert_equal(("kustomize build", kustomized(&[])?), ("oarlock install", printed("oarlock-system")?));
    let values = format!("image: {{repository: {IMAGE}}}");
    for namespace in ["oarlock-system", "controllers"] {
        let mut from_chart = charted(namespace, &values)?;
        let mut printed = printed(namespace)?;
        // `helm install --create-namespace` makes the namespace.
        printed.retain(|object| object["kind"] != "Namespace");
        for objects in [&mut from_chart, &mut printed] {
            objects.iter_mut().for_each(without_marks_of_the_chart);
        }
        assert_equal(("helm template", from_chart), ("oarlock install", printed));
    }
    Ok(())
}

#[test]
fn the_chart_refuses_values_that_its_schema_does_not_allow() -> anyhow::Result<()> {
    let image = format!("image: {{repository: {IMAGE}}}");
    assert!(charted("oarlock-system", &image)?.len() > 20);
    charted("oarlock-system", "image: {repository: 'localhost:5000/oarlock'}")?;
    for (values, reason) in [
        ("", "at '/image/repository'"),
        ("image: {repository: 'localhost:5000/oarlock:v1'}", "at '/image/repository'"),
        ("image: {repository: a, tag: 'b c'}", "at '/image/tag'"),
        ("image: {repository: a, digest: 'sha256:1'}", "at '/image/digest'"),
        ("replica: 3", "'replica' not allowed"),
        ("replicas: two", "at '/replicas'"),
        ("extraArgs: [plugins]", "at '/extraArgs/0'"),
        ("volumes: {cache: large}", "at '/volumes/cache'"),
        ("sourcePolicy: {policy: {allowed: []}}", "'allowed' not allowed"),
        ("sourcePolicy: {policy: {kinds: [git]}}", "at '/sourcePolicy/policy/kinds/0'"),
        ("sourcePolicy: {files: {a/b: c}}", "invalid propertyName 'a/b'"),
        (
            "watch: {extraRules: [{apiGroups: [''], resources: [secrets], verbs: ['*']}]}",
            "at '/watch/extraRules/0/verbs/0'",
        ),
        ("networkPolicy: {egressPorts: [0]}", "at '/networkPolicy/egressPorts/0'"),
        ("serviceMonitor: {interval: often}", "at '/serviceMonitor/interval'"),
        ("podMonitor: {enabled: true}", "at '/podMonitor/tokenSecret/name'"),
        ("prometheusRule: {labels: {a: 1}}", "at '/prometheusRule/labels/a'"),
        ("dashboard: {labels: {a: 1}}", "at '/dashboard/labels/a'"),
        ("tracing: {endpoint: 'collector:4318'}", "at '/tracing/endpoint'"),
        ("tracing: {endpoint: 'http://user:word@collector:4318'}", "at '/tracing/endpoint'"),
        ("tracing: {ratio: 2}", "at '/tracing/ratio'"),
    ] {
        let values = if values.contains("image") || values.is_empty() {
            values.to_owned()
        } else {
            format!("{image}\n{values}")
        };
        let refused = charted("oarlock-system", &values).err().map(|error| format!("{error:#}"));
        assert!(refused.as_ref().is_some_and(|it| it.contains(reason)), "{values}: {refused:?}");
    }
    Ok(())
}

#[test]
fn the_endpoint_of_traces_becomes_a_flag_and_its_port_is_allowed() -> anyhow::Result<()> {
    for (endpoint, port) in [
        ("http://collector.observability:4318", 4318),
        ("https://collector.example.com/otlp", 443),
        ("http://collector", 80),
    ] {
        let values =
            format!("image: {{repository: {IMAGE}}}\ntracing: {{endpoint: '{endpoint}', ratio: 0.25}}");
        let objects = charted("oarlock-system", &values)?;
        let of = |kind: &str| objects.iter().find(|it| it["kind"] == kind).unwrap();
        let args = &of("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
        let args: Vec<_> = args.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(args.contains(&&*format!("--otlp-endpoint={endpoint}")), "{args:?}");
        assert!(args.contains(&"--trace-ratio=0.25"), "{args:?}");
        let egress = of("NetworkPolicy")["spec"]["egress"].as_array().unwrap();
        assert_eq!(
            egress.last().unwrap(),
            &json!({"ports": [{"port": port, "protocol": "TCP"}]}),
            "{endpoint}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_accepts_every_form_of_the_installation() -> anyhow::Result<()> {
    let forms = [
        ("kustomize build", kustomized(&[])?),
        ("helm template", charted("oarlock-system", &format!("image: {{repository: {IMAGE}}}"))?),
        ("helm template with all values", charted("oarlock-system", ALL_VALUES)?),
    ];
    let control_plane = control_plane::start().await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&control_plane.kubeconfig())?).await?;
    let objects = printed("oarlock-system")?;
    let (namespaces, others): (Vec<_>, Vec<_>) = objects.iter().partition(|it| it["kind"] == "Namespace");
    for namespace in namespaces {
        cluster.apply(&namespace.to_string()).await?;
    }
    for (form, objects) in &forms {
        let dry = cluster.dry_run(objects).await;
        assert!(dry.is_ok(), "{form}: {dry:?}");
    }
    // Stored, and again, as at an upgrade.
    for _ in 0..2 {
        for object in &others {
            cluster.apply(&object.to_string()).await?;
        }
    }

    // The samples fit the definitions, which are served a moment after they are stored.
    for sample in fs::read_dir(checkout().join("deploy/samples"))? {
        let sample = sample?.path();
        let text = fs::read_to_string(&sample)?;
        wait_until(&sample.display().to_string(), async || cluster.apply(&text).await).await?;
    }

    // The namespace has the label for restricted Pods, which the API server checks of a Pod.
    let (_, from_all_values) = &forms[2];
    for objects in [&objects, from_all_values] {
        let deployment = objects.iter().find(|it| it["kind"] == "Deployment").unwrap();
        let template = &deployment["spec"]["template"];
        cluster.dry_run(&[pod(&template["spec"])]).await?;
        let mut open = template["spec"].clone();
        open["securityContext"] = json!({});
        let refused = cluster.dry_run(&[pod(&open)]).await.err().map(|error| format!("{error:#}"));
        assert!(refused.as_ref().is_some_and(|it| it.contains("runAsNonRoot")), "{refused:?}");
    }
    Ok(())
}

/// `plugin_sources` tests what a ClusterPlugin says without the opt-in of the host's namespace.
#[test]
fn without_cluster_plugins_the_namespace_of_the_host_has_not_opted_in() -> anyhow::Result<()> {
    let image = format!("image: {{repository: {IMAGE}}}");
    let names = |values: &str| -> anyhow::Result<Vec<String>> {
        let objects = charted("oarlock-system", values)?;
        Ok(objects.iter().map(|it| format!("{} {}", it["kind"], it["metadata"]["name"])).collect())
    };
    let mut with = names(&image)?;
    let without = names(&format!("{image}\nclusterPlugins: {{enabled: false}}"))?;
    with.retain(|it| !without.contains(it));
    assert_eq!(with, [r#""RoleBinding" "oarlock-impersonator""#]);
    Ok(())
}

/// The host reads what the chart mounts.
#[test]
fn the_source_policy_of_the_chart_is_a_file_that_the_host_reads() -> anyhow::Result<()> {
    let render = |policy: &str| {
        let values = format!(
            "image: {{repository: {IMAGE}}}\nsourcePolicy: {{policy: {policy}, files: {{ca.pem: not a certificate}}}}"
        );
        let objects = charted("oarlock-system", &values)?;
        let of = |kind: &str, name: &str| {
            let found = objects.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
            found.cloned().with_context(|| format!("no {kind} {name}"))
        };
        anyhow::Ok((of("ConfigMap", "oarlock-source-policy")?, of("Deployment", "oarlock")?))
    };
    let policy = "{kinds: [oci, https], allow: [ghcr.io/team-a/*], privateAddresses: [10.20.0.0/16], plainHttp: ['registry.tools.svc:5000'], \
         mirrors: [{registry: docker.io, endpoints: [mirror.example.com/hub]}], maxBytes: 1048576}";
    let (config, deployment) = render(policy)?;
    let pod = &deployment["spec"]["template"]["spec"];
    let (container, volume) = (&pod["containers"][0], "source-policy");
    let args = container["args"].as_array().context("a container has arguments")?;
    let path = args.iter().filter_map(Value::as_str).find_map(|it| it.strip_prefix("--source-policy="));
    let (folder, file) = path.and_then(|it| it.rsplit_once('/')).context("no flag")?;
    let mounts = container["volumeMounts"].as_array().context("a container has mounts")?;
    assert!(mounts.contains(&json!({"name": volume, "mountPath": folder, "readOnly": true})), "{mounts:?}");
    let volumes = pod["volumes"].as_array().context("a Pod has volumes")?;
    let from = json!({"name": volume, "configMap": {"name": config["metadata"]["name"]}});
    assert!(volumes.contains(&from), "{volumes:?}");
    assert_eq!(config["data"]["ca.pem"], "not a certificate\n");
    let text = config["data"][file].as_str().context("the policy is in the ConfigMap")?;
    // The host checks the file before it connects.
    let run = |text: &str| -> anyhow::Result<String> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("policy.yaml"), text)?;
        let run = ["run", "--watch-plugins", "--source-policy", "policy.yaml", "--kubeconfig", "none"];
        refused(folder.path(), &run, 2)
    };
    let said = run(text)?;
    assert!(said.contains("kubeconfig none does not exist"), "{said}");
    let said = run(&text.replace("maxBytes", "mostBytes"))?;
    assert!(said.contains("mostBytes"), "{said}");
    // Another policy rolls the Pods.
    let checksum = |deployment: &Value| {
        deployment["spec"]["template"]["metadata"]["annotations"]["checksum/source-policy"].clone()
    };
    let (_, other) = render("{kinds: [oci]}")?;
    assert_ne!(checksum(&deployment), checksum(&other));
    assert!(checksum(&other).is_string());
    Ok(())
}

/// The kinds of the Prometheus operator, whose definitions do not belong to the installation.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_accepts_what_the_prometheus_operator_reads() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&control_plane.kubeconfig())?).await?;
    let definitions = tool::path("prometheus-operator")?;
    for kind in ["servicemonitors", "podmonitors", "prometheusrules"] {
        let file = definitions.join(format!("monitoring.coreos.com_{kind}.yaml"));
        cluster.apply(&fs::read_to_string(file)?).await?;
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "oarlock-system"}});
    cluster.apply(&namespace.to_string()).await?;
    let values = |monitors: &str| format!("image: {{repository: {IMAGE}}}\n{monitors}");
    let service_monitor = "serviceMonitor: {enabled: true, interval: 30s, labels: {release: prometheus}}";
    let pod_monitor = "podMonitor: {enabled: true, interval: 30s, labels: {release: prometheus}, tokenSecret: {name: scraper}}";
    let rule = "prometheusRule: {enabled: true, labels: {release: prometheus}}";
    let forms = [
        ("the kustomization", kustomized(&["service-monitor"])?, vec!["ServiceMonitor"]),
        (
            "the chart",
            charted("oarlock-system", &values(&format!("{service_monitor}\n{rule}")))?,
            vec!["PrometheusRule", "ServiceMonitor"],
        ),
        ("the chart", charted("oarlock-system", &values(pod_monitor))?, vec!["PodMonitor"]),
    ];
    for (form, mut objects, kinds) in forms {
        objects.retain(|it| it["apiVersion"] == "monitoring.coreos.com/v1");
        let mut found: Vec<_> = objects.iter().filter_map(|it| it["kind"].as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, kinds, "{form}");
        // The definitions are served a moment after they are stored.
        wait_until(form, async || cluster.dry_run(&objects).await).await?;
        // Its schemas are strict about names.
        objects[0]["spec"]["unknown"] = json!(1);
        let refused = cluster.dry_run(&objects).await.err().map(|error| format!("{error:#}"));
        assert!(refused.as_ref().is_some_and(|it| it.contains("unknown")), "{refused:?}");
    }
    Ok(())
}

#[test]
fn the_service_monitors_of_kustomization_and_chart_are_equal_and_select_the_service() -> anyhow::Result<()> {
    let monitor =
        |objects: Vec<Value>| objects.into_iter().find(|it| it["kind"] == "ServiceMonitor").unwrap();
    let kustomized = monitor(kustomized(&["service-monitor"])?);
    let values = format!("image: {{repository: {IMAGE}}}\nserviceMonitor: {{enabled: true}}");
    let mut charted = monitor(charted("oarlock-system", &values)?);
    without_marks_of_the_chart(&mut charted);
    assert_eq!(charted, kustomized);
    // The service that it selects is in the installation, with the port that it names.
    let service = printed("oarlock-system")?.into_iter().find(|it| it["kind"] == "Service").unwrap();
    assert_eq!(service["metadata"]["labels"], kustomized["spec"]["selector"]["matchLabels"]);
    assert_eq!(service["spec"]["ports"][0]["name"], kustomized["spec"]["endpoints"][0]["port"]);
    Ok(())
}

/// Compares objects, in any order.
fn assert_equal((one, objects): (&str, Vec<Value>), (other, others): (&str, Vec<Value>)) {
    let by_name = |objects: Vec<Value>| -> BTreeMap<String, Value> {
        let named = |it: Value| (format!("{} {}", it["kind"], it["metadata"]["name"]), it);
        objects.into_iter().map(named).collect()
    };
    let (objects, others) = (by_name(objects), by_name(others));
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&objects), names(&others), "the objects of {one} and of {other}");
    assert!(objects.len() > 20, "{:?}", names(&objects));
    for (name, object) in &objects {
        assert_eq!(object, &others[name], "{name} of {one} and of {other}");
    }
}

fn pod(spec: &Value) -> Value {
    let metadata = json!({"name": "oarlock-0", "namespace": "oarlock-system"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Removes what Helm marks its objects with, and what all objects of a chart have: labels, and an annotation
/// that keeps the definitions.
fn without_marks_of_the_chart(object: &mut Value) {
    let is_definition = object["kind"] == "CustomResourceDefinition";
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    for (member, mark) in [
        ("labels", "helm.sh/chart"),
        ("labels", "app.kubernetes.io/managed-by"),
        ("annotations", "helm.sh/resource-policy"),
    ] {
        if let Some(Value::Object(members)) = metadata.get_mut(member) {
            members.remove(mark);
            if is_definition {
                members.remove("app.kubernetes.io/name");
            }
            if members.is_empty() {
                metadata.remove(member);
            }
        }
    }
}
