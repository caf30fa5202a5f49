//! The table of built-in types, parsed once from text.
//!
//! The text is generated (see its first line). A line without indentation starts a type, the indented lines
//! are its fields.

use super::{Empty, ListKind, Merge, Node, ProtoForm, Shape, Struct, StructRef};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("builtin.txt")));

struct Table {
    structs: Vec<Struct>,
    by_name: HashMap<&'static str, usize>,
    /// By `group/version/kind`.
    by_kind: HashMap<&'static str, usize>,
}

pub(super) fn kind(group: &str, version: &str, kind: &str) -> Option<usize> {
    TABLE.by_kind.get(format!("{group}/{version}/{kind}").as_str()).copied()
}

pub(super) fn named(name: &str) -> Option<usize> {
    TABLE.by_name.get(name).copied()
}

pub(super) fn at(index: usize) -> &'static Struct {
    &TABLE.structs[index]
}

// === impl Table ===

impl Table {
    fn parse(text: &'static str) -> Self {
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let mut by_name = HashMap::new();
        let mut by_kind = HashMap::new();
        let mut atomic = HashSet::new();
        for header in lines().filter(|line| !line.starts_with(' ')) {
            let mut words = header.split(' ');
            let name = words.next().unwrap_or_default();
            let index = by_name.len();
            by_name.insert(name, index);
            for word in words {
                if let Some(kind) = word.strip_prefix("kind=") {
                    by_kind.insert(kind, index);
                } else if word == "atomic" {
                    atomic.insert(index);
                }
            }
        }
        let names = Names { by_name: &by_name, atomic: &atomic };
        let mut structs: Vec<Struct> = Vec::with_capacity(by_name.len());
        for line in lines() {
            match line.strip_prefix("  ") {
                None => structs.push(Struct {
                    name: line.split(' ').next().unwrap_or_default().to_owned(),
                    fields: BTreeMap::new(),
                    open: false,
                }),
                Some(field) => {
                    let (name, rest) = field.split_once(' ').unwrap_or((field, "any"));
                    if let Some(open) = structs.last_mut() {
                        open.fields.insert(name.to_owned(), names.node(rest));
                    }
                }
            }
        }
        Self { structs, by_name, by_kind }
    }
}

// === impl Names ===

/// The names of all types, which are known before any fields are parsed.
struct Names<'a> {
    by_name: &'a HashMap<&'static str, usize>,
    atomic: &'a HashSet<usize>,
}

impl Names<'_> {
    /// Parses `[core.v1.Container] required list=map(name) patch=merge key=name`.
    fn node(&self, text: &str) -> Node {
        let mut words = text.split(' ');
        let shape = words.next().unwrap_or("any");
        let form = match shape {
            "schema-or-bool" => ProtoForm::SchemaOrBool,
            "schema-or-list" => ProtoForm::SchemaOrList,
            "schema-or-strings" => ProtoForm::SchemaOrStrings,
            _ => ProtoForm::OfShape,
        };
        let mut node = Node { shape: self.shape(shape), form, ..Node::default() };
        if let Shape::Struct(StructRef::Builtin(index)) = &node.shape {
            node.atomic = self.atomic.contains(index);
        }
        let mut strategy = "";
        let mut key = None;
        for word in words {
            match word.split_once('=') {
                None if word == "required" => node.required = true,
                None if word == "atomic" => node.atomic = true,
                None if word == "omit" => node.empty = Empty::Omitted,
                None if word == "always" => node.empty = Empty::Written,
                None => {}
                Some(("list", "set")) => node.list = ListKind::Set,
                Some(("list", map)) => {
                    let keys = map.trim_start_matches("map(").trim_end_matches(')');
                    node.list = ListKind::Map(keys.split(',').map(str::to_owned).collect());
                }
                Some(("patch", value)) => strategy = value,
                Some(("key", value)) => key = Some(value.to_owned()),
                Some(("pb", path)) => node.proto = path.split('.').filter_map(|n| n.parse().ok()).collect(),
                Some(("default", value)) => node.default = serde_json::from_str(value).ok(),
                Some(_) => {}
            }
        }
        if !strategy.is_empty() {
            node.merge = Some(Merge {
                merge: strategy.split(',').any(|s| s == "merge"),
                retain_keys: strategy.split(',').any(|s| s == "retainKeys"),
                key,
            });
        }
        node
    }

    fn shape(&self, text: &str) -> Shape {
        let inner = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(item) = inner('[', ']') {
            return Shape::List(Box::new(self.node(item)));
        }
        if let Some(value) = inner('{', '}') {
            return Shape::Map(Box::new(self.node(value)));
        }
        match text {
            "string" => Shape::String,
            "bytes" => Shape::Bytes,
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "boolean" => Shape::Boolean,
            "int-or-string" => Shape::IntOrString,
            "quantity" => Shape::Quantity,
            "time" => Shape::Time,
            "micro-time" => Shape::MicroTime,
            name => match self.by_name.get(name) {
                Some(index) => Shape::Struct(StructRef::Builtin(*index)),
                None => Shape::Any,
            },
        }
    }
}
