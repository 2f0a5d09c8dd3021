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

/// Every variant of every public error, as `crate::Error::Variant`.
fn errors() -> BTreeSet<String> {
    let mut errors = BTreeSet::new();
    for package in PACKAGES {
        let source = Source::of(package);
        for item in &source.items {
            let syn::Item::Enum(found) = item else {
                continue;
            };
            let derives = found.attrs.iter().any(|attribute| {
                attribute.path().is_ident("derive")
                    && quote(attribute).to_string().contains("Error")
            });
            if !derives || !is_public(&found.vis) {
                continue;
            }
            for variant in &found.variants {
                errors.insert(format!(
                    "{}::{}::{}",
                    source.name, found.ident, variant.ident
                ));
            }
        }
    }
    errors
}

#[test]
fn there_is_a_remedy_for_every_error_and_no_other() {
    let code = errors();
    let text = read("docs/errors.md");
    let listed: BTreeSet<String> = rows(&text, "| error | what it means | remedy |")
        .into_iter()
        .map(|(owner, cells)| format!("{owner}::{}", name(&cells[0])))
        .collect();
    let missing: Vec<_> = code.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&code).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/errors.md lacks {missing:#?} and has {gone:#?}, which is no error"
    );
    assert!(code.len() > 200, "only {} errors were found", code.len());
}
