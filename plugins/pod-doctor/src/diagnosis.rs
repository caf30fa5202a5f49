//! What is wrong with a Pod, from its status.

use std::fmt;

use serde_json::Value;

/// Everything that keeps a Pod from running, in the order of its containers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Diagnosis(Vec<Problem>);

/// It has no count of restarts, so that a problem that stays is explained once. If a container runs between
/// two crashes, its problem goes and comes again; the host counts equal Events as one.
#[derive(Debug, PartialEq)]
struct Problem {
    /// The reason of the Event.
    reason: &'static str,
    /// Whom it concerns.
    subject: String,
    /// What happens, why, and what to do.
    text: String,
}

// === impl Diagnosis ===

impl Diagnosis {
    /// Reads three fields of a Pod's status. A field that does not exist is null.
    pub(crate) fn of(init_containers: &Value, containers: &Value, conditions: &Value) -> Self {
        let containers = [init_containers, containers].into_iter().flat_map(items);
        let problems = containers.filter_map(of_container);
        Self(problems.chain(items(conditions).filter_map(of_condition)).collect())
    }

    /// Returns the reason of the first problem; none if nothing is wrong.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.0.first().map(|problem| problem.reason)
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Problem { subject, text, .. }) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { " " };
            write!(f, "{separator}{subject}: {text}")?;
        }
        Ok(())
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn of_container(status: &Value) -> Option<Problem> {
    let (name, waiting) = (text(&status["name"]), &status["state"]["waiting"]);
    let message = text(&waiting["message"]);
    let (reason, text) = match text(&waiting["reason"]) {
        "CrashLoopBackOff" => ("CrashLoop", crash(name, &status["lastState"]["terminated"])),
        "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull" => {
            ("ImageNotPulled", image(text(&status["image"]), message))
        }
        "CreateContainerConfigError" => ("ConfigurationMissing", configuration(message)),
        "CreateContainerError" | "RunContainerError" => {
            ("ContainerNotStarted", format!("the container cannot be started: {message}."))
        }
        _ => return None,
    };
    Some(Problem { reason, subject: format!("container {name}"), text })
}

/// Explains the end of a container that is restarted again and again.
fn crash(name: &str, ended: &Value) -> String {
    let code = ended["exitCode"].as_i64();
    let why = match (text(&ended["reason"]), code) {
        ("OOMKilled", _) => {
            "it used more memory than its limit. Raise resources.limits.memory, or find what uses it."
                .to_owned()
        }
        (_, Some(0)) => {
            "it ended without an error (exit code 0). The Pod restarts it all the same: a command that ends \
             belongs in a Job."
                .to_owned()
        }
        (_, Some(126)) => "its command cannot be executed (exit code 126).".to_owned(),
        (_, Some(127)) => "its command was not found in the image (exit code 127).".to_owned(),
        (_, Some(137)) => {
            "it was killed (SIGKILL, exit code 137): by a liveness probe, or since the node ran out of memory."
                .to_owned()
        }
        (_, Some(139)) => "it accessed invalid memory (SIGSEGV, exit code 139).".to_owned(),
        (_, Some(143)) => "it was asked to end (SIGTERM, exit code 143), perhaps by a liveness probe.".to_owned(),
        (_, Some(code)) => format!("it ended with an error of its own (exit code {code})."),
        (_, None) => "why is not known.".to_owned(),
    };
    let message = text(&ended["message"]).trim();
    let said = if message.is_empty() {
        String::new()
    } else {
        format!(" It said: {}.", message.trim_end_matches('.'))
    };
    format!(
        "it ends and is restarted again and again; the last time {why}{said} Its log: kubectl logs POD -c {name} --previous"
    )
}

/// Explains why an image cannot be pulled. The message is that of the container runtime, in its words.
fn image(image: &str, message: &str) -> String {
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let why = if says(&["toomanyrequests", "too many requests", "rate limit"]) {
        "the registry limits the number of pulls. Wait, or pull with an account (imagePullSecrets)."
    } else if says(&["unauthorized", "denied", "authentication required", "no basic auth"]) {
        "the registry does not permit it, or the image does not exist. Check the name, and imagePullSecrets."
    } else if says(&["not found", "manifest unknown", "notfound"]) {
        "the registry has no such image or tag. Check the spelling."
    } else if says(&["no such host", "timeout", "connection refused", "connection reset", "unreachable"]) {
        "the node does not reach the registry. Check the name of the registry, and the node's network."
    } else if says(&["certificate", "x509", "http response to https"]) {
        "the node does not trust the registry's certificate, or the registry has none."
    } else if says(&["invalid reference", "invalid image name", "couldn't parse image"]) {
        "this is not the name of an image."
    } else if says(&["never"]) {
        "the node does not have it, and imagePullPolicy is Never."
    } else {
        "the message of the node is in the Events of the Pod: kubectl describe pod POD"
    };
    format!("the image {image:?} is not pulled: {why}")
}

/// Explains what a container's configuration lacks. The kubelet's message names it.
fn configuration(message: &str) -> String {
    let missing = message.strip_suffix(" not found").map(|what| format!("the {what} does not exist"));
    let what = missing.unwrap_or_else(|| message.to_owned());
    format!(
        "it waits for its configuration: {what}. Create it in the Pod's namespace; the container starts then."
    )
}

fn of_condition(condition: &Value) -> Option<Problem> {
    let is_unscheduled = condition["type"] == "PodScheduled"
        && condition["status"] == "False"
        && condition["reason"] == "Unschedulable";
    if !is_unscheduled {
        return None;
    }
    let message = text(&condition["message"]);
    let advice = [
        ("Insufficient", "Lower resources.requests, or add nodes."),
        ("untolerated taint", "Add a toleration, or nodes without the taint."),
        ("pod's node affinity", "Check nodeSelector and affinity against the labels of the nodes."),
        ("persistentvolumeclaim", "Check the PersistentVolumeClaim: kubectl get pvc"),
        ("volume node affinity", "The volume is in another zone than the nodes."),
        ("anti-affinity", "Add nodes, or loosen podAntiAffinity."),
        ("topology spread", "Add nodes in other zones, or loosen topologySpreadConstraints."),
    ];
    let advice: Vec<_> = advice
        .into_iter()
        .filter(|(word, _)| message.to_lowercase().contains(&word.to_lowercase()))
        .map(|(_, advice)| advice)
        .collect();
    let text = format!("no node takes it: {} {}", sentence(message), advice.join(" "));
    Some(Problem { reason: "NoNode", subject: "Pod".to_owned(), text: text.trim_end().to_owned() })
}

/// Returns the first part of the scheduler's message, which goes on with what preemption would do.
fn sentence(message: &str) -> String {
    let end = message.find(" preemption:").unwrap_or(message.len());
    format!("{}.", message[..end].trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn waiting(reason: &str, message: &str) -> Value {
        let waiting = json!({"reason": reason, "message": message});
        json!([{"name": "web", "image": "nginx:nope", "state": {"waiting": waiting}}])
    }

    fn of_containers(containers: &Value) -> Diagnosis {
        Diagnosis::of(&Value::Null, containers, &Value::Null)
    }

    fn crashed(ended: &Value, restarts: u32) -> Diagnosis {
        let mut status = waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container");
        status[0]["lastState"] = json!({"terminated": ended});
        status[0]["restartCount"] = restarts.into();
        of_containers(&status)
    }

    #[test]
    fn a_pod_that_runs_or_starts_has_no_problem() {
        let running = json!([{"name": "web", "state": {"running": {"startedAt": "t"}}}]);
        let scheduled = json!([{"type": "PodScheduled", "status": "True"}]);
        for containers in [Value::Null, running, waiting("ContainerCreating", ""), json!("no list")] {
            let diagnosis = Diagnosis::of(&Value::Null, &containers, &scheduled);
            assert_eq!((diagnosis.reason(), &*diagnosis.to_string()), (None, ""), "{containers}");
        }
    }

    #[test]
    fn a_crash_is_explained_by_its_exit_code_and_once() {
        for (ended, expected) in [
            (json!({"exitCode": 137, "reason": "OOMKilled"}), "more memory than its limit"),
            (json!({"exitCode": 137, "reason": "Error"}), "SIGKILL"),
            (json!({"exitCode": 0, "reason": "Completed"}), "belongs in a Job"),
            (json!({"exitCode": 127, "reason": "Error"}), "not found in the image"),
            (
                json!({"exitCode": 3, "message": "no database\n"}),
                "(exit code 3). It said: no database. Its log",
            ),
            (Value::Null, "not known"),
        ] {
            let diagnosis = crashed(&ended, 4);
            assert_eq!(diagnosis.reason(), Some("CrashLoop"));
            assert!(diagnosis.to_string().contains(expected), "{diagnosis}");
            assert!(diagnosis.to_string().contains("kubectl logs POD -c web --previous"), "{diagnosis}");
            assert_eq!(diagnosis, crashed(&ended, 5), "the same problem after another restart");
        }
    }

    #[test]
    fn an_image_that_is_not_pulled_is_explained_by_the_message_of_the_node() {
        for (message, expected) in [
            ("failed to resolve reference \"nginx:nope\": nginx:nope: not found", "no such image or tag"),
            (
                "pull access denied, repository does not exist or may require authorization",
                "imagePullSecrets",
            ),
            ("dial tcp: lookup registry.example: no such host", "does not reach the registry"),
            ("toomanyrequests: You have reached your pull rate limit", "limits the number of pulls"),
            ("tls: failed to verify certificate: x509: unknown authority", "does not trust"),
            ("Back-off pulling image \"nginx:nope\"", "kubectl describe pod"),
        ] {
            let diagnosis = of_containers(&waiting("ImagePullBackOff", message));
            assert_eq!(diagnosis.reason(), Some("ImageNotPulled"));
            let text = diagnosis.to_string();
            assert!(text.starts_with("container web: the image \"nginx:nope\" is not pulled: "), "{text}");
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_missing_config_map_is_named() {
        let diagnosis =
            of_containers(&waiting("CreateContainerConfigError", "configmap \"settings\" not found"));
        assert_eq!(diagnosis.reason(), Some("ConfigurationMissing"));
        assert!(diagnosis.to_string().contains("the configmap \"settings\" does not exist"), "{diagnosis}");
    }

    #[test]
    fn a_pod_without_a_node_is_explained_by_what_the_scheduler_says() {
        let message = "0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 Insufficient cpu. \
                       preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
        let condition = |status: &str| json!([{"type": "PodScheduled", "status": status, "reason": "Unschedulable", "message": message}]);
        let of = |conditions: &Value| Diagnosis::of(&Value::Null, &Value::Null, conditions);
        assert_eq!(
            of(&condition("False")).to_string(),
            "Pod: no node takes it: 0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 \
             Insufficient cpu. Lower resources.requests, or add nodes. Add a toleration, or nodes without the \
             taint."
        );
        assert_eq!(of(&condition("True")), Diagnosis::default());
    }

    #[test]
    fn all_problems_are_in_one_text_those_of_init_containers_first() {
        let images = waiting("ErrImagePull", "not found");
        let mut init = images.clone();
        init[0]["name"] = "setup".into();
        let text = Diagnosis::of(&init, &images, &Value::Null).to_string();
        let (first, second) = (text.find("container setup:").unwrap(), text.find(" container web:").unwrap());
        assert!(first < second, "{text}");
    }
}
