//! The file of a case.

mod expect;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::{Span, SpanRelativeTo, Timestamp};
use oarlock_controller::{regular_file, yaml};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;
use serde_json::{Map, Value};

use self::expect::check_expect;

/// The maximum size of a case, and of a file that it names.
const MAX_BYTES: u64 = 16 << 20;

/// The longest time that one step may let pass: schedules of a month can be tested.
const MAX_ADVANCE: Duration = Duration::from_secs(32 * 24 * 60 * 60);

/// The time at which a case begins unless it says another: 2026-01-01T00:00:00Z.
const DEFAULT_TIME: i64 = 1_767_225_600;

/// A case, read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The file.
    pub path: PathBuf,
    /// What it shows.
    pub description: Option<String>,
    /// Replaces `config` of the plugin's file.
    pub(crate) config: Option<Map<String, Value>>,
    /// The time at which it begins.
    pub(crate) time: SystemTime,
    /// The objects that exist before the plugin starts.
    pub(crate) cluster: Vec<Value>,
    pub(crate) expect: Option<Map<String, Value>>,
    pub(crate) steps: Vec<Step>,
}

/// One step: an action, and what is expected after it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) expect: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Apply(Value),
    Patch(Value),
    Delete(Value),
    Advance(Duration),
}

/// Why a case cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The file, or one that it names, cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: regular_file::Error,
    },
    /// The file is not a case.
    #[error("{}: {reason}", path.display())]
    Wrong {
        /// The path.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
}

/// A case before it is checked. Its comments are the reference for authors of cases.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "A case", description = "A case of `oarlock plugin test`.")]
#[serde(
    deny_unknown_fields,
    rename_all = "camelCase",
    expecting = "a mapping with the keys `cluster`, `expect` and `steps`"
)]
struct RawCase {
    /// A text for readers.
    description: Option<String>,
    /// Replaces `config` of the plugin's file.
    config: Option<Map<String, Value>>,
    /// The time at which the case begins. Otherwise 2026-01-01T00:00:00Z.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    time: Option<Timestamp>,
    /// Objects that exist before the plugin starts.
    #[serde(default)]
    #[schemars(with = "Vec<Map<String, Value>>")]
    cluster: Vec<Value>,
    /// Files with such objects, for example CustomResourceDefinitions; relative to the case.
    #[serde(default)]
    cluster_files: Vec<PathBuf>,
    /// What the start of the plugin causes.
    #[serde(default)]
    #[schemars(schema_with = "expect::schema")]
    expect: Option<Map<String, Value>>,
    /// What happens. Each step has exactly one of `apply`, `patch`, `delete` and `advance`.
    #[serde(default)]
    steps: Vec<RawStep>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "camelCase",
    expecting = "a mapping with one of `apply`, `patch`, `delete` and `advance`, and `expect`"
)]
struct RawStep {
    /// An object that is created or replaced. `status` is written through the subresource.
    #[schemars(with = "Option<Map<String, Value>>")]
    apply: Option<Value>,
    /// A JSON merge patch of an object: `null` removes a field.
    #[schemars(with = "Option<Map<String, Value>>")]
    patch: Option<Value>,
    /// An object that is deleted. Only `apiVersion`, `kind` and `metadata` are needed.
    #[schemars(with = "Option<Map<String, Value>>")]
    delete: Option<Value>,
    /// A time that passes, such as `10m` or `1h 30m`, of at most 32 days: timers, schedules, requeues and
    /// retries become due.
    advance: Option<String>,
    /// What happened since the step before.
    #[serde(default)]
    #[schemars(schema_with = "expect::schema")]
    expect: Option<Map<String, Value>>,
}

// === impl Case ===

impl Case {
    /// Reads and checks a case.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not a case, or names an object that is none.
    pub fn read(path: &Path) -> Result<Self, CaseError> {
        let wrong = |reason: String| CaseError::Wrong { path: path.to_owned(), reason };
        let text = read_text(path)?;
        let raw: RawCase = serde_norway::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let RawCase { description, config, time, mut cluster, cluster_files, expect, steps } = raw;
        for (idx, object) in cluster.iter().enumerate() {
            check_object(object).map_err(|reason| wrong(format!("cluster[{idx}]: {reason}")))?;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut from_files = Vec::new();
        for file in cluster_files {
            from_files.append(&mut objects_of(&folder.join(file))?);
        }
        from_files.append(&mut cluster);
        if let Some(expect) = &expect {
            check_expect(expect).map_err(|reason| wrong(format!("expect: {reason}")))?;
        }
        let mut checked = Vec::with_capacity(steps.len());
        for (idx, step) in steps.into_iter().enumerate() {
            checked.push(Step::of(step).map_err(|reason| wrong(format!("steps[{idx}]: {reason}")))?);
        }
        let time =
            time.unwrap_or_else(|| Timestamp::from_second(DEFAULT_TIME).unwrap_or(Timestamp::UNIX_EPOCH));
        Ok(Self {
            path: path.to_owned(),
            description,
            config,
            time: time.into(),
            cluster: from_files,
            expect,
            steps: checked,
        })
    }

    /// Returns the JSON schema of cases.
    #[must_use]
    pub fn schema() -> Value {
        let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
        settings.into_generator().into_root_schema_for::<RawCase>().to_value()
    }
}

// === impl Step ===

impl Step {
    fn of(raw: RawStep) -> Result<Self, String> {
        let RawStep { apply, patch, delete, advance, expect } = raw;
        let object = |it: Value| check_object(&it).map(|()| it);
        let actions = [
            apply.map(|it| object(it).map(Action::Apply)),
            patch.map(|it| object(it).map(Action::Patch)),
            delete.map(|it| object(it).map(Action::Delete)),
            advance.map(|it| advance_by(&it).map(Action::Advance)),
        ];
        let mut actions: Vec<_> = actions.into_iter().flatten().collect::<Result<_, _>>()?;
        let action = match (actions.pop(), actions.is_empty()) {
            (Some(action), true) => action,
            _ => return Err("a step has exactly one of `apply`, `patch`, `delete` and `advance`".to_owned()),
        };
        if let Some(expect) = &expect {
            check_expect(expect).map_err(|reason| format!("expect: {reason}"))?;
        }
        Ok(Self { action, expect })
    }
}

fn advance_by(text: &str) -> Result<Duration, String> {
    let span: Span =
        text.parse().map_err(|error| format!("advance: {error}; write it as `10m` or `1h 30m`"))?;
    let by =
        span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|error| format!("advance: {error}"))?;
    match Duration::try_from(by) {
        Ok(by) if by <= MAX_ADVANCE => Ok(by),
        _ => Err(format!("advance: {text} is not between 0s and {} days", MAX_ADVANCE.as_secs() / 86_400)),
    }
}

fn read_text(path: &Path) -> Result<String, CaseError> {
    let unreadable = |source| CaseError::Unreadable { path: path.to_owned(), source };
    let bytes = regular_file::read(path, MAX_BYTES).map_err(unreadable)?;
    let wrong = |reason| CaseError::Wrong { path: path.to_owned(), reason };
    let text = std::str::from_utf8(&bytes).map_err(|error| wrong(error.to_string()))?;
    Ok(yaml::without_byte_order_mark(text).to_owned())
}

/// Returns the objects of a file with one or more YAML documents.
fn objects_of(path: &Path) -> Result<Vec<Value>, CaseError> {
    let wrong = |reason: String| CaseError::Wrong { path: path.to_owned(), reason };
    let text = read_text(path)?;
    let mut objects = Vec::new();
    for document in serde_norway::Deserializer::from_str(&text) {
        let object = Value::deserialize(document).map_err(|error| wrong(error.to_string()))?;
        if !object.is_null() {
            check_object(&object).map_err(wrong)?;
            objects.push(object);
        }
    }
    Ok(objects)
}

/// Checks that a value names an object.
fn check_object(object: &Value) -> Result<(), String> {
    for pointer in ["/apiVersion", "/kind", "/metadata/name"] {
        if object.pointer(pointer).and_then(Value::as_str).is_none_or(str::is_empty) {
            let field = pointer[1..].replace('/', ".");
            return Err(format!("an object needs `{field}`, a string"));
        }
    }
    match object.pointer("/metadata/namespace") {
        None | Some(Value::String(_)) => Ok(()),
        Some(_) => Err("`metadata.namespace` must be a string".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Case, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, text).unwrap();
        Case::read(&path).map_err(|error| error.to_string().replace(&format!("{}: ", path.display()), ""))
    }

    #[test]
    fn a_case_has_objects_steps_and_expectations() {
        let case = read(
            "time: 2026-03-01T00:00:00Z
cluster:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}}
steps:
- advance: 10m
  expect:
    writes:
    - delete: v1/configmaps x/a
- patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
",
        )
        .unwrap();
        assert_eq!(case.cluster.len(), 1);
        assert_eq!(case.steps[0].action, Action::Advance(Duration::from_secs(600)));
        assert!(case.steps[0].expect.is_some());
        assert!(matches!(case.steps[1].action, Action::Patch(_)));
        assert_eq!(advance_by("7d 1h"), Ok(Duration::from_secs(7 * 86_400 + 3_600)));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_case() {
        let text = "description: a\nsteps:\n- advance: 10m\n";
        let case = read(&format!("\u{feff}{text}")).unwrap();
        assert_eq!((case.steps.len(), read(text).unwrap().steps.len()), (1, 1));
    }

    #[test]
    fn a_wrong_case_is_refused_with_the_place() {
        for (text, reason) in [
            ("steps: [{}]", "steps[0]: a step has exactly one of"),
            (
                "steps: [{advance: 1m, apply: {apiVersion: v1, kind: A, metadata: {name: a}}}]",
                "exactly one of",
            ),
            ("steps: [{advance: 10 fortnights}]", "steps[0]: advance: "),
            ("steps: [{advance: 40d}]", "steps[0]: advance: "),
            ("steps: [{advance: -1m}]", "is not between 0s and 32 days"),
            ("cluster: [{kind: A}]", "cluster[0]: an object needs `apiVersion`, a string"),
            (
                "cluster: [{apiVersion: v1, kind: A, metadata: {name: a, namespace: 1}}]",
                "`metadata.namespace` must be",
            ),
            ("expect: {write: []}", "expect: unknown key `write`; the keys are writes, events,"),
            ("expect: {writes: {}}", "expect: `writes` must be a list"),
            ("expect: {writes: [{made: a}]}", "writes[0]: an entry is a mapping with one of create, apply,"),
            ("expect: {writes: [{create: a, delete: b}]}", "writes[0]: an entry is a mapping with one of"),
            ("expect: {metrics: {a: b}}", "`metrics` is a mapping of names to numbers"),
            ("expect: {gone: [a]}", "gone[0]: an object needs `apiVersion`"),
            ("setup: []", "unknown field `setup`"),
            ("- a", "a mapping with the keys"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(read("clusterFiles: [missing.yaml]").unwrap_err().contains("missing.yaml cannot be read"));
    }
}
