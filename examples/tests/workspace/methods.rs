//! The matrix of faults has a column for each method that a connector calls, and for no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use proc_macro2::{TokenStream, TokenTree};
use syn::Lit;

use crate::{
    source::{Source, macros, quote},
    table::{name, read, root},
};

/// The tables of the matrix, each with the crate whose calls it is about.
const TABLES: [(&str, &str); 3] = [
    ("source", "pubsub-source"),
    ("pubsub_sink", "pubsub-sink"),
    ("tasks_sink", "cloudtasks-sink"),
];

/// The methods that `gcp-wire` has a constant for: the constants with the names of the methods.
fn constants() -> BTreeMap<String, String> {
    let mut constants = BTreeMap::new();
    macros(Source::of("gcp-wire").tokens, &mut |name, arguments| {
        if name != "methods" {
            return;
        }
        let tokens: Vec<TokenTree> = arguments.into_iter().collect();
        for window in tokens.windows(3) {
            if let [TokenTree::Ident(constant), TokenTree::Punct(is), method] = window
                && is.as_char() == '='
                && let Some(method) = text(method)
            {
                constants.insert(constant.to_string(), method);
            }
        }
    });
    assert!(constants.len() > 20, "few methods: {constants:?}");
    constants
}

fn text(token: &TokenTree) -> Option<String> {
    match syn::parse_str::<Lit>(&token.to_string()) {
        Ok(Lit::Str(text)) => Some(text.value()),
        _ => None,
    }
}

/// Calls `found` with the names of the methods that the tokens name: by their constants, by their
/// paths, or by the one function that opens pull streams.
fn methods(
    tokens: TokenStream,
    constants: &BTreeMap<String, String>,
    found: &mut impl FnMut(String),
) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => methods(group.stream(), constants, found),
            TokenTree::Ident(ident) if ident == "open_pull" => found("StreamingPull".to_owned()),
            TokenTree::Ident(ident) => {
                if let Some(method) = constants.get(&ident.to_string()) {
                    found(method.clone());
                }
            }
            token @ TokenTree::Literal(_) => {
                if let Some(path) = text(&token)
                    && path.starts_with("/google.")
                    && let Some((_, method)) = path.rsplit_once('/')
                {
                    found(method.to_owned());
                }
            }
            TokenTree::Punct(_) => {}
        }
    }
}

fn called(package: &str, constants: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut called = BTreeSet::new();
    methods(Source::of(package).tokens, constants, &mut |method| {
        called.insert(method);
    });
    called
}

/// The head of a table: the titles of its columns and, below, the tests they are.
fn head(table: &str) -> (Vec<String>, Vec<String>) {
    let document = read("docs/delivery-guarantees.md");
    let heading = format!("### `{table}`");
    let mut lines = document.lines().skip_while(|line| **line != heading);
    let mut cells = || -> Vec<String> {
        let row = lines.find(|line| line.starts_with("| ")).expect("a row");
        let cells = row.trim_matches('|').split('|').skip(1);
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    (cells(), cells())
}

/// The method of a column's title, which says after it what it is called for.
fn method(title: &str) -> String {
    let end = title.find([',', ' ']).unwrap_or(title.len());
    title.get(..end).unwrap().to_owned()
}

#[test]
fn each_method_that_a_connector_calls_has_a_column() {
    let constants = constants();
    for (table, package) in TABLES {
        let (titles, _) = head(table);
        let columns: BTreeSet<String> = titles.iter().map(|title| method(title)).collect();
        assert_eq!(columns, called(package, &constants), "{table}");
    }
}

#[test]
fn each_column_is_tests() {
    for (table, _) in TABLES {
        let path = root().join(format!("examples/tests/faults/{table}.rs"));
        let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        let mut tested = BTreeSet::new();
        macros(quote(&file), &mut |name, arguments| {
            if name == "column"
                && let Some(column) = arguments.into_iter().next()
            {
                tested.insert(column.to_string());
            }
        });
        let (_, tests) = head(table);
        let columns: BTreeSet<String> = tests.iter().map(|cell| name(cell).to_owned()).collect();
        assert_eq!(columns, tested, "{table}");
    }
}

#[test]
fn a_call_is_found_however_its_method_is_named() {
    let constants = constants();
    let code = r#"fn call() { ask(&method::SEEK); { open_pull(first) } new("/google.pubsub.v1.Publisher/Publish") }"#;
    let mut found = Vec::new();
    methods(code.parse().unwrap(), &constants, &mut |method| {
        found.push(method);
    });
    assert_eq!(found, ["Seek", "StreamingPull", "Publish"]);
}
