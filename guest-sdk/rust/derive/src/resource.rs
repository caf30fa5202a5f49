//! `#[derive(Resource)]`: reads `#[resource(group = "…", version = "…", kind = "…", plural = "…")]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, LitStr, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    check_struct(input)?;
    let attribute = input.attrs.iter().find(|attribute| attribute.path().is_ident("resource"));
    let Some(attribute) = attribute else {
        return Err(Error::new_spanned(
            name,
            "the resource is missing: #[resource(group = \"example.com\", version = \"v1\", kind = \"Widget\", \
             plural = \"widgets\")]",
        ));
    };
    let [mut group, mut version, mut kind, mut plural] = [const { None::<LitStr> }; 4];
    attribute.parse_nested_meta(|meta| {
        let value = match meta.path.get_ident().map(ToString::to_string).as_deref() {
            Some("group") => &mut group,
            Some("version") => &mut version,
            Some("kind") => &mut kind,
            Some("plural") => &mut plural,
            _ => return Err(meta.error("the names are group, version, kind and plural")),
        };
        *value = Some(meta.value()?.parse()?);
        Ok(())
    })?;
    let given = |value: Option<LitStr>, name: &str| {
        value.ok_or_else(|| Error::new_spanned(attribute, format!("`{name}` is missing")))
    };
    let (version, plural) = (given(version, "version")?, given(plural, "plural")?);
    let group = group.map_or_else(|| quote!(""), |group| quote!(#group));
    let kind = kind.map_or_else(|| name.to_string(), |kind| kind.value());
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::oarlock_sdk::Resource for #name #type_generics #where_clause {
            const GROUP: &'static str = #group;
            const VERSION: &'static str = #version;
            const KIND: &'static str = #kind;
            const PLURAL: &'static str = #plural;

            fn named(&self) -> &dyn ::oarlock_sdk::resource::Named {
                &self.metadata
            }
        }
    })
}

fn check_struct(input: &DeriveInput) -> Result<()> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "Resource can be derived for a struct only"));
    };
    let is_named = |name: &str| {
        let mut names = data.fields.iter().filter_map(|field| field.ident.as_ref());
        names.find(|field| *field == name)
    };
    for written in ["api_version", "apiVersion", "kind"] {
        if let Some(field) = is_named(written) {
            return Err(Error::new_spanned(
                field,
                "remove this field: `Resource` writes apiVersion and kind",
            ));
        }
    }
    if is_named("metadata").is_none() {
        return Err(Error::new_spanned(
            &input.ident,
            "the field `metadata: oarlock_sdk::ObjectMeta` is missing",
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
    fn the_kind_is_the_name_of_the_struct_and_the_group_is_the_core_group() {
        let input = parse_quote! {
            #[resource(version = "v1", plural = "widgets")]
            struct Widget { metadata: ObjectMeta }
        };
        let text = derive(&input).unwrap().to_string();
        assert!(text.contains(r#"GROUP : & 'static str = """#), "{text}");
        assert!(text.contains(r#"KIND : & 'static str = "Widget""#), "{text}");
    }

    #[test]
    fn mistakes_are_explained() {
        let nameless = error(&parse_quote!(
            struct Widget {
                metadata: ObjectMeta,
            }
        ));
        assert!(nameless.starts_with("the resource is missing"), "{nameless}");
        let partial = error(&parse_quote!(
            #[resource(version = "v1")]
            struct Widget {
                metadata: ObjectMeta,
            }
        ));
        assert_eq!(partial, "`plural` is missing");
        let wrong = error(&parse_quote!(
            #[resource(name = "v1")]
            struct Widget {
                metadata: ObjectMeta,
            }
        ));
        assert_eq!(wrong, "the names are group, version, kind and plural");
        let bare = error(&parse_quote!(
            #[resource(version = "v1", plural = "widgets")]
            struct Widget {}
        ));
        assert!(bare.starts_with("the field `metadata"), "{bare}");
        let twice = error(&parse_quote!(
            #[resource(version = "v1", plural = "widgets")]
            struct Widget {
                metadata: ObjectMeta,
                kind: String,
            }
        ));
        assert!(twice.starts_with("remove this field"), "{twice}");
    }
}
