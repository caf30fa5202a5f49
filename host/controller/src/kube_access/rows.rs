//! Objects of the cache as rows of an answer.

use oarlock_informer::{JsonPointer, Object, indexer};
use oarlock_plugin::contract::{Content, Error, ObjectRef, Page, Projection, Row};

use super::continue_token;
use crate::fields;
use crate::plan::covers;

/// A page ends before the row with which its text would pass this many bytes, but holds one row at least.
pub(super) const PAGE_BYTES: usize = 4 << 20;

/// A projection with its pointers parsed.
pub(super) struct Columns {
    projection: Parsed,
    content: Content,
}

enum Parsed {
    Keys,
    Fields(Vec<Field>),
    Json,
}

/// A pointer; none where the declared content has nothing to point at.
type Field = Option<JsonPointer>;

// === impl Columns ===

impl Columns {
    /// Reads a projection. A reader of metadata only finds nothing outside of it, whatever is cached for others.
    pub(super) fn parse(projection: &Projection, content: Content) -> Result<Self, Error> {
        let projection = match projection {
            Projection::Keys => Parsed::Keys,
            Projection::Json => Parsed::Json,
            Projection::Fields(pointers) => {
                let parse = |text: &String| {
                    let pointer: JsonPointer =
                        text.parse().map_err(|error: oarlock_informer::json_pointer::Error| {
                            Error::Invalid(error.to_string())
                        })?;
                    Ok(covers(content, text).then_some(pointer))
                };
                Parsed::Fields(pointers.iter().map(parse).collect::<Result<_, Error>>()?)
            }
        };
        Ok(Self { projection, content })
    }

    /// Makes the row of one object.
    pub(super) fn row(&self, object: &Object) -> Result<Row, Error> {
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
            Parsed::Fields(fields) => {
                let pointers: Vec<JsonPointer> = fields.iter().flatten().cloned().collect();
                let mut values = fields::at(object, &pointers)?.into_iter();
                row.fields =
                    fields.iter().map(|field| field.as_ref().and_then(|_| values.next().flatten())).collect();
            }
            Parsed::Json => {
                row.json = Some(match self.content {
                    Content::Full => object.json().to_string(),
                    Content::Metadata => object.metadata_json(),
                });
            }
        }
        Ok(row)
    }

    /// Makes a page, cut where it gets too long.
    pub(super) fn page(&self, page: indexer::Page) -> Result<Page, Error> {
        let indexer::Page { objects, next } = page;
        let mut rows = Vec::with_capacity(objects.len());
        let mut length = 0;
        let mut last = None;
        for object in &objects {
            let row = self.row(object)?;
            length += bytes(&row);
            if length > PAGE_BYTES
                && let Some(last) = last
            {
                return Ok(Page { rows, continue_token: continue_token::after(last) });
            }
            rows.push(row);
            last = Some(object.key());
        }
        Ok(Page { rows, continue_token: next.as_ref().map(continue_token::after).unwrap_or_default() })
    }
}

fn bytes(row: &Row) -> usize {
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

    #[test]
    fn fields_come_in_the_order_asked_for() {
        let projection = fields(&["/data/padding", "/nothing", "/metadata/labels/x", "/kind"]);
        let row = Columns::parse(&projection, Content::Full).unwrap().row(&object("a", 2)).unwrap();
        assert_eq!(
            row.fields,
            [Some("\"pp\"".to_owned()), None, Some("\"y\"".to_owned()), Some("\"ConfigMap\"".to_owned())]
        );
        assert_eq!(row.object.uid, "u");
        let error = Columns::parse(&fields(&["data"]), Content::Full).err();
        assert!(matches!(error, Some(Error::Invalid(_))), "{error:?}");
    }

    #[test]
    fn a_reader_of_metadata_sees_metadata() {
        let projection = fields(&["/data/padding", "/metadata/name"]);
        let row = Columns::parse(&projection, Content::Metadata).unwrap().row(&object("a", 2)).unwrap();
        assert_eq!(row.fields, [None, Some("\"a\"".to_owned())]);
        let row = Columns::parse(&Projection::Json, Content::Metadata).unwrap().row(&object("a", 2)).unwrap();
        assert!(!row.json.unwrap().contains("padding"));
    }

    #[test]
    fn a_page_is_cut_before_it_gets_too_long_but_never_empty() {
        let columns = Columns::parse(&Projection::Json, Content::Full).unwrap();
        let objects = vec![object("a", PAGE_BYTES), object("b", 10), object("c", 10)];
        let page = columns.page(indexer::Page { objects: objects.clone(), next: None }).unwrap();
        assert_eq!(page.rows.len(), 1);
        assert_eq!(page.continue_token, "1:a/a");
        let page = columns.page(indexer::Page { objects: objects[1..].to_vec(), next: None }).unwrap();
        assert_eq!(page.rows.len(), 2);
        assert_eq!(page.continue_token, "");
    }
}
