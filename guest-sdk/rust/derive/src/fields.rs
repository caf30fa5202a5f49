//! `#[derive(Fields)]`: reads `#[field("/spec/replicas")]` of each field.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Field, Ident, LitStr, Result, Token};

/// The number of pointers that one request of the host may have.
const MAX_FIELDS: usize = 64;

/// The arguments of `#[field(…)]`.
struct Argument {
    pointer: LitStr,
    /// A missing value is `Default::default()`.
    has_default: bool,
}

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "Fields can be derived for a struct only"));
    };
    let mut pointers: Vec<LitStr> = vec![];
    let mut values = vec![];
    for (idx, field) in data.fields.iter().enumerate() {
        let Argument { pointer, has_default } = argument(field)?;
        if pointers.iter().any(|other| other.value() == pointer.value()) {
            return Err(Error::new_spanned(&pointer, "two fields have this pointer"));
        }
        let read = if has_default { quote!(read_or_default) } else { quote!(read) };
        let value = quote!(::oarlock_sdk::fields::#read(texts, #idx, #pointer)?);
        values.push(match &field.ident {
            Some(name) => quote!(#name: #value),
            None => value,
        });
        pointers.push(pointer);
    }
    if pointers.is_empty() {
        return Err(Error::new_spanned(&input.ident, "a struct without fields declares nothing"));
    }
    if pointers.len() > MAX_FIELDS {
        return Err(Error::new_spanned(&input.ident, format!("at most {MAX_FIELDS} fields can be declared")));
    }
    let is_named = data.fields.iter().all(|field| field.ident.is_some());
    let built = if is_named { quote!(Self { #(#values),* }) } else { quote!(Self(#(#values),*)) };
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::oarlock_sdk::Fields for #name #type_generics #where_clause {
            const POINTERS: &'static [&'static str] = &[#(#pointers),*];

            fn parse(
                texts: &[::std::option::Option<::std::string::String>],
            ) -> ::std::result::Result<Self, ::oarlock_sdk::Error> {
                ::std::result::Result::Ok(#built)
            }
        }
    })
}

fn argument(field: &Field) -> Result<Argument> {
    let mut found = field.attrs.iter().filter(|attribute| attribute.path().is_ident("field"));
    let Some(attribute) = found.next() else {
        return Err(Error::new_spanned(field, "a JSON pointer is missing: #[field(\"/spec/replicas\")]"));
    };
    if let Some(second) = found.next() {
        return Err(Error::new_spanned(second, "a field has one pointer"));
    }
    let argument = parse(attribute)?;
    check_pointer(&argument.pointer)?;
    Ok(argument)
}

fn parse(attribute: &Attribute) -> Result<Argument> {
    attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
        let pointer: LitStr = input.parse()?;
        let mut has_default = false;
        if input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let option: Ident = input.parse()?;
            if option != "default" {
                return Err(Error::new_spanned(option, "the only option is `default`"));
            }
            has_default = true;
        }
        Ok(Argument { pointer, has_default })
    })
}

/// Checks what the host would refuse.
fn check_pointer(pointer: &LitStr) -> Result<()> {
    let text = pointer.value();
    if !text.starts_with('/') {
        return Err(Error::new_spanned(pointer, "a JSON pointer to a field begins with `/`"));
    }
    let mut escapes = text.split('~').skip(1);
    if escapes.any(|after| !after.starts_with(['0', '1'])) {
        return Err(Error::new_spanned(
            pointer,
            "in a JSON pointer, `~` is written `~0`, and `/` in a name `~1`",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn error(input: &DeriveInput) -> String {
        derive(input).unwrap_err().to_string()
    }

    #[test]
    fn the_pointers_are_in_the_order_of_the_fields() {
        let input = parse_quote! {
            struct Status {
                #[field("/status/phase")]
                phase: Option<String>,
                #[field("/metadata/labels/a~1b", default)]
                label: String,
            }
        };
        let text = derive(&input).unwrap().to_string();
        assert!(text.contains(r#"& ["/status/phase" , "/metadata/labels/a~1b"]"#), "{text}");
        assert!(text.contains("phase : :: oarlock_sdk :: fields :: read (texts , 0usize"), "{text}");
        assert!(
            text.contains("label : :: oarlock_sdk :: fields :: read_or_default (texts , 1usize"),
            "{text}"
        );
    }

    #[test]
    fn mistakes_are_explained() {
        let missing = error(&parse_quote!(
            struct A {
                a: i32,
            }
        ));
        assert!(missing.starts_with("a JSON pointer is missing"), "{missing}");
        let relative = error(&parse_quote!(
            struct A {
                #[field("spec")]
                a: i32,
            }
        ));
        assert_eq!(relative, "a JSON pointer to a field begins with `/`");
        let escape = error(&parse_quote!(
            struct A {
                #[field("/a~b")]
                a: i32,
            }
        ));
        assert!(escape.contains("`~0`"), "{escape}");
        let option = error(&parse_quote!(
            struct A {
                #[field("/a", lazy)]
                a: i32,
            }
        ));
        assert_eq!(option, "the only option is `default`");
        let twice = error(&parse_quote!(
            struct A {
                #[field("/a")]
                a: i32,
                #[field("/a")]
                b: i32,
            }
        ));
        assert_eq!(twice, "two fields have this pointer");
        let no_struct = error(&parse_quote!(
            enum A {
                B,
            }
        ));
        assert_eq!(no_struct, "Fields can be derived for a struct only");
        assert_eq!(
            error(&parse_quote!(
                struct A;
            )),
            "a struct without fields declares nothing"
        );
    }
}
