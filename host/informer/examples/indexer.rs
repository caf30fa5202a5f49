//! The cache and its indices: objects under keys of one's own, found again by what a label says.
//!
//! `cargo run -p oarlock-informer --example indexer`; it needs no server.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use oarlock_informer::indexer::{IndexFunction, IndexerWriter};
use oarlock_informer::keys::KeyFunction;
use oarlock_informer::{IndexSource, Indexer, Namespaces, Object, ObjectKey};

fn main() -> Result<(), Box<dyn Error>> {
    // There is one writer and any number of readers. Only the writer has methods that change anything.
    let mut cache = IndexerWriter::new();
    let indexer = cache.indexer().clone();

    // A key function names objects. The cache itself keeps them by namespace and name, sorted, which is what makes its namespace index
    // cost nothing; names of one's own are an index with one value for each object.
    let own_key = |object: &Object| format!("{}---{}", object.key().namespace(), object.key().name());
    let by_own_key = IndexSource::Function(IndexFunction::new(move |object| Ok(vec![own_key(object)])));
    let key_function = KeyFunction::of_index(by_own_key.clone());
    indexer.add_index("key", by_own_key)?;

    // An index is a name and what it files objects under: a label, an owner, a JSON pointer, or whatever a function says.
    indexer.add_index("app", IndexSource::Label("app".to_owned()))?;
    for (namespace, name, app) in
        [("default", "web-1", "web"), ("default", "db-1", "db"), ("other", "web-1", "web")]
    {
        cache.put(pod(namespace, name, app)?);
    }
    print(&indexer, "app", &key_function)?;
    for found in indexer.by_index("key", "other---web-1")? {
        println!("other---web-1 is {} of namespace {}", found.key().name(), found.key().namespace());
    }

    println!("default---web-1 becomes part of db");
    cache.put(pod("default", "web-1", "db")?);
    print(&indexer, "app", &key_function)?;

    println!("other---web-1 is deleted, and its value with it");
    cache.delete(&ObjectKey::new("other", "web-1"), None);
    print(&indexer, "app", &key_function)?;

    // An index may come later, while the cache is in use; what is there is filed before this returns.
    indexer.add_index("name", IndexSource::Pointer("/metadata/name".parse()?))?;
    print(&indexer, "name", &key_function)?;
    if let Err(error) = indexer.by_index("colour", "blue") {
        println!("blue pods: {error}");
    }
    Ok(())
}

/// Prints an index: each value, and the objects that are filed under it.
fn print(indexer: &Indexer, index: &str, key_function: &KeyFunction) -> Result<(), Box<dyn Error>> {
    println!("index {index:?}:");
    for value in indexer.index_values(index, &Namespaces::All) {
        let objects = indexer.by_index(index, &value)?;
        let keys: Result<Vec<_>, _> = objects.iter().map(|object| key_function.key_of(object)).collect();
        println!("  {value}: {:?}", keys?);
    }
    Ok(())
}

fn pod(namespace: &str, name: &str, app: &str) -> Result<Object, Box<dyn Error>> {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"{namespace}","name":"{name}","labels":{{"app":"{app}"}}}}}}"#
    );
    Ok(Object::parse(text.as_bytes(), None)?)
}
