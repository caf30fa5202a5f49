//! A Swagger document in Protobuf, as gnostic defines it (`openapi.v2`).

mod messages;

use messages::{
    AdditionalProperties, Any, BodyParameter, Document, Info, Items, NamedAny, NamedPathItem, NamedResponse,
    NamedSchema, NonBodyParameter, OneParameter, Operation, Parameter, ParametersItem, PathItem, Paths,
    QueryParameter, Response, ResponseValue, Responses, Schema, SchemaItem, SchemaOrBool, Schemas, TypeItem,
};
use prost::Message;
use serde_json::{Map, Value};

/// Encodes a document of `super::document`.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    Document::of(document).encode_to_vec()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn fields<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value[name].as_object().into_iter().flatten()
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

fn extensions(value: &Value) -> Vec<NamedAny> {
    let extensions = value.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-"));
    extensions.map(|(name, value)| NamedAny { name: name.clone(), value: Some(Any::of(value)) }).collect()
}

// === impl Document ===

impl Document {
    fn of(value: &Value) -> Self {
        let info = &value["info"];
        let path = fields(value, "paths")
            .map(|(name, value)| NamedPathItem { name: name.clone(), value: Some(PathItem::of(value)) });
        Self {
            swagger: text(value, "swagger"),
            info: Some(Info { title: text(info, "title"), version: text(info, "version") }),
            paths: Some(Paths { path: path.collect() }),
            definitions: Some(Schemas::of(fields(value, "definitions"))),
        }
    }
}

// === impl PathItem ===

impl PathItem {
    fn of(value: &Value) -> Self {
        let operation = |name: &str| value.get(name).map(Operation::of);
        Self {
            get: operation("get"),
            put: operation("put"),
            post: operation("post"),
            delete: operation("delete"),
            patch: operation("patch"),
        }
    }
}

// === impl Operation ===

impl Operation {
    fn of(value: &Value) -> Self {
        let responses = fields(value, "responses").map(|(code, response)| {
            let schema = response.get("schema").map(|schema| SchemaItem { schema: Some(Schema::of(schema)) });
            let response = Response { description: text(response, "description"), schema };
            NamedResponse { name: code.clone(), value: Some(ResponseValue { response: Some(response) }) }
        });
        Self {
            consumes: items(value, "consumes").filter_map(Value::as_str).map(str::to_owned).collect(),
            parameters: items(value, "parameters").map(ParametersItem::of).collect(),
            responses: Some(Responses { response_code: responses.collect() }),
            vendor_extension: extensions(value),
        }
    }
}

// === impl ParametersItem ===

impl ParametersItem {
    fn of(value: &Value) -> Self {
        let (name, location) = (text(value, "name"), text(value, "in"));
        let one = if location == "body" {
            OneParameter::Body(Box::new(BodyParameter {
                name,
                location,
                required: value["required"] == true,
                schema: value.get("schema").map(Schema::of),
            }))
        } else {
            let query = QueryParameter { location, name, of_type: text(value, "type") };
            OneParameter::Other(NonBodyParameter { query: Some(query) })
        };
        Self { parameter: Some(Parameter { one: Some(one) }) }
    }
}

// === impl Schemas ===

impl Schemas {
    fn of<'a>(named: impl Iterator<Item = (&'a String, &'a Value)>) -> Self {
        let one = |(name, value): (&String, &Value)| NamedSchema {
            name: name.clone(),
            value: Some(Schema::of(value)),
        };
        Self { additional_properties: named.map(one).collect() }
    }
}

// === impl Schema ===

impl Schema {
    fn of(value: &Value) -> Self {
        let number = |name: &str| value[name].as_f64().unwrap_or_default();
        let count = |name: &str| value[name].as_i64().unwrap_or_default();
        let flag = |name: &str| value[name] == true;
        let additional_properties = value.get("additionalProperties").map(|additional| match additional {
            Value::Bool(flag) => SchemaOrBool::Boolean(*flag),
            schema => SchemaOrBool::Schema(Box::new(Self::of(schema))),
        });
        Self {
            reference: text(value, "$ref"),
            format: text(value, "format"),
            title: text(value, "title"),
            description: text(value, "description"),
            default: value.get("default").map(Any::of),
            multiple_of: number("multipleOf"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            pattern: text(value, "pattern"),
            max_items: count("maxItems"),
            min_items: count("minItems"),
            unique_items: flag("uniqueItems"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            required: items(value, "required").filter_map(Value::as_str).map(str::to_owned).collect(),
            allowed: items(value, "enum").map(Any::of).collect(),
            additional_properties: additional_properties
                .map(|one| Box::new(AdditionalProperties { one: Some(one) })),
            of_type: value["type"].as_str().map(|of_type| TypeItem { value: vec![of_type.to_owned()] }),
            items: value.get("items").map(|items| Items { schema: vec![Self::of(items)] }),
            properties: value["properties"].as_object().map(|named: &Map<_, _>| Schemas::of(named.iter())),
            vendor_extension: extensions(value),
        }
    }
}

// === impl Any ===

impl Any {
    fn of(value: &Value) -> Self {
        Self { yaml: format!("{value}\n") }
    }
}
