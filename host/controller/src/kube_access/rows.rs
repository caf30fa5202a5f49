//! Converts objects of the cache to rows of a page.

use oarlock_json::{JsonPointer, PointerSet};

use oarlock_informer::Object;
use oarlock_plugin::contract::{Content, Error, ObjectRef, Projection, Row};

use super::slices::Slices;
use crate::fields;
use crate::plan::covers;

/// A projection with its pointers parsed.
pub(super) struct Columns {
    projection: Parsed,
    content: Content,
}

enum Parsed {
    Keys,
    Fields {
        pointers: PointerSet,
        /// For each requested field its index among the pointers; none if the declared content cannot contain
        /// it.
        places: Vec<Option<usize>>,
    },
    Json,
}

// === impl Columns ===

impl Columns {
    /// Parses a projection. A reader of metadata gets only metadata, even if the cache has full objects for
    /// others.
    pub(super) fn parse(projection: &Projection, content: Content) -> Result<Self, Error> {
        let projection = match projection {
            Projection::Keys => Parsed::Keys,
            Projection::Json => Parsed::Json,
            Projection::Fields(pointers) => {
                let mut parsed = Vec::with_capacity(pointers.len());
                let mut places = Vec::with_capacity(pointers.len());
                for text in pointers {
                    let pointer: JsonPointer = text
                        .parse()
                        .map_err(|error: oarlock_json::PointerError| Error::Invalid(error.to_string()))?;
                    places.push(covers(content, text).then_some(parsed.len()));
                    if covers(content, text) {
                        parsed.push(pointer);
                    }
                }
                Parsed::Fields { pointers: PointerSet::new(&parsed), places }
            }
        };
        Ok(Self { projection, content })
    }

    /// Returns the length of the text that is read for an object's row.
    pub(super) fn text_of(&self, object: &Object) -> usize {
        match &self.projection {
            Parsed::Keys => 0,
            Parsed::Fields { pointers, .. } if pointers.is_empty() => 0,
            Parsed::Fields { .. } | Parsed::Json => object.json_length(),
        }
    }

    /// Returns the row of one object.
    pub(super) async fn row(&self, object: &Object, slices: &mut Slices) -> Result<Row, Error> {
        slices.reads(self.text_of(object));
        let key = object.key();
        let mut row = Row {
            object: ObjectRef {
                namespace: key.namespace().to_owned(),
                name: key.name().to_owned(),
                uid: object.uid().to_owned(),
                resource_version: object.resource_version().to_owned(),
            },
            fields: Vec::new(),
            json: None,
        };
        match &self.projection {
            Parsed::Keys => {}
            Parsed::Fields { pointers, places } => {
                let mut left = self.text_of(object);
                let mut finding = object.finding(pointers);
                loop {
                    let work = slices.left();
                    if finding.advance(work) {
                        slices.worked(work.min(left)).await;
                        break;
                    }
                    slices.worked(work).await;
                    left = left.saturating_sub(work);
                }
                let found = finding.finish();
                if pointers.len() > 1 && found.n_bytes() > fields::MOST_BYTES {
                    return Err(fields::too_long(pointers.len(), found.n_bytes()));
                }
                let value = |place: &Option<usize>| found.get((*place)?).map(str::to_owned);
                row.fields = places.iter().map(value).collect();
            }
            Parsed::Json => {
                row.json = Some(match self.content {
                    Content::Full => object.json().to_string(),
                    Content::Metadata => object.metadata_json(),
                });
                slices.worked(self.text_of(object)).await;
            }
        }
        Ok(row)
    }
}

/// Returns the bytes of text in a row.
pub(super) fn bytes(row: &Row) -> usize {
    let ObjectRef { namespace, name, uid, resource_version } = &row.object;
    let fields: usize = row.fields.iter().flatten().map(String::len).sum();
    let json = row.json.as_ref().map_or(0, String::len);
    namespace.len() + name.len() + uid.len() + resource_version.len() + fields + json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, padding: usize) -> Object {
        let json = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "a", "name": name, "uid": "u", "resourceVersion": "7", "labels": {"x": "y"}},
            "data": {"padding": "p".repeat(padding)},
        });
        Object::parse(json.to_string().as_bytes(), None).unwrap()
    }

    fn fields(pointers: &[&str]) -> Projection {
        Projection::Fields(pointers.iter().map(|&it| it.to_owned()).collect())
    }

    async fn row(projection: &Projection, content: Content, object: &Object) -> Row {
        Columns::parse(projection, content).unwrap().row(object, &mut Slices::begin()).await.unwrap()
    }

    #[tokio::test]
    async fn fields_are_returned_in_the_requested_order() {
        let projection = fields(&["/data/padding", "/nothing", "/metadata/labels/x", "/kind"]);
        let row = row(&projection, Content::Full, &object("a", 2)).await;
        assert_eq!(
            row.fields,
            [Some("\"pp\"".to_owned()), None, Some("\"y\"".to_owned()), Some("\"ConfigMap\"".to_owned())]
        );
        assert_eq!(row.object.uid, "u");
        let error = Columns::parse(&fields(&["data"]), Content::Full).err();
        assert!(matches!(error, Some(Error::Invalid(_))), "{error:?}");
    }

    #[tokio::test]
    async fn a_reader_of_metadata_gets_only_metadata() {
        let projection = fields(&["/data/padding", "/metadata/name"]);
        let found = row(&projection, Content::Metadata, &object("a", 2)).await;
        assert_eq!(found.fields, [None, Some("\"a\"".to_owned())]);
        let found = row(&Projection::Json, Content::Metadata, &object("a", 2)).await;
        assert!(!found.json.unwrap().contains("padding"));
    }

    #[tokio::test]
    async fn fields_beyond_the_limit_are_an_error_and_not_copied() {
        let object = object("a", 1 << 20);
        let whole = fields(&["", "/data", "/data/padding", "", ""]);
        let columns = Columns::parse(&whole, Content::Full).unwrap();
        let refused = columns.row(&object, &mut Slices::begin()).await;
        assert!(matches!(refused, Err(Error::LimitExceeded(_))), "{refused:?}");
        assert!(row(&fields(&["", "/data"]), Content::Full, &object).await.fields[1].is_some());
    }
}
