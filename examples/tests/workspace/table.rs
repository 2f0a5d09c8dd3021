//! The tables of a Markdown document.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

pub(crate) fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// The rows under every table head `head`, each with the nearest heading above it. Code marks are
/// taken off the heading.
pub(crate) fn rows(text: &str, head: &str) -> Vec<(String, Vec<String>)> {
    let mut heading = String::new();
    let mut rows = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix('#') {
            title
                .trim_start_matches('#')
                .trim()
                .replace('`', "")
                .clone_into(&mut heading);
        }
        if line != head {
            continue;
        }
        for line in lines.by_ref().skip(1) {
            let Some(line) = line.strip_prefix('|') else {
                break;
            };
            let cells: Vec<String> = line
                .trim_end_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect();
            assert_eq!(
                cells.len(),
                head.matches('|').count() - 1,
                "a row has the cells of its table: {line}"
            );
            rows.push((heading.clone(), cells));
        }
    }
    assert!(!rows.is_empty(), "there is no table {head}");
    rows
}

/// The one name that a cell holds, in code marks.
pub(crate) fn name(cell: &str) -> &str {
    cell.strip_prefix('`')
        .and_then(|cell| cell.strip_suffix('`'))
        .unwrap_or_else(|| panic!("{cell} is no name in code marks"))
}
