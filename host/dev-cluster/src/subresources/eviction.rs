//! `pods/eviction`: a deletion that respects PodDisruptionBudgets.
//!
//! No controller maintains their status here, as on every API server without a controller-manager. A budget
//! that protects a Pod refuses every eviction until a client writes the number of allowed disruptions into
//! its status.

use super::{binding::set_condition, body_of_kind, done};
use crate::call::Call;
use crate::catalog::Served;
use crate::deletion::{self, Options};
use crate::respond::Body;
use crate::selector::label_text;
use crate::status::{Cause, GroupResource, StatusError};
use crate::store::{Stored, Transaction};
use crate::write::meta;
use http::Response;
use oarlock_label_selector::LabelSelector;
use serde_json::{Value, json};
use std::sync::Arc;

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const MAX_DISRUPTED: usize = 2000;

pub(super) fn create(call: &Call) -> Result<Response<Body>, StatusError> {
    let (_, eviction) = body_of_kind(call, "policy", "Eviction")?;
    if meta(&eviction, "name") != call.target.name {
        return Err(StatusError::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let options: Options =
        serde_json::from_value(options).map_err(|error| StatusError::bad_request(error.to_string()))?;
    options.check_policy()?;
    let dry_run = call.query.dry_run()? || options.dry_run.as_ref().is_some_and(|all| !all.is_empty());
    call.cluster.write(dry_run, |transaction, served| evict(call, transaction, served, &options, dry_run))?;
    Ok(done(call))
}

fn evict(
    call: &Call,
    transaction: &mut Transaction<'_>,
    served: &Served,
    options: &Options,
    dry_run: bool,
) -> Result<(), StatusError> {
    let stored = transaction.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let mut pod = stored.value()?;
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let runs =
        !matches!(phase, "Succeeded" | "Failed" | "Pending") && meta(&pod, "deletionTimestamp").is_empty();
    if runs && let Some(budget) = budget(transaction, &stored)? {
        consume_disruption(transaction, served, &budget, &pod, dry_run)?;
    }
    options.check(&call.resource, &stored)?;
    set_condition(
        &mut pod,
        json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }),
        transaction.generated.now(),
    );
    let marked = transaction.put(&call.resource, &stored.key, pod);
    deletion::remove(transaction, served, &call.resource, &marked, options)?;
    Ok(())
}

fn budgets() -> GroupResource {
    GroupResource::new("policy", "poddisruptionbudgets")
}

/// Returns the budget that protects a Pod, if any.
fn budget(transaction: &Transaction<'_>, pod: &Stored) -> Result<Option<Arc<Stored>>, StatusError> {
    let mut found = None;
    for budget in transaction.objects(&budgets(), &format!("{}/", pod.namespace)) {
        let value = budget.value()?;
        let Some(selector) = value.pointer("/spec/selector") else { continue };
        let selector: LabelSelector = label_text(selector).parse().map_err(StatusError::internal)?;
        if !selector.matches(pod.labels.as_slice()) {
            continue;
        }
        if found.replace(budget).is_some() {
            return Err(StatusError::untranslated(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    }
    Ok(found)
}

/// Consumes a disruption of a budget, unless the Pod is unhealthy and the budget allows the eviction of
/// unhealthy Pods.
fn consume_disruption(
    transaction: &mut Transaction<'_>,
    served: &Served,
    stored: &Stored,
    pod: &Value,
    dry_run: bool,
) -> Result<(), StatusError> {
    let mut budget = stored.value()?;
    let name = &stored.name;
    let status = |field: &str| {
        budget.get("status").and_then(|status| status.get(field)).and_then(Value::as_i64).unwrap_or_default()
    };
    let (healthy, desired) = (status("currentHealthy"), status("desiredHealthy"));
    if !is_ready(pod) {
        let policy = budget.pointer("/spec/unhealthyPodEvictionPolicy").and_then(Value::as_str);
        if policy == Some("AlwaysAllow") || healthy >= desired && desired > 0 {
            return Ok(());
        }
    }
    let refused = |why: String, seconds: u32| {
        StatusError::too_many_requests(REFUSED, seconds).with_causes(vec![Cause {
            reason: "DisruptionBudget".into(),
            message: why,
            field: String::new(),
        }])
    };
    let generation = budget.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
    let allowed = status("disruptionsAllowed");
    if status("observedGeneration") < generation {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(why, 10));
    }
    let forbidden =
        |why: &str| StatusError::forbidden(&GroupResource::new("policy", "poddisruptionbudget"), name, why);
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if disrupted.is_some_and(|disrupted| disrupted.len() > MAX_DISRUPTED) {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        return Err(refused(refusal_message(&budget, name, healthy, desired), 0));
    }
    if !dry_run {
        budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
        if !budget["status"]["disruptedPods"].is_object() {
            budget["status"]["disruptedPods"] = json!({});
        }
        budget["status"]["disruptedPods"][meta(pod, "name")] = transaction.generated.now().into();
        let resource = served.builtin("policy", "poddisruptionbudgets");
        let resource = resource.ok_or_else(|| StatusError::internal("budgets are not served"))?;
        transaction.put(resource, &stored.key, budget);
    }
    Ok(())
}

fn refusal_message(budget: &Value, name: &str, healthy: i64, desired: i64) -> String {
    let conditions = budget.pointer("/status/conditions").and_then(Value::as_array);
    let allowed = conditions.into_iter().flatten().find(|one| one["type"] == "DisruptionAllowed");
    let text =
        |field: &str| allowed.and_then(|one| one.get(field)).and_then(Value::as_str).unwrap_or_default();
    let has_reason = text("status") == "False" && !text("message").is_empty();
    let (reason, message) = (text("reason"), text("message"));
    if has_reason && reason == "SyncFailed" {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    if healthy <= desired {
        return format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        );
    }
    if has_reason {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        );
    }
    format!("The disruption budget {name} does not allow evicting pods currently")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}
