use super::*;

/// An API server whose answer to each `get` is this one, and which receives no writes.
struct Api(Result<String, Error>);

#[async_trait]
impl ClientAccess for Api {
    async fn get(&self, _: &GroupVersionResource, _: &ObjectKey, _: &str) -> Result<String, Error> {
        self.0.clone()
    }

    async fn list(
        &self,
        _: &GroupVersionResource,
        _: &Namespaces,
        _: Selectors<'_>,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        panic!("a shadow's write lists nothing")
    }

    async fn create(&self, _: &GroupVersionResource, _: &str, _: String) -> Result<Written, Error> {
        panic!("it is withheld")
    }

    async fn apply(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: String,
        _: bool,
        _: &Preconditions,
    ) -> Result<Written, Error> {
        panic!("it is withheld")
    }

    async fn patch(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: PatchKind,
        _: String,
        _: &Preconditions,
    ) -> Result<Written, Error> {
        panic!("it is withheld")
    }

    async fn replace(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: String,
    ) -> Result<Written, Error> {
        panic!("it is withheld")
    }

    async fn delete(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: Propagation,
        _: Option<u32>,
        _: &Preconditions,
    ) -> Result<(), Error> {
        panic!("it is withheld")
    }
}

impl EventsAccess for Api {
    fn emit(&self, _: GuestEvent) -> Result<(), Error> {
        panic!("it is withheld")
    }
}

/// Makes each kind of write of one object, and returns the answers: create, apply, patch, replace.
async fn written(get: Result<String, Error>) -> [Result<Written, Error>; 4] {
    let api = Arc::new(Api(get));
    let comparison = Arc::new(Comparison::default());
    comparison.begin("d1");
    let shadow =
        Compared { client: api.clone(), events: api, side: Side::Shadow, comparison: comparison.clone() };
    let target =
        GroupVersionResource { group: String::new(), version: "v1".into(), plural: "configmaps".into() };
    let key = ObjectKey { namespace: "n".into(), name: "a".into() };
    let json = || r#"{"metadata":{"name":"a"}}"#.to_owned();
    let conditions = Preconditions { uid: None, resource_version: None };
    let written = [
        shadow.create(&target, "n", json()).await,
        shadow.apply(&target, &key, "", json(), true, &conditions).await,
        shadow.patch(&target, &key, "", PatchKind::MergePatch, json(), &conditions).await,
        shadow.replace(&target, &key, "", json()).await,
    ];
    shadow.delete(&target, &key, Propagation::Background, None, &conditions).await.unwrap();
    assert_eq!(comparison.view().unwrap().waiting, 5, "each write waits for its counterpart");
    written
}

fn versions(written: [Result<Written, Error>; 4]) -> [Result<String, Error>; 4] {
    written.map(|it| it.map(|it| format!("{} {} {}", it.name, it.resource_version, it.uid)))
}

#[tokio::test]
async fn a_withheld_write_of_an_object_that_the_account_may_not_get_succeeds() {
    let forbidden = Error::Forbidden("configmaps \"a\" is forbidden".to_owned());
    let made_up = || Ok("a 1 00000000-0000-4000-8000-000000000000".to_owned());
    assert_eq!(versions(written(Err(forbidden)).await), [made_up(), made_up(), made_up(), made_up()]);
}

#[tokio::test]
async fn a_withheld_write_returns_the_object_as_it_is_or_fails_as_its_get_does() {
    let object = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#;
    let as_it_is = || Ok("a 7 u".to_owned());
    assert_eq!(
        versions(written(Ok(object.to_owned())).await),
        [as_it_is(), as_it_is(), as_it_is(), as_it_is()]
    );
    let absent = Error::NotFound("no such object".to_owned());
    let [create, apply, patch, replace] = written(Err(absent.clone())).await;
    assert!(create.is_ok() && apply.is_ok(), "they create it");
    assert_eq!((patch.unwrap_err(), replace.unwrap_err()), (absent.clone(), absent));
    let unavailable = || Err(Error::Unavailable("no connection".to_owned()));
    assert_eq!(
        versions(written(unavailable()).await),
        [unavailable(), unavailable(), unavailable(), unavailable()]
    );
}
