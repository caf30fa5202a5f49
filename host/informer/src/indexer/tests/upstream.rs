//! client-go's test cases of stores and indices that cover more than one clause.

use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::delta_fifo::{Config, Delta, DeltaFifo, Processed, Transformer};

/// A cache that is written directly, or through a queue with a transformer.
struct Store {
    writer: IndexerWriter,
    fifo: Option<DeltaFifo>,
}

impl Store {
    fn put(&mut self, object: Object) {
        match &self.fifo {
            None => drop(self.writer.put(object)),
            Some(fifo) => fifo.update(object).unwrap(),
        }
        self.pop();
    }

    fn delete(&mut self, object: &Object) {
        match &self.fifo {
            None => drop(self.writer.delete(object.key(), Some(object))),
            Some(fifo) => fifo.delete(object.clone()).unwrap(),
        }
        self.pop();
    }

    fn replace(&mut self, objects: Vec<Object>) {
        match &self.fifo {
            None => self.writer.replace(objects, "0"),
            Some(fifo) => fifo.replace(objects).unwrap(),
        }
        self.pop();
    }

    fn pop(&mut self) {
        let Self { writer, fifo: Some(fifo) } = self else { return };
        while fifo.try_pop(|key, deltas, _| {
            for delta in deltas.as_slice() {
                match delta {
                    Delta::Deleted(_) => drop(writer.delete(key, None)),
                    other => drop(writer.put(other.last_known().unwrap().clone())),
                }
            }
            Processed::Done
        }) == Ok(true)
        {}
    }

    fn value(&self, name: &str) -> Option<String> {
        let object = self.writer.indexer().get(&ObjectKey::new("", name))?;
        object.labels().remove("val")
    }

    /// Returns the name and value of each object.
    fn list(&self) -> Vec<String> {
        let objects = self.writer.indexer().list(None, &LabelSelector::everything());
        objects.iter().map(|object| format!("{} {}", object.key(), object.labels()["val"])).collect()
    }
}

fn valued(name: &str, value: &str) -> Object {
    at(Draft::new(name).label("val", value), "1")
}

/// The test that client-go runs on each of its stores.
fn check_store(mut store: Store) {
    store.put(valued("foo", "bar"));
    assert_eq!(store.value("foo").as_deref(), Some("bar"));
    store.put(valued("foo", "baz"));
    assert_eq!(store.value("foo").as_deref(), Some("baz"));
    store.delete(&valued("foo", "qux"));
    assert_eq!(store.value("foo"), None);
    for (name, value) in [("a", "b"), ("c", "d"), ("e", "f")] {
        store.put(valued(name, value));
    }
    assert_eq!(store.list(), ["a b", "c d", "e f"]);
    store.replace(vec![valued("foo", "foo"), valued("bar", "bar")]);
    assert_eq!(store.list(), ["bar bar", "foo foo"]);
    assert_eq!(store.value("a"), None);
}

// Conformance: 22.1
#[test]
fn a_cache_passes_the_test_of_all_stores() {
    check_store(Store { writer: IndexerWriter::new(), fifo: None });
}

// Conformance: 22.2
#[test]
fn a_cache_with_a_transformer_passes_the_test_of_all_stores() {
    let writer = IndexerWriter::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let transformer: Transformer = {
        let seen = seen.clone();
        Arc::new(move |object: Object| {
            seen.lock().push(object.annotations().contains_key("transformed"));
            let text = object
                .json()
                .replace("\"metadata\":{", "\"metadata\":{\"annotations\":{\"transformed\":\"\"},");
            Ok(Object::parse(text.as_bytes(), None).unwrap())
        })
    };
    let fifo = DeltaFifo::new(Config {
        known_objects: Some(Arc::new(writer.indexer().clone())),
        transformer: Some(transformer),
        ..Config::default()
    });
    let indexer = writer.indexer().clone();
    check_store(Store { writer, fifo: Some(fifo) });
    assert_eq!(*seen.lock(), [false; 8], "the transformer is called once with each received object");
    assert!(indexer.snapshot(&Namespaces::All).iter().all(|it| it.annotations().contains_key("transformed")));
}

// Conformance: 22.5
#[test]
fn index_returns_the_objects_that_share_a_value_with_an_example() {
    let objects = [("a", "b"), ("b", "b"), ("c", "b"), ("d", "x")];
    let (_writer, indexer) = filled(objects.map(|(name, value)| valued(name, value)));
    indexer.add_index("by_val", IndexSource::Label("val".into())).unwrap();
    assert_eq!(names(&indexer.index("by_val", &valued("example", "b")).unwrap()), ["a", "b", "c"]);
    assert_eq!(names(&indexer.index("by_val", &valued("example", "x")).unwrap()), ["d"]);
    assert_eq!(names(&indexer.index("by_val", &valued("example", "none")).unwrap()), [""; 0]);
}
