use super::*;
use crate::catalog::Catalog;
use serde_json::json;

fn config_maps() -> Arc<Resource> {
    Catalog::new().served().builtin("", "configmaps").unwrap().clone()
}

fn put(store: &Store, name: &str, data: &str) -> u64 {
    let resource = config_maps();
    let object = json!({"metadata": {"namespace": "a", "name": name}, "data": {"x": data}});
    store.transact(false, |t| t.put(&resource, &format!("a/{name}"), object).revision)
}

fn remove(store: &Store, name: &str) -> u64 {
    let resource = config_maps();
    store.transact(false, |t| {
        t.remove(&resource, &format!("a/{name}"), json!({"metadata": {"name": name}})).revision
    })
}

fn names(store: &Store, at: Option<u64>) -> Result<Vec<String>, Compacted> {
    let snapshot = store.snapshot(&config_maps().storage, "a/", at)?;
    Ok(snapshot.objects.iter().map(|object| format!("{}@{}", object.name, object.revision)).collect())
}

#[test]
fn an_old_revision_can_be_read_until_its_history_is_trimmed() {
    let store = Store::new(3);
    assert_eq!(put(&store, "p", "1"), 2);
    assert_eq!(put(&store, "q", "1"), 3);
    assert_eq!(put(&store, "p", "2"), 4);
    assert_eq!(remove(&store, "q"), 5);
    assert_eq!(names(&store, None).unwrap(), ["p@4"]);
    assert_eq!(names(&store, Some(4)).unwrap(), ["p@4", "q@3"]);
    assert_eq!(names(&store, Some(3)).unwrap(), ["p@2", "q@3"]);
    assert_eq!(names(&store, Some(2)).unwrap(), ["p@2"]);
    assert_eq!(names(&store, Some(1)), Err(Compacted { oldest: 2 }));
}

#[test]
fn changes_are_returned_in_order_and_in_batches() {
    let store = Store::new(100);
    put(&store, "p", "1");
    put(&store, "p", "2");
    remove(&store, "p");
    let storage = &config_maps().storage;
    let first = store.changes(storage, 1, 2).unwrap();
    let kinds: Vec<ChangeKind> = first.changes.iter().map(|change| change.kind).collect();
    assert_eq!((kinds, first.up_to), (vec![ChangeKind::Added, ChangeKind::Modified], 3));
    let rest = store.changes(storage, 3, 2).unwrap();
    assert_eq!((rest.changes[0].kind, rest.up_to), (ChangeKind::Deleted, 4));
    assert!(rest.changes[0].previous.is_some());
}

#[test]
fn compaction_forgets_the_history_of_every_resource() {
    let store = Store::new(100);
    put(&store, "p", "1");
    store.compact();
    let pods = GroupResource::new("", "pods");
    assert_eq!(store.changes(&pods, 1, 10).err(), Some(Compacted { oldest: 2 }));
    assert!(store.changes(&pods, 2, 10).unwrap().changes.is_empty());
}

#[test]
fn a_dry_run_changes_nothing() {
    let store = Store::new(100);
    let resource = config_maps();
    let stored = store.transact(true, |t| t.put(&resource, "a/p", json!({"metadata": {"name": "p"}})));
    assert_eq!(stored.name, "p");
    assert_eq!(store.revision(), 1);
    assert!(store.get(&resource.storage, "a/p").is_none());
}

#[test]
fn keys_are_ordered_as_in_etcd() {
    let store = Store::new(100);
    let resource = config_maps();
    for key in ["a/x", "a-b/x", "a/b", "b/a"] {
        store.transact(false, |t| t.put(&resource, key, json!({"metadata": {"name": key}})));
    }
    let snapshot = store.snapshot(&resource.storage, "", None).unwrap();
    let keys: Vec<&str> = snapshot.objects.iter().map(|object| &*object.key).collect();
    assert_eq!(keys, ["a-b/x", "a/b", "a/x", "b/a"]);
}
