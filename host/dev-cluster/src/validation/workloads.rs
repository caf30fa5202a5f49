//! Validates Deployments and similar workloads, Jobs and CronJobs.

use super::{at, map, pods, text};
use crate::status::Cause;
use serde_json::{Value, json};

/// The rules of kinds with a Pod selector and a Pod template.
pub(super) fn selecting(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if let Some(replicas) = spec.get("replicas").and_then(Value::as_i64)
        && replicas < 0
    {
        causes.push(Cause::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0"));
    }
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    let labels = spec.pointer("/template/metadata/labels");
    match selector {
        None => causes.push(Cause::required("spec.selector", "")),
        Some(selector)
            if map(selector, "/matchLabels").next().is_none()
                && super::list(selector, "/matchExpressions").is_empty() =>
        {
            causes.push(Cause::invalid(
                "spec.selector",
                selector,
                "empty selector is invalid for deployment",
            ));
        }
        Some(_) => {}
    }
    if !selector.is_some_and(|selector| matches(selector, labels)) {
        causes.push(Cause::invalid(
            "spec.template.metadata.labels",
            labels.unwrap_or(&Value::Null),
            "`selector` does not match template `labels`",
        ));
    }
    let template = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    causes.extend(pods::spec(template, "spec.template.spec"));
    let policy = text(template, "/restartPolicy");
    if !policy.is_empty() && policy != "Always" && ["OnFailure", "Never"].contains(&policy) {
        causes.push(super::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    causes
}

fn matches(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let wanted = map(selector, "/matchLabels").all(|(key, value)| label(key) == value.as_str());
    let expressions = super::list(selector, "/matchExpressions").iter().all(|one| {
        let value = label(text(one, "/key"));
        let among = value.is_some_and(|value| super::list(one, "/values").contains(&json!(value)));
        match text(one, "/operator") {
            "In" => among,
            "NotIn" => !among,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => true,
        }
    });
    wanted && expressions && selector.as_object().is_some_and(|selector| !selector.is_empty())
}

/// The rules of a Job's spec at `path`.
pub(super) fn job(spec: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in
        ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"]
    {
        if let Some(number) = spec.get(field).and_then(Value::as_i64)
            && number < 0
        {
            causes.push(Cause::invalid(
                at(path, field),
                &json!(number),
                "must be greater than or equal to 0",
            ));
        }
    }
    let template = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    causes.extend(pods::spec(template, &at(path, "template.spec")));
    if matches!(text(template, "/restartPolicy"), "Always" | "") {
        causes.push(Cause::required(
            at(path, "template.spec.restartPolicy"),
            "valid values: \"OnFailure\", \"Never\"",
        ));
    }
    causes
}

/// The rules of a CronJob.
pub(super) fn cron_job(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let schedule = text(object, "/spec/schedule");
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    } else if fields.len() != 5 && !schedule.starts_with('@') {
        causes.push(Cause::invalid(
            "spec.schedule",
            &json!(schedule),
            format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")),
        ));
    }
    let job = object.pointer("/spec/jobTemplate/spec").unwrap_or(&Value::Null);
    causes.extend(self::job(job, "spec.jobTemplate.spec"));
    causes
}
