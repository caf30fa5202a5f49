//! ConfigMaps and Secrets.

use oarlock_component_source::{KeySource, Reason, Source};

use super::artifact::{Nothing, Secret, component, content, fetcher};

#[tokio::test]
async fn a_key_of_an_object_is_a_component() {
    let dir = tempfile::tempdir().unwrap();
    let fetcher = fetcher(dir.path(), "maxBytes: 100");
    let key = || Some(KeySource { name: "mirror".to_owned(), key: "mirror.wasm".to_owned() });
    let sources =
        [Source { config_map: key(), ..Source::default() }, Source { secret: key(), ..Source::default() }];
    for source in &sources {
        let fetched = fetcher.fetch(source, &Secret(component("one"))).await.unwrap();
        assert_eq!(content(&fetched), component("one"));
        let text = fetcher.fetch(source, &Secret(b"text".to_vec())).await.unwrap_err();
        assert_eq!(text.reason(), Reason::NotAComponent);
        let large = fetcher.fetch(source, &Secret(component(&"x".repeat(100)))).await.unwrap_err();
        assert_eq!(large.reason(), Reason::TooLarge);
    }
    // The component is in the cache, and the account decides nevertheless.
    let forbidden = fetcher.fetch(&sources[0], &Nothing).await.unwrap_err();
    assert_eq!(forbidden.reason(), Reason::Forbidden);
    assert_eq!(forbidden.to_string(), "ConfigMap mirror may not be read: no right");
    let absent = fetcher.fetch(&sources[1], &Nothing).await.unwrap_err();
    assert_eq!(absent.reason(), Reason::NotFound);
}
