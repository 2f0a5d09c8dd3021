//! The README's lists are those of the code.

use crate::Stats;
use crate::stats::Kind;

const README: &str = include_str!("../README.md");

fn rows(heading: &str) -> Vec<Vec<String>> {
    let table = README.split(heading).nth(1).unwrap();
    table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect()
}

#[test]
fn the_readme_lists_every_number_and_its_kind() {
    let listed: Vec<(String, String)> = rows("| name | kind | what |")
        .into_iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), row[1].clone()))
        .collect();
    let known: Vec<(String, String)> = Stats::default()
        .entries()
        .map(|(name, kind, _)| {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            (name.to_owned(), kind.to_owned())
        })
        .collect();
    assert_eq!(listed, known);
}

#[test]
fn the_readme_lists_every_event_and_its_level() {
    let mut listed: Vec<(String, String)> = rows("| level | event |")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let mut known = Vec::new();
    for call in include_str!("event.rs").split("tracing::").skip(1) {
        let Some((level, rest)) = call.split_once("!(") else {
            continue;
        };
        if !["error", "warn", "info", "debug", "trace"].contains(&level) {
            continue;
        }
        let arguments = rest.split(");").next().unwrap();
        let sentence = arguments.rsplit('"').nth(1).unwrap();
        assert!(sentence.ends_with('.'), "{sentence}");
        known.push((level.to_uppercase(), sentence.to_owned()));
    }
    listed.sort();
    known.sort();
    assert_eq!(listed, known);
}

#[test]
fn the_readme_lists_every_span() {
    let listed: Vec<String> = rows("| span | around |")
        .into_iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    let known: Vec<String> = include_str!("event.rs")
        .split("tracing::trace_span!(")
        .skip(1)
        .map(|call| call.split('"').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(listed, known);
}

#[test]
fn no_other_file_writes_to_the_log() {
    fn visit(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, found);
            } else if !path.ends_with("event.rs") && !path.ends_with("readme_tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                if text.contains("tracing::") {
                    found.push(path.display().to_string());
                }
            }
        }
    }
    let mut found = Vec::new();
    visit(
        &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    assert_eq!(found, Vec::<String>::new());
}
