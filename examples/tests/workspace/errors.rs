//! `docs/errors.md` says what to do about every error.

use std::collections::BTreeSet;

use crate::{
    source::{Source, is_public, quote},
    table::{name, read, rows},
};

const PACKAGES: [&str; 6] = [
    "connector-core",
    "gcp-wire",
    "checkpoint-store",
    "pubsub-source",
    "pubsub-sink",
    "cloudtasks-sink",
];

/// Every variant of every public error, as `crate::Error::Variant`, and every error that is a
/// struct, as `crate::Error`.
fn errors() -> BTreeSet<String> {
    let mut errors = BTreeSet::new();
    for package in PACKAGES {
        let source = Source::of(package);
        for item in &source.items {
            match item {
                syn::Item::Enum(found)
                    if is_error(&source, &found.vis, &found.ident, &found.attrs) =>
                {
                    let owner = format!("{}::{}", source.name, found.ident);
                    let variants = found.variants.iter();
                    errors.extend(variants.map(|of| format!("{owner}::{}", of.ident)));
                }
                syn::Item::Struct(found)
                    if is_error(&source, &found.vis, &found.ident, &found.attrs) =>
                {
                    errors.insert(format!("{}::{}", source.name, found.ident));
                }
                _ => {}
            }
        }
    }
    errors
}

/// Whether the type is public and derives `Error`, or implements it by hand.
fn is_error(
    source: &Source,
    visibility: &syn::Visibility,
    name: &syn::Ident,
    attributes: &[syn::Attribute],
) -> bool {
    let derives = attributes.iter().any(|attribute| {
        attribute.path().is_ident("derive") && quote(attribute).to_string().contains("Error")
    });
    let implements = || {
        source.impls(&name.to_string()).any(|found| {
            let implemented = found.trait_.as_ref().map(|(_, path, _)| path);
            implemented
                .and_then(|path| path.segments.last())
                .is_some_and(|last| last.ident == "Error")
        })
    };
    is_public(visibility) && (derives || implements())
}

#[test]
fn there_is_a_remedy_for_every_error_and_no_other() {
    let code = errors();
    let text = read("docs/errors.md");
    let variants = rows(&text, "| error | what it means | remedy |");
    let structs = rows(&text, "| error of one kind | what it means | remedy |");
    let listed: BTreeSet<String> = variants
        .into_iter()
        .map(|(owner, cells)| format!("{owner}::{}", name(&cells[0])))
        .chain(structs.iter().map(|(_, cells)| name(&cells[0]).to_owned()))
        .collect();
    let missing: Vec<_> = code.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&code).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/errors.md lacks {missing:#?} and has {gone:#?}, which is no error"
    );
    // One that derives it, and one that implements it by hand.
    for known in ["pubsub_source::StoreSilent", "gcp_wire::RpcError"] {
        assert!(code.contains(known), "{known} was not found");
    }
    assert!(code.len() > 200, "only {} errors were found", code.len());
}
