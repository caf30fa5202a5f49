//! The derive macros of `oarlock-sdk`, which documents them. Plugins depend on `oarlock-sdk` only.

#![forbid(unsafe_code)]

mod fields;
mod resource;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `Fields` for a struct whose fields carry JSON pointers.
#[proc_macro_derive(Fields, attributes(field))]
pub fn fields(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    fields::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `Resource` for the struct of a custom resource.
#[proc_macro_derive(Resource, attributes(resource))]
pub fn resource(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    resource::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
