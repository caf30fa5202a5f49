//! A Swagger document in Protobuf: the messages of gnostic's `openapi.v2` that a document of ours has something for.

use prost::{Message, Oneof};
use serde_json::{Map, Value};

/// Encodes a document of `super::document`.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    Document::of(document).encode_to_vec()
}

#[derive(Clone, PartialEq, Message)]
struct Document {
    #[prost(string, tag = "1")]
    swagger: String,
    #[prost(message, optional, tag = "2")]
    info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    definitions: Option<Schemas>,
}

#[derive(Clone, PartialEq, Message)]
struct Info {
    #[prost(string, tag = "1")]
    title: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Paths {
    #[prost(message, repeated, tag = "2")]
    path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedPathItem {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct PathItem {
    #[prost(message, optional, tag = "2")]
    get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    delete: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    patch: Option<Operation>,
}

#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(string, repeated, tag = "7")]
    consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    responses: Option<Responses>,
    #[prost(message, repeated, tag = "13")]
    vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    parameter: Option<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
struct Parameter {
    #[prost(oneof = "OneParameter", tags = "1, 2")]
    one: Option<OneParameter>,
}

#[derive(Clone, PartialEq, Oneof)]
enum OneParameter {
    #[prost(message, tag = "1")]
    Body(Box<BodyParameter>),
    #[prost(message, tag = "2")]
    Other(NonBodyParameter),
}

#[derive(Clone, PartialEq, Message)]
struct BodyParameter {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    location: String,
    #[prost(bool, tag = "4")]
    required: bool,
    #[prost(message, optional, tag = "5")]
    schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct NonBodyParameter {
    #[prost(message, optional, tag = "3")]
    query: Option<QueryParameter>,
}

#[derive(Clone, PartialEq, Message)]
struct QueryParameter {
    #[prost(string, tag = "2")]
    location: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "6")]
    of_type: String,
}

#[derive(Clone, PartialEq, Message)]
struct Responses {
    #[prost(message, repeated, tag = "1")]
    response_code: Vec<NamedResponse>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedResponse {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    response: Option<Response>,
}

#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(string, tag = "1")]
    description: String,
    #[prost(message, optional, tag = "2")]
    schema: Option<SchemaItem>,
}

#[derive(Clone, PartialEq, Message)]
struct SchemaItem {
    #[prost(message, optional, tag = "1")]
    schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct Schema {
    #[prost(string, tag = "1")]
    reference: String,
    #[prost(string, tag = "2")]
    format: String,
    #[prost(string, tag = "3")]
    title: String,
    #[prost(string, tag = "4")]
    description: String,
    #[prost(message, optional, tag = "5")]
    default: Option<Any>,
    #[prost(double, tag = "6")]
    multiple_of: f64,
    #[prost(double, tag = "7")]
    maximum: f64,
    #[prost(bool, tag = "8")]
    exclusive_maximum: bool,
    #[prost(double, tag = "9")]
    minimum: f64,
    #[prost(bool, tag = "10")]
    exclusive_minimum: bool,
    #[prost(int64, tag = "11")]
    max_length: i64,
    #[prost(int64, tag = "12")]
    min_length: i64,
    #[prost(string, tag = "13")]
    pattern: String,
    #[prost(int64, tag = "14")]
    max_items: i64,
    #[prost(int64, tag = "15")]
    min_items: i64,
    #[prost(bool, tag = "16")]
    unique_items: bool,
    #[prost(int64, tag = "17")]
    max_properties: i64,
    #[prost(int64, tag = "18")]
    min_properties: i64,
    #[prost(string, repeated, tag = "19")]
    required: Vec<String>,
    #[prost(message, repeated, tag = "20")]
    allowed: Vec<Any>,
    #[prost(message, optional, boxed, tag = "21")]
    additional_properties: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    of_type: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    items: Option<Items>,
    #[prost(message, optional, tag = "25")]
    properties: Option<Schemas>,
    #[prost(message, repeated, tag = "31")]
    vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct AdditionalProperties {
    #[prost(oneof = "SchemaOrBool", tags = "1, 2")]
    one: Option<SchemaOrBool>,
}

#[derive(Clone, PartialEq, Oneof)]
enum SchemaOrBool {
    #[prost(message, tag = "1")]
    Schema(Box<Schema>),
    #[prost(bool, tag = "2")]
    Boolean(bool),
}

#[derive(Clone, PartialEq, Message)]
struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Items {
    #[prost(message, repeated, tag = "1")]
    schema: Vec<Schema>,
}

/// gnostic's `Definitions` and `Properties`, which have one form.
#[derive(Clone, PartialEq, Message)]
struct Schemas {
    #[prost(message, repeated, tag = "1")]
    additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedSchema {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedAny {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Any>,
}

/// Any value, as YAML, of which JSON is a part.
#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "2")]
    yaml: String,
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
