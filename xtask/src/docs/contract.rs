//! docs/reference/contract.md: the contract, from the WIT package.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use wit_parser::{
    Docs, Function, InterfaceId, Resolve, Type, TypeDef, TypeDefKind, TypeOwner, WorldId, WorldItem,
};

/// The world with every interface that a plugin can import or export.
const WHOLE: &str = "plugin";

const HEAD: &str = "\
<!-- Generated from wit/ by `cargo xtask docs`. -->

# The contract

What a plugin exports and imports, as [`wit/`](../../wit/README.md) says it. Changes between versions are
in [the changelog](../../wit/CHANGELOG.md).
";

/// Returns the page.
pub(super) fn page(wit: &Path) -> Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit)?;
    let mut page = String::from(HEAD);
    writeln!(
        page,
        "\nThis is version {}.",
        resolve.packages[package].name.version.as_ref().context("a version")?
    )?;

    page += "\n## Worlds\n\n| world | a plugin exports | |\n|---|---|---|\n";
    for world in resolve.packages[package].worlds.values() {
        let world = &resolve.worlds[*world];
        if world.exports.is_empty() {
            continue;
        }
        let exports: Vec<_> = interfaces(&resolve, world.exports.values()).collect::<Result<_>>()?;
        let names: Vec<_> = exports.iter().map(|(name, _)| format!("`{name}`")).collect();
        writeln!(page, "| `{}` | {} | {} |", world.name, names.join(", "), cell(&world.docs))?;
    }

    let whole: WorldId = resolve.select_world(&[package], Some(WHOLE))?;
    let whole = &resolve.worlds[whole];
    for (title, items) in [("exports", &whole.exports), ("may import", &whole.imports)] {
        writeln!(page, "\n## What a plugin {title}\n")?;
        for interface in interfaces(&resolve, items.values()) {
            let (name, id) = interface?;
            writeln!(
                page,
                "- [`{name}`](#interface-{name}): {}",
                first_sentence(&resolve.interfaces[id].docs)
            )?;
        }
        for interface in interfaces(&resolve, items.values()) {
            let (name, id) = interface?;
            write_interface(&mut page, &resolve, name, id)?;
        }
    }
    Ok(page)
}

/// Returns the interfaces among the items of a world.
fn interfaces<'r>(
    resolve: &'r Resolve,
    items: impl Iterator<Item = &'r WorldItem>,
) -> impl Iterator<Item = Result<(&'r str, InterfaceId)>> {
    items.map(|item| match item {
        WorldItem::Interface { id, .. } => {
            let name = resolve.interfaces[*id].name.as_deref();
            Ok((name.context("an interface of a world has a name")?, *id))
        }
        WorldItem::Function(_) | WorldItem::Type { .. } => bail!("a world has an item beside its interfaces"),
    })
}

fn write_interface(page: &mut String, resolve: &Resolve, name: &str, id: InterfaceId) -> Result<()> {
    let interface = &resolve.interfaces[id];
    write!(page, "\n### Interface {name}\n{}", paragraphs(&interface.docs))?;
    for function in interface.functions.values() {
        let declared = signature(resolve, function)?;
        write!(
            page,
            "\n#### {name}.{}\n\n```wit\n{declared}\n```\n{}",
            function.name,
            paragraphs(&function.docs)
        )?;
    }
    for (type_name, id) in &interface.types {
        let definition = &resolve.types[*id];
        // A type of another interface that this one uses.
        let is_used = matches!(definition.kind, TypeDefKind::Type(Type::Id(other)) if owner(resolve, other) != id_of(definition));
        if !is_used {
            write_type(page, resolve, type_name, definition)?;
        }
    }
    Ok(())
}

fn owner(resolve: &Resolve, id: wit_parser::TypeId) -> Option<InterfaceId> {
    id_of(&resolve.types[id])
}

fn id_of(definition: &TypeDef) -> Option<InterfaceId> {
    match definition.owner {
        TypeOwner::Interface(id) => Some(id),
        TypeOwner::World(_) | TypeOwner::None => None,
    }
}

fn write_type(page: &mut String, resolve: &Resolve, name: &str, definition: &TypeDef) -> Result<()> {
    let kind = definition.kind.as_str();
    write!(page, "\n#### {kind} {name}\n{}", paragraphs(&definition.docs))?;
    let rows: Vec<(&str, String, &Docs)> = match &definition.kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter();
            fields
                .map(|field| Ok((&*field.name, text(resolve, &field.ty)?, &field.docs)))
                .collect::<Result<_>>()?
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter();
            let carried = |ty: &Option<Type>| ty.as_ref().map_or(Ok(String::new()), |ty| text(resolve, ty));
            cases.map(|case| Ok((&*case.name, carried(&case.ty)?, &case.docs))).collect::<Result<_>>()?
        }
        TypeDefKind::Enum(cases) => {
            cases.cases.iter().map(|case| (&*case.name, String::new(), &case.docs)).collect()
        }
        _ => bail!("the page has no form for the {kind} {name}"),
    };
    let of = if kind == "record" { "field" } else { "case" };
    let has_types = rows.iter().any(|(_, ty, _)| !ty.is_empty());
    *page += &if has_types {
        format!("\n| {of} | type | |\n|---|---|---|\n")
    } else {
        format!("\n| {of} | |\n|---|---|\n")
    };
    for (name, ty, docs) in rows {
        let ty = match ty.as_str() {
            _ if !has_types => String::new(),
            "" => " |".to_owned(),
            ty => format!(" `{ty}` |"),
        };
        writeln!(page, "| `{name}` |{ty} {} |", cell(docs))?;
    }
    Ok(())
}

fn signature(resolve: &Resolve, function: &Function) -> Result<String> {
    let one = |(name, ty): (&str, &Type)| Ok(format!("{name}: {}", text(resolve, ty)?));
    let params: Vec<_> =
        function.params.iter().map(|param| one((&param.name, &param.ty))).collect::<Result<_>>()?;
    let joined = params.join(", ");
    let is_long = joined.len() > 70;
    let params = if is_long { format!("\n    {},\n", params.join(",\n    ")) } else { joined };
    let result = match &function.result {
        Some(ty) => format!(" -> {}", text(resolve, ty)?),
        None => String::new(),
    };
    Ok(format!("{}: func({params}){result}", function.name))
}

/// Returns a type as WIT writes it.
fn text(resolve: &Resolve, ty: &Type) -> Result<String> {
    Ok(match ty {
        Type::Bool => "bool".to_owned(),
        Type::U8 => "u8".to_owned(),
        Type::U16 => "u16".to_owned(),
        Type::U32 => "u32".to_owned(),
        Type::S32 => "s32".to_owned(),
        Type::F64 => "f64".to_owned(),
        Type::String => "string".to_owned(),
        Type::Id(id) => {
            let definition = &resolve.types[*id];
            if let Some(name) = &definition.name {
                return Ok(name.clone());
            }
            match &definition.kind {
                TypeDefKind::Option(inner) => format!("option<{}>", text(resolve, inner)?),
                TypeDefKind::List(inner) => format!("list<{}>", text(resolve, inner)?),
                TypeDefKind::Result(result) => {
                    let ok = result.ok.as_ref().map_or(Ok("_".to_owned()), |ty| text(resolve, ty))?;
                    match &result.err {
                        Some(error) => format!("result<{ok}, {}>", text(resolve, error)?),
                        None => format!("result<{ok}>"),
                    }
                }
                TypeDefKind::Tuple(tuple) => {
                    let types: Vec<_> =
                        tuple.types.iter().map(|ty| text(resolve, ty)).collect::<Result<_>>()?;
                    format!("tuple<{}>", types.join(", "))
                }
                other => bail!("the page has no form for a type without a name: {}", other.as_str()),
            }
        }
        other => bail!("the contract does not use {other:?}"),
    })
}

/// Returns a comment as paragraphs, after an empty line.
fn paragraphs(docs: &Docs) -> String {
    docs.contents.as_deref().map_or(String::new(), |text| format!("\n{}\n", text.trim()))
}

/// Returns a comment as the cell of a table.
fn cell(docs: &Docs) -> String {
    let text = docs.contents.as_deref().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Returns the first sentence of a comment.
fn first_sentence(docs: &Docs) -> String {
    let cell = cell(docs);
    match cell.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_becomes_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let wit = "package a:b@0.1.0;\n/// Reads. More.\ninterface cache {\n/// A kind.\nenum kind {\n/// One | two.\none, other }\n\
                   record row { name: option<string> }\n/// Finds.\nfind: func(kinds: list<kind>) -> result<row, string>;\n}\n\
                   /// Describes.\ninterface metadata { use cache.{row}; describe: func() -> row; }\n\
                   /// All.\nworld plugin { import cache; export metadata; }\n";
        std::fs::write(folder.path().join("a.wit"), wit).unwrap();
        let page = page(folder.path()).unwrap();
        let body = page.strip_prefix(HEAD).unwrap();
        assert_eq!(body, include_str!("expected-contract.md"));
    }
}
