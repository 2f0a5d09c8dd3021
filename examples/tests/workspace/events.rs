//! The event tables list what the code tells its log, and what an operator has to know of it.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::Lit;

use crate::{
    source::{Source, macros},
    table::{read, rows},
};

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Every event of a crate: its level and its sentence.
fn events(package: &str) -> BTreeSet<(String, String)> {
    let mut events = BTreeSet::new();
    macros(Source::of(package).tokens, &mut |name, arguments| {
        if LEVELS.contains(&name) {
            let sentence = sentence(arguments);
            let sentence = sentence.unwrap_or_else(|| panic!("{package}: an event says nothing"));
            events.insert((name.to_uppercase(), sentence));
        }
    });
    assert!(!events.is_empty(), "{package} tells nothing");
    events
}

/// The last text among the arguments that no field is given.
fn sentence(arguments: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    let last = tokens.iter().rposition(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() != ',',
        _ => true,
    })?;
    match syn::parse_str::<Lit>(&tokens[last].to_string()) {
        Ok(Lit::Str(text)) => Some(text.value()),
        _ => None,
    }
}

fn listed(document: &str, head: &str) -> BTreeSet<(String, String)> {
    rows(&read(document), head)
        .into_iter()
        .map(|(_, cells)| (cells[0].clone(), cells[1].clone()))
        .collect()
}

#[test]
fn the_readme_of_the_source_lists_every_event_with_its_level_and_no_other() {
    let listed = listed("pubsub-source/README.md", "| level | event |");
    assert_eq!(listed, events("pubsub-source"));
}

#[test]
fn operations_says_what_to_do_about_every_warning_and_error_and_no_other() {
    let packages = [
        "connector-core",
        "gcp-wire",
        "checkpoint-store",
        "pubsub-source",
        "pubsub-sink",
        "cloudtasks-sink",
    ];
    let mut told = BTreeSet::new();
    for package in packages {
        let events = events(package).into_iter();
        told.extend(events.filter(|(level, _)| level == "WARN" || level == "ERROR"));
    }
    let listed = listed("docs/operations.md", "| level | event | what to do |");
    let missing: Vec<_> = told.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&told).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/operations.md lacks {missing:#?} and has {gone:#?}, which nothing tells"
    );
}

#[test]
fn an_event_is_found_wherever_it_is_told() {
    let text = r#"fn tell() { match x { A => tracing::warn!(n, ?m, "One {n}."), B => { info!("Two."); } } }"#;
    let mut found = Vec::new();
    macros(text.parse().unwrap(), &mut |name, arguments| {
        found.push((name.to_owned(), sentence(arguments).unwrap()));
    });
    let expected = [("warn", "One {n}."), ("info", "Two.")];
    assert_eq!(
        found,
        expected.map(|(level, text)| (level.into(), text.into()))
    );
}
