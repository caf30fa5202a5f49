//! The cache and its indices: objects under keys of one's own, found again by what a label says.
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
    // A key function names objects; without one they are kept by namespace and name. There is one writer and any number of readers: only
    // the writer has methods that change anything.
    let own_key = |object: &Object| Ok(key(object.key().namespace(), object.key().name()));
    let mut cache = IndexerWriter::with_key_function(KeyFunction::new(own_key));
    let indexer = cache.indexer().clone();

    // An index is a name and what it files objects under: a label, an owner, a JSON pointer, or whatever a function says.
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

    // An index may come later, while the cache is in use; what is there is filed before this returns.
    indexer.add_index("name", IndexSource::Pointer("/metadata/name".parse()?))?;
    print(&indexer, "name")?;
    if let Err(error) = indexer.by_index("colour", "blue") {
        println!("blue pods: {error}");
    }
    Ok(())
}

/// The key of one's own: one name, with the namespace in it.
fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new("", format!("{namespace}---{name}"))
}

/// Prints an index: each value, and the keys of the objects that are filed under it.
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
