use super::*;
use crate::indexer::{IndexLimits, IndexSource, IndexerWriter, Memory};
use crate::namespaces::Namespaces;
use crate::object::{Content, CopiedPointers, Pruning};

/// A realistic Pod of one of 20 templates, with its own uid, address, node, times and ids.
fn pod(i: usize, version: usize) -> Object {
    let received = pod_as_received(i, version);
    Object::parse_pruned(received.as_bytes(), None, &Pruning::default()).unwrap()
}

fn pod_as_received(i: usize, version: usize) -> String {
    let hex = |seed: usize| {
        let mut state = (i as u64 * 1_000_003 + seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut next = || {
            state = (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state ^ state >> 32
        };
        format!("{:016x}{:016x}{:016x}{:016x}", next(), next(), next(), next())
    };
    let template = i % 20;
    let app = format!("service-{template}-of-team-{}", template % 6);
    let container = |name: &str, seed: usize| {
        format!(
            r#"{{"name":"{name}","image":"registry.example.com/team-{}/{app}-{name}:v1.{template}.3","ports":[{{"name":"http","containerPort":80{template:02},"protocol":"TCP"}}],"env":[{{"name":"POD_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.name"}}}}}},{{"name":"LOG_LEVEL","value":"info"}}],"resources":{{"limits":{{"cpu":"{}m","memory":"512Mi"}},"requests":{{"cpu":"100m","memory":"256Mi"}}}},"volumeMounts":[{{"name":"kube-api-access-{seed}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"livenessProbe":{{"httpGet":{{"path":"/healthz","port":"http","scheme":"HTTP"}},"initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}"#,
            template % 6,
            template * 100 + 500,
        )
    };
    let status = |name: &str, seed: usize| {
        format!(
            r#"{{"name":"{name}","state":{{"running":{{"startedAt":"2026-11-20T10:{:02}:{:02}Z"}}}},"lastState":{{}},"ready":true,"restartCount":{},"image":"registry.example.com/team-{}/{app}-{name}:v1.{template}.3","imageID":"registry.example.com/team/{name}@sha256:{}","containerID":"containerd://{}","started":true}}"#,
            i % 60,
            version % 60,
            version % 3,
            template % 6,
            hex(seed),
            hex(seed + 1),
        )
    };
    let uid = &hex(9)[..32];
    let uid = format!("{}-{}-{}-{}-{}", &uid[..8], &uid[8..12], &uid[12..16], &uid[16..20], &uid[20..]);
    let fields = r#"{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}}}}}"#;
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{app}-{}-{i}","generateName":"{app}-","namespace":"team-{}","uid":"{uid}","resourceVersion":"{}","generation":1,"creationTimestamp":"2026-11-20T09:{:02}:00Z","labels":{{"app":"{app}","pod-template-hash":"{}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{app}","uid":"{}","controller":true,"blockOwnerDeletion":true}}],"managedFields":[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-11-20T09:00:00Z","fieldsType":"FieldsV1","fieldsV1":{fields}}},{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-20T09:00:00Z","fieldsType":"FieldsV1","fieldsV1":{fields},"subresource":"status"}}]}},"spec":{{"containers":[{},{}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"{app}","nodeName":"node-{:04}","securityContext":{{}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true}},"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-20T10:{:02}:13Z"}},{{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-20T09:{:02}:11Z"}}],"hostIP":"10.1.{}.{}","podIP":"10.2.{}.{}","startTime":"2026-11-20T09:{:02}:12Z","containerStatuses":[{},{}],"qosClass":"Burstable"}}}}"#,
        &hex(3)[..5],
        template % 6,
        i * 100 + version,
        i % 60,
        template * 7919,
        hex(template)[..8].to_owned() + "-0000-4000-8000-000000000000",
        container("main", 1),
        container("sidecar", 2),
        i % 1000,
        i % 60,
        i % 60,
        i / 256 % 256,
        i % 256,
        i % 256,
        i / 256 % 256,
        i % 60,
        status("main", 20),
        status("sidecar", 30),
    )
}

fn filled(n_pods: usize) -> (IndexerWriter, Compactor) {
    let mut writer = IndexerWriter::new();
    for i in 0..n_pods {
        writer.put(pod(i, 0));
    }
    let compactor = Compactor::new(writer.indexer().clone(), 64 << 20);
    (writer, compactor)
}

#[test]
fn promise_7_a_cached_object_costs_a_fraction_of_its_json() {
    let n_pods = 2000;
    let received: usize = (0..n_pods).map(|i| pod_as_received(i, 0).len()).sum();
    let (writer, compactor) = filled(n_pods);
    let indexer = writer.indexer();
    let object = indexer.snapshot(&Namespaces::All)[7].clone();
    let read = || indexer.get(object.key()).unwrap();
    let before = read().json().to_string();
    compact_for_a_second(&compactor);

    let memory = indexer.memory();
    assert_eq!((memory.objects, memory.plain), (n_pods, 0));
    assert!(read().is_same(&object), "readers share one copy, hot or cold");
    assert_eq!(*read().json(), *before);
    let kept = memory.compressed + memory.indices + memory.dictionaries;
    assert!(kept * 6 < received, "{kept} of {received}: {memory:?}");
}

/// Compacts for a second until no work is left. Returns the number of slices.
fn compact_for_a_second(compactor: &Compactor) -> usize {
    let mut n_slices = 0;
    for _ in 0..=MIN_AGE {
        compactor.tick();
        train_if_due(compactor);
        while compactor.compact_slice() {
            if compactor.compresses_worse() {
                train_if_due(compactor);
            }
            n_slices += 1;
            assert!(n_slices < 10_000, "the compactor has done 10,000 slices and is not done");
        }
    }
    n_slices
}

fn train_if_due(compactor: &Compactor) {
    if let Some(due) = compactor.due_training() {
        compactor.end_training(due.train());
    }
}

#[test]
fn objects_are_written_and_compressed_while_a_dictionary_is_trained() {
    let (mut writer, compactor) = filled(200);
    let indexer = writer.indexer().clone();
    compact_for_a_second(&compactor);
    for i in 200..1000 {
        writer.put(pod(i, 0));
    }
    let due = compactor.due_training().expect("the cache has five times as many objects");
    writer.put(pod(5, 1));
    for _ in 0..=MIN_AGE {
        compactor.tick();
        while compactor.compact_slice() {}
    }
    assert_eq!(indexer.memory().plain, 0);
    compactor.end_training(due.train());
    assert!(compactor.due_training().is_none(), "the training has ended");
    compact_for_a_second(&compactor);
    let pods = indexer.snapshot(&Namespaces::All);
    let changed = pods.iter().find(|it| it.key() == pod(5, 0).key()).expect("it is in the cache");
    assert_eq!(*changed.json(), *pod(5, 1).json());
}

#[test]
fn a_new_dictionary_is_trained_after_objects_changed_at_once_or_bit_by_bit() {
    let n_pods = 4000;
    // All objects get a part in common that they did not have.
    let changed = |i: usize| {
        let condition = |n: usize| format!(r#"{{"reason":"Reason{}","message":"{}"}}"#, n * 7919, n * n * n);
        let common = (i % 7..i % 7 + 40).map(condition).collect::<Vec<_>>().join(",");
        let text =
            pod_as_received(i, 1).replacen(r#""conditions":["#, &format!(r#""conditions":[{common},"#), 1);
        Object::parse_pruned(text.as_bytes(), None, &Pruning::default()).unwrap()
    };
    for at_once in [n_pods, 250] {
        let (mut writer, compactor) = filled(n_pods);
        compact_for_a_second(&compactor);
        let before = writer.indexer().memory();
        for i in 0..n_pods {
            writer.put(changed(i));
            if (i + 1) % at_once == 0 {
                compact_for_a_second(&compactor);
            }
        }
        let after = writer.indexer().memory();
        assert_eq!(after.plain, 0);
        assert!(after.text > before.text * 4 / 3, "{before:?} {after:?}");
        assert!(after.compressed < before.compressed * 5 / 4, "{at_once} at once: {before:?} {after:?}");
    }
}

#[test]
fn objects_that_compress_badly_are_not_compressed_again_and_again() {
    let mut writer = IndexerWriter::new();
    let compactor = Compactor::new(writer.indexer().clone(), 64 << 20);
    let n_pods = 3000;
    for i in 0..n_pods {
        let noise: String = if i < n_pods / 2 {
            String::new()
        } else {
            (0..60).map(|n| pod_as_received(i * n, n)[900..950].to_owned()).collect()
        };
        let noise = noise.replace(['"', '\\'], "");
        let text = pod_as_received(i, 0).replacen(
            r#""metadata":{"#,
            &format!(r#""metadata":{{"annotations":{{"noise":"{noise}"}},"#),
            1,
        );
        writer.put(Object::parse_pruned(text.as_bytes(), None, &Pruning::default()).unwrap());
    }
    // Each object is compressed at most twice: once as it was written, once with the dictionary of all
    // objects.
    assert!(compact_for_a_second(&compactor) < 1000);
    assert_eq!(writer.indexer().memory().plain, 0);
    assert!(compactor.is_idle());
}

#[test]
fn listed_objects_are_compressed_as_they_arrive() {
    let (mut writer, compactor) = filled(0);
    let listed: Vec<_> = (0..1000).map(|i| compactor.intern(pod(i, 0))).collect();
    assert!(listed.iter().all(|object| object.compressed_length().is_some()));
    for object in &listed {
        writer.put(object.clone());
    }
    assert_eq!(writer.indexer().memory().plain, 0);

    // A relist returns the cached object unless the listed one is new.
    assert!(compactor.intern(pod(3, 0)).is_same(&listed[3]));
    let changed = compactor.intern(pod(3, 1));
    assert!(!changed.is_same(&listed[3]) && changed.compressed_length().is_some());
}

#[test]
fn objects_written_within_a_second_stay_hot() {
    let (mut writer, compactor) = filled(200);
    compact_for_a_second(&compactor);
    let hot = writer.indexer().snapshot(&Namespaces::All)[5].clone();
    for version in 1..20 {
        let new =
            Object::parse(hot.json().replace("10:0", &format!("1{version}:0")).as_bytes(), None).unwrap();
        writer.put(new);
        compactor.tick();
        while compactor.compact_slice() {}
        let memory = writer.indexer().memory();
        assert!(memory.plain > 0 && memory.compressed > 0, "{memory:?}");
    }
    compact_for_a_second(&compactor);
    assert_eq!(writer.indexer().memory().plain, 0);
}

#[test]
fn above_the_budget_objects_are_compressed_at_once() {
    let (mut writer, _) = filled(300);
    let indexer = writer.indexer().clone();
    let compactor = Compactor::new(indexer.clone(), 100 << 10);
    compact_for_a_second(&compactor);
    for i in 0..300 {
        writer.put(pod(i, 1));
        while compactor.is_over_budget() {
            assert!(compactor.compact_slice());
        }
    }
    assert!(indexer.memory().plain <= 100 << 10);
    assert_eq!(*indexer.snapshot(&Namespaces::All)[0].json(), *{
        let key = indexer.keys()[0].clone();
        let i = (0..300).find(|i| *pod(*i, 0).key() == key).unwrap();
        pod(i, 1).json()
    });
}

#[test]
fn the_counted_memory_returns_to_zero_when_all_is_deleted() {
    let (mut writer, compactor) = filled(500);
    let indexer = writer.indexer().clone();
    indexer.add_index("app", IndexSource::Label("app".into())).unwrap();
    indexer.add_index("image", IndexSource::Pointer("/spec/containers/*/image".parse().unwrap())).unwrap();
    compact_for_a_second(&compactor);
    for i in 0..250 {
        writer.put(pod(i, 1));
    }
    let objects = indexer.snapshot(&Namespaces::All);
    let memory = indexer.memory();
    assert_eq!(memory.text, objects.iter().map(Object::json_length).sum::<usize>());
    assert_eq!(memory.compressed, objects.iter().filter_map(Object::compressed_length).sum::<usize>());
    assert!(memory.plain > 0 && memory.indices > 0 && memory.dictionaries > 0);
    assert!(indexer.index_status("image").unwrap().bytes > 0);

    drop(objects);
    for key in indexer.keys() {
        writer.delete(&key, None);
    }
    for name in ["app", "image"] {
        assert_eq!(indexer.index_status(name).unwrap(), crate::indexer::IndexStatus::default());
    }
    compact_for_a_second(&compactor);
    let memory = indexer.memory();
    assert_eq!(memory, Memory { indices: memory.indices, ..Memory::default() });
    assert!(memory.indices < 1024, "{memory:?}");
    assert!(compactor.training.lock().dictionary().is_none());
    assert!(compactor.is_idle());
}

#[test]
fn copied_values_are_counted_while_their_objects_are_hot() {
    let (mut writer, compactor) = filled(300);
    compact_for_a_second(&compactor);
    let pointers = CopiedPointers::new(&["/spec/nodeName".parse().unwrap()]);
    let mut put = |i: usize, version: usize| {
        let (text, pruning) = (pod_as_received(i, version), Pruning::default());
        let pod = Object::parse_copying(text.as_bytes(), None, &pruning, Content::Full, Some(&pointers));
        let pod = pod.unwrap();
        let values = pod.copied_values(pointers.number()).unwrap();
        writer.put(pod.clone());
        pod.json_length() + values.size()
    };
    let indexer = compactor.indexer.clone();
    put(0, 1);
    put(0, 2);
    let hot = (0..10).map(|i| put(i, 3)).sum::<usize>();
    assert_eq!(indexer.memory().plain, hot);
    compact_for_a_second(&compactor);
    assert_eq!(indexer.memory().plain, 0, "cold objects have none");
    let hot = (5..15).map(|i| put(i, 4)).sum::<usize>();
    assert_eq!(indexer.memory().plain, hot);
    for key in indexer.keys() {
        writer.delete(&key, None);
    }
    assert_eq!(indexer.memory().plain, 0);
}

#[test]
fn a_dictionary_of_the_first_objects_is_replaced_by_one_of_all() {
    let (mut writer, compactor) = filled(0);
    // The first objects of the list are of another kind.
    for i in 0..500 {
        let words = format!("lorem {} ipsum {} dolor {} ", i * 7, i * 11, i * 13).repeat(20);
        let text = format!(
            r#"{{"apiVersion":"v1","data":{{"config":"{words}"}},"kind":"Pod","metadata":{{"name":"z-{i}"}}}}"#
        );
        writer.put(compactor.intern(Object::parse(text.as_bytes(), None).unwrap()));
    }
    train_if_due(&compactor);
    let first = compactor.training.lock().dictionary().unwrap();
    for i in 0..2500 {
        writer.put(compactor.intern(pod(i, 0)));
    }
    let before = writer.indexer().memory();
    compact_for_a_second(&compactor);
    let after = writer.indexer().memory();
    let second = compactor.training.lock().dictionary().unwrap();
    assert!(!Arc::ptr_eq(&first, &second), "{before:?} {after:?}");
    assert!(after.compressed * 100 < before.compressed * 95, "{before:?} {after:?}");
    let objects = writer.indexer().snapshot(&Namespaces::All);
    assert!(objects.iter().all(|object| object.is_compressed_with(&second)));
    assert_eq!(Arc::strong_count(&first), 1, "no object holds the old dictionary");
}

#[test]
fn small_caches_stay_hot_and_idle() {
    let (_writer, compactor) = filled(10);
    assert!(compactor.wake() && !compactor.wake());
    compact_for_a_second(&compactor);
    assert!(compactor.is_idle());
    assert!(compactor.training.lock().dictionary().is_none());
}

#[test]
fn objects_beyond_an_index_limit_are_counted_as_failures() {
    let mut writer = IndexerWriter::new();
    writer.limit_indices(IndexLimits { values_per_object: 1, bytes_per_index: 1000 });
    let indexer = writer.indexer().clone();
    indexer.add_index("image", IndexSource::Pointer("/spec/containers/*/image".parse().unwrap())).unwrap();
    indexer.add_index("name", IndexSource::Pointer("/metadata/name".parse().unwrap())).unwrap();
    for i in 0..100 {
        writer.put(pod(i, 0));
    }
    assert_eq!(indexer.index_status("image").unwrap().failed, 100);
    let status = indexer.index_status("name").unwrap();
    assert!(status.failed > 50 && status.values + status.failed == 100, "{status:?}");
    assert_eq!(indexer.index_failures("name").unwrap().len(), status.failed);
    assert_eq!(indexer.len(), 100);
    for key in indexer.keys() {
        writer.delete(&key, None);
    }
    assert!(indexer.index_failures("image").unwrap().is_empty());
}

#[test]
fn a_view_does_not_change_while_the_cache_is_written_and_compacted() {
    let (mut writer, compactor) = filled(1500);
    let indexer = writer.indexer().clone();
    let view = indexer.view();
    for i in 0..1500 {
        writer.put(pod(i, 1));
    }
    for key in indexer.keys().into_iter().step_by(2) {
        writer.delete(&key, None);
    }
    compact_for_a_second(&compactor);
    let then: Vec<_> = view.objects(&Namespaces::All).cloned().collect();
    assert_eq!(then.len(), 1500);
    assert!(then.iter().all(|object| !object.resource_version().ends_with('1')));
    assert!(then.is_sorted_by_key(|object| object.key().clone()));
    assert_eq!(indexer.len(), 750);
}
