//! The cache and its indices: objects with custom keys, found by a label.
//!
//! `cargo run -p oarlock-informer --example indexer`; it needs no server.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use oarlock_informer::indexer::IndexerWriter;
use oarlock_informer::toolkit::cache::KeyFunction;
use oarlock_informer::{
    Object,
    indexer::{IndexSource, Indexer},
    object::{Namespaces, ObjectKey},
};

fn main() -> Result<(), Box<dyn Error>> {
    // The key function computes the keys; by default they are namespace and name. The cache has one writer,
    // which alone can change it, and any number of readers.
    let own_key = |object: &Object| Ok(key(object.key().namespace(), object.key().name()));
    let mut cache = IndexerWriter::with_key_function(KeyFunction::new(own_key));
    let indexer = cache.indexer().clone();

    // An index has a name and a source of values: a label, an owner, a JSON pointer or a function.
    indexer.add_index("app", IndexSource::Label("app".to_owned()))?;
    for (namespace, name, app) in
        [("default", "web-1", "web"), ("default", "db-1", "db"), ("other", "web-1", "web")]
    {
        cache.put(pod(namespace, name, app)?);
    }
    print(&indexer, "app")?;
    if let Some(found) = indexer.get(&key("other", "web-1")) {
        println!("other---web-1 is {} of namespace {}", found.key().name(), found.key().namespace());
    }

    println!("default---web-1 becomes part of db");
    cache.put(pod("default", "web-1", "db")?);
    print(&indexer, "app")?;

    println!("other---web-1 is deleted, and its value with it");
    cache.delete(&key("other", "web-1"), None);
    print(&indexer, "app")?;

    // An index can be added while the cache is in use. It has all cached objects when the call returns.
    indexer.add_index("name", IndexSource::Pointer("/metadata/name".parse()?))?;
    print(&indexer, "name")?;
    if let Err(error) = indexer.by_index("colour", "blue") {
        println!("blue pods: {error}");
    }
    Ok(())
}

/// The custom key: one name with the namespace in it.
fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new("", format!("{namespace}---{name}"))
}

/// Prints an index: each value with the keys of its objects.
fn print(indexer: &Indexer, index: &str) -> Result<(), Box<dyn Error>> {
    println!("index {index:?}:");
    for value in indexer.index_values(index, &Namespaces::All) {
        println!("  {value}: {:?}", indexer.index_keys(index, &value)?);
    }
    Ok(())
}

fn pod(namespace: &str, name: &str, app: &str) -> Result<Object, Box<dyn Error>> {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"{namespace}","name":"{name}","labels":{{"app":"{app}"}}}}}}"#
    );
    Ok(Object::parse(text.as_bytes(), None)?)
}
