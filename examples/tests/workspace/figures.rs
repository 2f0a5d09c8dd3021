//! `docs/operations.md` lists every metric with its kind.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::Lit;

use crate::{
    source::{Source, macros},
    table::{name, read, rows},
};

/// A metric's kind, where it can be read beside its name.
type Kind = Option<String>;

fn literals(tokens: TokenStream, found: &mut impl FnMut(String)) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => literals(group.stream(), found),
            TokenTree::Literal(literal) => {
                if let Ok(Lit::Str(text)) = syn::parse_str::<Lit>(&literal.to_string()) {
                    found(text.value());
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// The fields of a public struct, each with the first word of what is said of it.
fn fields(source: &Source, owner: &str) -> Vec<(String, Kind)> {
    let found = source.items.iter().find_map(|item| match item {
        syn::Item::Struct(found) if found.ident == owner => Some(found),
        _ => None,
    });
    let found = found.unwrap_or_else(|| panic!("{} has no {owner}", source.name));
    let kind = |field: &syn::Field| {
        let said = field.attrs.first().map(crate::source::quote);
        let said = said.map(|tokens| tokens.to_string()).unwrap_or_default();
        let kinds = [("Counter:", "counter"), ("Gauge:", "gauge")];
        let kind = kinds.iter().find(|(word, _)| said.contains(word));
        kind.map(|(_, kind)| (*kind).to_owned())
    };
    found
        .fields
        .iter()
        .map(|field| (field.ident.as_ref().unwrap().to_string(), kind(field)))
        .collect()
}

/// What is declared in a `stats!` block: `counter name,` or `name: Counter,`.
fn declared(source: &Source) -> Vec<(String, Kind)> {
    let mut declared = Vec::new();
    macros(source.tokens.clone(), &mut |macro_name, arguments| {
        if macro_name != "stats" {
            return;
        }
        let words: Vec<String> = arguments
            .into_iter()
            .filter_map(|token| match token {
                TokenTree::Ident(word) => Some(word.to_string()),
                TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
            })
            .collect();
        for pair in words.chunks(2) {
            let is_kind = |word: &str| ["counter", "gauge"].contains(&&*word.to_lowercase());
            let (kind, metric) = match pair {
                [first, second] if is_kind(first) => (first, second),
                [first, second] if is_kind(second) => (second, first),
                _ => panic!("{}: {pair:?} declares no number", source.name),
            };
            declared.push((metric.clone(), Some(kind.to_lowercase())));
        }
    });
    assert!(!declared.is_empty(), "{} declares no number", source.name);
    declared
}

fn in_code() -> BTreeMap<String, Kind> {
    let mut metrics = BTreeMap::new();
    let [source, sink, tasks, wire] = [
        "pubsub-source",
        "pubsub-sink",
        "cloudtasks-sink",
        "gcp-wire",
    ]
    .map(Source::of);
    let mut add = |prefix: &str, numbers: Vec<(String, Kind)>| {
        for (number, kind) in numbers {
            metrics.insert(format!("{prefix}{number}"), kind);
        }
    };
    add("pubsub_source_", fields(&source, "Stats"));
    add("pubsub_sink_", declared(&sink));
    add("cloudtasks_sink_", declared(&tasks));
    add(
        "cloudtasks_sink_destination_",
        fields(&tasks, "DestinationStats"),
    );
    // Those with labels of their own are written out where they are published.
    for crate_ in [source, sink, tasks, wire] {
        let prefix = format!("{}_", crate_.name);
        literals(crate_.tokens, &mut |text| {
            let whole = text.starts_with(&prefix) && !text.ends_with('_');
            if whole
                && text
                    .chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter == '_')
            {
                metrics.entry(text).or_insert(None);
            }
        });
    }
    metrics
}

#[test]
fn operations_lists_every_metric_with_its_kind_and_no_other() {
    let listed: BTreeMap<String, String> = rows(
        &read("docs/operations.md"),
        "| metric | kind | what it says |",
    )
    .into_iter()
    .map(|(_, cells)| (name(&cells[0]).to_owned(), cells[1].clone()))
    .collect();
    let code = in_code();
    let missing: Vec<_> = code
        .keys()
        .filter(|name| !listed.contains_key(*name))
        .collect();
    let gone: Vec<_> = listed
        .keys()
        .filter(|name| !code.contains_key(*name))
        .collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/operations.md lacks {missing:#?} and has {gone:#?}, which is published nowhere"
    );
    for (name, kind) in &code {
        let written = &listed[name];
        assert!(
            ["counter", "gauge", "histogram"].contains(&&**written),
            "{name}"
        );
        if let Some(kind) = kind {
            assert_eq!(written, kind, "{name}");
        }
    }
    assert!(code.len() > 90, "only {} metrics were found", code.len());

    // What its text says of them, among the alerts for example.
    let text = read("docs/operations.md");
    for word in text.split('`').skip(1).step_by(2) {
        let prefixes = [
            "pubsub_source_",
            "pubsub_sink_",
            "cloudtasks_sink_",
            "gcp_wire_",
        ];
        let metric = prefixes.iter().any(|prefix| word.starts_with(prefix));
        if metric && !word.ends_with("_*") && !word.contains("::") {
            assert!(code.contains_key(word), "nothing publishes {word}");
        }
    }
}
