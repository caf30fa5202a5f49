//! Compares cache and indices with a model that computes each result from scratch.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::*;

const KEYS: [&str; 6] = ["a/x", "a/y", "a-b/x", "b/x", "b/y", "cluster-wide"];
const INDICES: [&str; 3] = ["one", "two", "three"];

/// The parts of an object that the indices read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thing {
    key: usize,
    version: u32,
    label: Option<u8>,
    /// The values of `/spec/parts/*`. A bad thing has one more, which is not a scalar.
    parts: Vec<u8>,
    is_bad: bool,
}

/// The source of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Label,
    Parts,
}

#[derive(Clone, Debug)]
enum Step {
    Put(Thing),
    /// Puts the cached object again.
    PutAgain(usize),
    Delete(usize, bool),
    Replace(Vec<Thing>),
    AddIndices(Vec<(usize, Source)>),
    RemoveIndex(usize),
}

#[derive(Clone, Debug, Default)]
struct Model {
    version: u32,
    things: BTreeMap<usize, Thing>,
    resource_version: String,
    indices: BTreeMap<usize, Source>,
    /// The result of the last step: whether the object existed, the index existed, or the indices were added.
    result: bool,
}

struct ModelOfTheCache;

struct CacheAndItsModel;

// === impl Thing ===

impl Thing {
    fn object(&self) -> Object {
        let mut parts: Vec<_> = self.parts.iter().map(|part| json!(part.to_string())).collect();
        if self.is_bad {
            parts.push(json!({}));
        }
        let draft = Draft::new(KEYS[self.key]).field("spec", json!({ "parts": parts }));
        let draft = match self.label {
            Some(label) => draft.label("foo", &label.to_string()),
            None => draft,
        };
        at(draft, &self.version.to_string())
    }

    fn namespace(&self) -> &str {
        KEYS[self.key].split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// Returns the values of the thing. Returns `None` if the index cannot file it.
    fn values(&self, source: Source) -> Option<BTreeSet<String>> {
        match source {
            Source::Label => Some(self.label.iter().map(ToString::to_string).collect()),
            Source::Parts if self.is_bad => None,
            Source::Parts => Some(self.parts.iter().map(ToString::to_string).collect()),
        }
    }
}

// === impl Model ===

impl Model {
    /// Returns the keys of the matching things in the order of the cache.
    fn keys(&self, matches: impl Fn(&Thing) -> bool) -> Vec<String> {
        let mut keys: Vec<ObjectKey> = Vec::new();
        keys.extend(self.things.values().filter(|it| matches(it)).map(|it| KEYS[it.key].parse().unwrap()));
        keys.sort();
        keys.iter().map(ToString::to_string).collect()
    }

    fn values(&self, source: Source, matches: impl Fn(&Thing) -> bool) -> Vec<String> {
        let things = self.things.values().filter(|it| matches(it));
        let values: BTreeSet<_> = things.filter_map(|it| it.values(source)).flatten().collect();
        values.into_iter().collect()
    }
}

// === impl ModelOfTheCache ===

fn thing() -> impl Strategy<Value = Thing> {
    let parts = proptest::collection::vec(0_u8..3, 0..3);
    let label = proptest::option::of(0_u8..3);
    (0..KEYS.len(), label, parts, prop::bool::weighted(0.1)).prop_map(|(key, label, parts, is_bad)| Thing {
        key,
        version: 0,
        label,
        parts,
        is_bad,
    })
}

impl ReferenceStateMachine for ModelOfTheCache {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::default()).boxed()
    }

    fn transitions(_: &Model) -> BoxedStrategy<Step> {
        let source = prop_oneof![Just(Source::Label), Just(Source::Parts)];
        let index = 0..INDICES.len();
        prop_oneof![
            8 => thing().prop_map(Step::Put),
            1 => (0..KEYS.len()).prop_map(Step::PutAgain),
            4 => (0..KEYS.len(), any::<bool>()).prop_map(|(key, is_seen)| Step::Delete(key, is_seen)),
            1 => proptest::collection::vec(thing(), 0..5).prop_map(Step::Replace),
            2 => proptest::collection::vec((index.clone(), source), 1..3).prop_map(Step::AddIndices),
            1 => index.prop_map(Step::RemoveIndex),
        ]
        .boxed()
    }

    fn apply(mut model: Model, step: &Step) -> Model {
        model.version += 1;
        let version = model.version;
        match step {
            Step::Put(thing) => {
                model.result = model.things.insert(thing.key, Thing { version, ..thing.clone() }).is_some();
                model.resource_version = version.to_string();
            }
            Step::PutAgain(key) => {
                model.result = model.things.contains_key(key);
                if let Some(thing) = model.things.get(key) {
                    model.resource_version = thing.version.to_string();
                }
            }
            Step::Delete(key, is_seen) => {
                model.result = model.things.remove(key).is_some();
                if *is_seen {
                    model.resource_version = version.to_string();
                }
            }
            Step::Replace(things) => {
                model.things = things.iter().map(|it| (it.key, Thing { version, ..it.clone() })).collect();
                model.resource_version = format!("list {version}");
            }
            Step::AddIndices(indices) => {
                model.result = indices.iter().all(|(name, _)| !model.indices.contains_key(name));
                if model.result {
                    model.indices.extend(indices.iter().copied());
                }
            }
            Step::RemoveIndex(name) => model.result = model.indices.remove(name).is_some(),
        }
        model
    }
}

// === impl CacheAndItsModel ===

impl StateMachineTest for CacheAndItsModel {
    type SystemUnderTest = IndexerWriter;
    type Reference = ModelOfTheCache;

    fn init_test(_: &Model) -> IndexerWriter {
        IndexerWriter::new()
    }

    fn apply(mut writer: IndexerWriter, model: &Model, step: Step) -> IndexerWriter {
        let indexer = writer.indexer().clone();
        let version = model.version;
        let source = |source| match source {
            Source::Label => by_label(),
            Source::Parts => IndexSource::Pointer("/spec/parts/*".parse().unwrap()),
        };
        match step {
            Step::Put(thing) => {
                let old = writer.put(Thing { version, ..thing }.object());
                assert_eq!(old.is_some(), model.result);
            }
            Step::PutAgain(key) => match indexer.get(&KEYS[key].parse().unwrap()) {
                Some(object) => assert!(writer.put(object.clone()).unwrap().is_same(&object)),
                None => assert!(!model.result),
            },
            Step::Delete(key, is_seen) => {
                let last_state = at(KEYS[key].into(), &version.to_string());
                let old = writer.delete(last_state.key(), is_seen.then_some(&last_state));
                assert_eq!(old.is_some(), model.result);
            }
            Step::Replace(things) => {
                let objects = things.into_iter().map(|it| Thing { version, ..it }.object()).collect();
                writer.replace(objects, &format!("list {version}"));
            }
            Step::AddIndices(indices) => {
                let indices = indices.into_iter().map(|(name, of)| (INDICES[name].to_owned(), source(of)));
                assert_eq!(indexer.add_indices(indices).is_ok(), model.result);
            }
            Step::RemoveIndex(name) => assert_eq!(indexer.remove_index(INDICES[name]), model.result),
        }
        writer
    }

    fn check_invariants(writer: &IndexerWriter, model: &Model) {
        let indexer = writer.indexer();
        let everything = LabelSelector::everything();
        assert_eq!(names(&indexer.list(None, &everything)), model.keys(|_| true));
        assert_eq!(indexer.len(), model.things.len());
        assert_eq!(&*indexer.resource_version(), model.resource_version);
        let versions: BTreeSet<_> = indexer.list(None, &everything).iter().map(version_of).collect();
        assert_eq!(versions, model.things.values().map(|it| it.version.to_string()).collect());
        let selector: LabelSelector = "foo=1".parse().unwrap();
        assert_eq!(names(&indexer.list(None, &selector)), model.keys(|it| it.label == Some(1)));
        assert_eq!(names(&indexer.list(Some("a"), &everything)), model.keys(|it| it.namespace() == "a"));

        let known: Vec<_> = model.indices.keys().map(|name| INDICES[*name].to_owned()).collect();
        assert_eq!(
            indexer.index_names().into_iter().collect::<BTreeSet<_>>(),
            known.into_iter().collect::<BTreeSet<_>>()
        );
        for (name, index) in INDICES.iter().enumerate() {
            let Some(source) = model.indices.get(&name) else {
                assert_eq!(indexer.by_index(index, "1").unwrap_err(), Error::UnknownIndex((*index).into()));
                continue;
            };
            assert_eq!(values(indexer, index), model.values(*source, |_| true));
            let narrow = Namespaces::Only(["a".into(), "b".into()].into());
            assert_eq!(
                indexer.index_values(index, &narrow),
                model.values(*source, |it| ["a", "b"].contains(&it.namespace()))
            );
            for value in ["0", "1", "2", "none"] {
                let expected =
                    model.keys(|it| it.values(*source).is_some_and(|values| values.contains(value)));
                assert_eq!(names(&indexer.by_index(index, value).unwrap()), expected);
                let view = indexer.view_by_index(index, value).unwrap();
                assert_eq!(names(&view.iter().cloned().collect::<Vec<_>>()), expected);
                assert_eq!((view.len(), view.is_empty()), (expected.len(), expected.is_empty()));
                let keys = indexer.index_keys(index, value).unwrap();
                assert_eq!(keys.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
                let request = PageRequest { limit: 2, ..PageRequest::default() };
                let page = indexer.by_index_page(index, value, &request).unwrap();
                assert_eq!(names(&page.objects), expected.into_iter().take(2).collect::<Vec<_>>());
                let request = PageRequest { limit: 9, namespaces: narrow.clone(), ..PageRequest::default() };
                let page = indexer.by_index_page(index, value, &request).unwrap();
                let expected = model.keys(|it| {
                    ["a", "b"].contains(&it.namespace())
                        && it.values(*source).is_some_and(|values| values.contains(value))
                });
                assert_eq!(names(&page.objects), expected);
            }
            let failures = indexer.index_failures(index).unwrap();
            let expected = model.keys(|it| it.values(*source).is_none());
            assert_eq!(failures.keys().map(ToString::to_string).collect::<Vec<_>>(), expected);
        }
    }
}

fn version_of(object: &Object) -> String {
    object.resource_version().to_owned()
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_equals_its_model(sequential 1..40 => CacheAndItsModel);
}
