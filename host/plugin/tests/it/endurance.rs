//! Every language can implement the contract: 100,000 notifications to one instance, each with declared
//! fields, a field that the guest reads and a read of the cache, without a trap.

use std::sync::{Arc, atomic::Ordering};

use oarlock_plugin::{
    Limits,
    contract::{Added, Deleted, Synced, Updated},
};
use serde_json::{Value, json};

use super::{
    fake::{FakeObject, at, config_map, object_ref},
    support::Host,
};

const N_NOTIFICATIONS: usize = 100_000;
const N_OBJECTS: usize = 200;

#[tokio::test]
async fn hello_rust() {
    handle_many_notifications("hello-rust").await;
}

#[tokio::test]
async fn hello_c() {
    handle_many_notifications("hello-c").await;
}

#[tokio::test]
async fn hello_go() {
    handle_many_notifications("hello-go").await;
}

#[tokio::test]
async fn hello_ts() {
    handle_many_notifications("hello-ts").await;
}

#[tokio::test]
async fn hello_python() {
    handle_many_notifications("hello-python").await;
}

async fn handle_many_notifications(name: &str) {
    let mut host = Host::with(name, Limits::default(), json!({})).await;
    let description = host.describe().await.unwrap();
    assert_eq!(description.name, name);
    let pointers = description.subscriptions[0].fields.clone();
    assert_eq!(pointers, ["/metadata/resourceVersion", "/data/greeting"]);

    // The log line has the content of the notification.
    let instance = host.instance().await.unwrap();
    notify(&host, instance, &pointers, 5).await;
    let last = host.lines.0.lock().last().cloned().unwrap();
    assert_eq!(last.message, "notified");
    let pairs: Vec<_> = last.pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        pairs.join(" "),
        "type=update subscription=configmaps namespace=ns-1 name=cm-1 uid=uid-of-ns-1-cm-1 resource-version=2 \
         old-resource-version=1 old-greeting=hello 1 greeting=hello 2 created=2026-11-20T08:00:00Z cached=true"
    );

    // The instance handles many notifications.
    host.config = json!({ "quiet": true });
    let n_lines = host.lines().len();
    let n_gets = host.kube.n_gets.load(Ordering::Relaxed);
    let instance = host.instance().await.unwrap();
    let n_fields = notify(&host, instance, &pointers, N_NOTIFICATIONS).await;
    assert!(n_fields >= N_NOTIFICATIONS, "{n_fields} fields read");
    assert!(host.kube.n_gets.load(Ordering::Relaxed) - n_gets >= N_NOTIFICATIONS);
    assert_eq!(host.lines().len(), n_lines, "`quiet` turns the log off");
}

/// Sends adds, updates and deletes of some objects in turn. Returns the number of fields that the guest read.
async fn notify(
    host: &Host,
    mut instance: oarlock_plugin::Instance,
    pointers: &[String],
    n_notifications: usize,
) -> usize {
    let values = |object: &Value| pointers.iter().map(|pointer| at(object, pointer)).collect::<Vec<_>>();
    let mut n_fields = 0;
    let mut done = 0;
    let synced = Synced { subscription: "configmaps".into(), remaining: 0 };
    instance.on_synced(&synced).await.unwrap().unwrap();
    for n in 0.. {
        let [namespace, name] = [format!("ns-{}", n % 3), format!("cm-{}", n % N_OBJECTS)];
        let old = config_map(&namespace, &name, 1);
        let new = config_map(&namespace, &name, 2);
        let (old_object, new_object) = (FakeObject::new(&old), FakeObject::new(&new));

        host.kube.put(&old);
        let added = Added {
            subscription: "configmaps".into(),
            object: object_ref(&old),
            is_in_initial_list: n < N_OBJECTS,
            fields: values(&old),
        };
        instance.on_add(&added.borrowed().argument(), Arc::clone(&old_object) as _).await.unwrap().unwrap();
        host.kube.put(&new);
        let updated = Updated {
            subscription: "configmaps".into(),
            object: object_ref(&new),
            old_resource_version: object_ref(&old).resource_version,
            old_uid: None,
            fields: values(&new),
            old_fields: values(&old),
        };
        instance
            .on_update(
                &updated.borrowed().argument(),
                Arc::clone(&old_object) as _,
                Arc::clone(&new_object) as _,
            )
            .await
            .unwrap()
            .unwrap();
        done += 2;
        if done < n_notifications {
            host.kube.remove(&new);
            let deleted = Deleted {
                subscription: "configmaps".into(),
                object: object_ref(&new),
                final_state_unknown: n % 2 == 0,
                fields: values(&new),
            };
            instance
                .on_delete(&deleted.borrowed().argument(), Arc::clone(&new_object) as _)
                .await
                .unwrap()
                .unwrap();
            done += 1;
        }
        for object in [old_object, new_object] {
            n_fields += object.n_fields.load(Ordering::Relaxed);
        }
        if done >= n_notifications {
            break;
        }
    }
    n_fields
}
