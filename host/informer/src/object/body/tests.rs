use super::*;
use crate::object::{Object, StringMap};

fn pod(i: usize) -> Object {
    let hash = |seed: usize| format!("{:016x}", (i * 31 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let text = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{i}","namespace":"ns-{}","uid":"0f8fad5b-d9cb-469f-a165-{:012x}","resourceVersion":"{i}","labels":{{"app":"web-{}"}},"annotations":{{"checksum/config":"{}{}"}}}},"spec":{{"containers":[{{"name":"main","image":"registry.example.com/team/web@sha256:{}","env":[{{"name":"A","value":"{i}"}},{{"name":"POD_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.name"}}}}}}],"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","nodeName":"node-{}"}},"status":{{"phase":"Running","podIP":"10.0.{}.{}","containerStatuses":[{{"name":"main","ready":true,"containerID":"containerd://{}{}"}}]}}}}"#,
        i % 5,
        i,
        i % 7,
        hash(1),
        hash(2),
        hash(3),
        i % 13,
        i / 256,
        i % 256,
        hash(4),
        hash(5),
    );
    Object::parse(text.as_bytes(), None).unwrap()
}

fn dictionary() -> Arc<Dictionary> {
    let texts: Vec<_> = (0..200).map(|i| pod(i).json()).collect();
    Arc::new(Dictionary::train(&texts).unwrap())
}

#[test]
fn a_cold_object_reads_like_a_hot_one() {
    let dictionary = dictionary();
    for i in 500..600 {
        let (hot, cold) = (pod(i), pod(i));
        let clone = cold.clone();
        let length = cold.compress(&dictionary).unwrap();
        assert_eq!(cold.compressed_length(), Some(length));
        assert!(length * 3 < hot.json_length(), "{length} of {}", hot.json_length());
        assert!(
            clone.is_same(&cold) && clone.compressed_length().is_some(),
            "all clones share the compressed text"
        );
        assert_eq!(*hot.json(), *cold.json());
        assert_eq!(hot, cold);
        assert_eq!(hot.annotations(), cold.annotations());
        assert_eq!(hot.metadata_json(), cold.metadata_json());
        assert_eq!(cold.json_length(), hot.json_length());
        assert_eq!(
            cold.pointer(&"/spec/nodeName".parse().unwrap()),
            hot.pointer(&"/spec/nodeName".parse().unwrap())
        );
    }
}

#[test]
fn reading_key_and_labels_does_not_decompress() {
    let cold = pod(7);
    cold.compress(&dictionary()).unwrap();
    assert_eq!(cold.key().to_string(), "ns-2/web-7");
    assert_eq!(cold.labels(), StringMap::from([("app".into(), "web-0".into())]));
    assert_eq!(cold.resource_version(), "7");
    assert!(cold.compressed_length().is_some(), "reading does not make the object hot");
}

#[test]
fn short_and_random_texts_stay_hot() {
    let dictionary = dictionary();
    let small = Object::parse(br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#, None).unwrap();
    assert_eq!(small.compress(&dictionary), None);
    let noise: String = (0u64..260)
        .map(|i| char::from(b'#' + (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u8 % 57))
        .collect();
    let text = serde_json::json!({"kind": "Q", "apiVersion": "v9", "metadata": {"name": "z"}, "x": noise})
        .to_string();
    let random = Object::parse(text.as_bytes(), None).unwrap();
    assert_eq!(random.compress(&dictionary), None);
    assert_eq!(*random.json(), *text);
}

#[test]
fn a_dictionary_is_not_trained_from_too_little_text() {
    assert!(Dictionary::train::<&str>(&[]).is_none());
    assert!(Dictionary::train(&["{}"; 100]).is_none());
    let huge = "x".repeat(3 << 20);
    assert!(Dictionary::train(&[&*huge, &*huge]).is_none());
}

#[test]
fn a_dictionary_lives_as_long_as_a_text_compressed_with_it() {
    let (old, new) = (dictionary(), dictionary());
    let objects: Vec<_> = (0..10).map(pod).collect();
    for object in &objects {
        object.compress(&old).unwrap();
    }
    let weak = Arc::downgrade(&old);
    drop(old);
    assert_eq!(*objects[3].json(), *pod(3).json());
    assert!(weak.upgrade().is_some());
    for object in &objects {
        object.recompress(&new).unwrap();
    }
    assert_eq!(*objects[3].json(), *pod(3).json());
    assert!(weak.upgrade().is_none());
}

#[test]
fn readers_see_the_same_text_while_it_is_compressed() {
    let dictionary = dictionary();
    let objects: Vec<_> = (0..200).map(pod).collect();
    let expected: Vec<_> = objects.iter().map(|object| object.json().to_string()).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..5 {
                    for (object, expected) in objects.iter().zip(&expected) {
                        assert_eq!(*object.json(), **expected);
                    }
                }
            });
        }
        for object in &objects {
            object.compress(&dictionary).unwrap();
        }
    });
    dictionary.release_contexts();
    assert!(objects.iter().all(|object| object.compressed_length().is_some()));
}

proptest::proptest! {
    #[test]
    fn compressing_loses_nothing(text in "\\PC{0,2000}", repeated in 1usize..200) {
        let body = serde_json::json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "x": text.repeat(repeated)});
        let body = body.to_string();
        let object = Object::parse(body.as_bytes(), None).unwrap();
        static DICTIONARY: std::sync::LazyLock<Arc<Dictionary>> = std::sync::LazyLock::new(dictionary);
        object.compress(&DICTIONARY);
        proptest::prop_assert_eq!(&*object.json(), &*body);
    }
}
