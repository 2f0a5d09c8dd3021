//! `docs/migration.md` leads to options that exist.

use std::collections::BTreeSet;

use crate::{options::in_code, table::read};

/// What the page names beside options: calls of a connector or of the host's loop.
const CALLS: [&str; 18] = [
    "builder",
    "builder_of",
    "close",
    "commit",
    "decode",
    "discard_quarantined",
    "expired",
    "feed",
    "flush",
    "open",
    "pause",
    "prepare",
    "publish_quarantined",
    "refused",
    "resume",
    "settle",
    "submit",
    "with_metadata",
];

/// The names in code marks of the last cells of a page's tables that could be options.
fn named_in_tables(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in read(page).lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        // What the other client calls its own settings stands in the first cells.
        let ours = cells.iter().skip(if cells.len() > 2 { 2 } else { 1 });
        for mark in ours.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
            let name: String = mark
                .chars()
                .take_while(|letter| letter.is_ascii_lowercase() || *letter == '_')
                .collect();
            let rest = mark.strip_prefix(&name).unwrap_or(mark);
            let whole = rest.is_empty() || rest.starts_with('(');
            if whole && !name.is_empty() {
                names.insert(name);
            }
        }
    }
    names
}

#[test]
fn what_the_migration_page_names_exists() {
    let options: BTreeSet<String> = in_code().into_keys().map(|(_, name)| name).collect();
    let named = named_in_tables("docs/migration.md");
    let unknown: Vec<_> = named
        .iter()
        .filter(|name| !options.contains(*name) && !CALLS.contains(&&***name))
        .collect();
    assert!(
        unknown.is_empty(),
        "docs/migration.md names {unknown:?}, which is no option"
    );
    assert!(named.len() > 40, "only {} options were named", named.len());
}
