//! The tables of the document, printed from the law.

use std::{fmt::Write as _, path::Path};

use crate::{
    expected::{TABLES, Table},
    trouble::Trouble,
};

const BEGIN: &str = "<!-- printed by examples/tests/faults: begin -->\n\n";
const END: &str = "<!-- printed by examples/tests/faults: end -->\n";

fn print(table: &Table) -> String {
    let mut text = format!("### `{}`\n\n| |", table.connector);
    for (_, title) in table.columns {
        write!(text, " {title} |").unwrap();
    }
    text += "\n|---|";
    text += &"---|".repeat(table.columns.len());
    text += "\n| test |";
    for (column, _) in table.columns {
        write!(text, " `{column}` |").unwrap();
    }
    text += "\n";
    for trouble in Trouble::ALL {
        write!(text, "| {} |", trouble.name()).unwrap();
        for (column, _) in table.columns {
            let outcome = (table.outcome)(column, trouble);
            write!(text, " {} |", outcome.text()).unwrap();
        }
        text += "\n";
    }
    text += "\n";
    text
}

/// Set `UPDATE_DOCS` to have the document follow the law.
#[test]
fn the_document_shows_what_the_cells_are_held_to() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/delivery-guarantees.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the tables' beginning");
    let (shown, after) = rest.split_once(END).expect("the tables' end");
    let tables: String = TABLES.iter().map(print).collect();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let document = format!("{before}{BEGIN}{tables}{END}{after}");
        std::fs::write(path, document).unwrap();
        return;
    }
    assert_eq!(shown, tables);
}
