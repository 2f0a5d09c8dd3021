//! What each crate says of itself: to the registry, to its users, and to the compiler.

use std::collections::BTreeSet;

use cargo_metadata::Package;

use crate::{
    dependencies::metadata,
    table::{read, root, rows},
};

/// Programs that need the rest of the workspace beside them.
const AT_HOME: [&str; 4] = ["benches", "examples", "fuzz-corpus", "measure"];

fn published() -> Vec<Package> {
    let metadata = metadata();
    let packages = metadata.workspace_packages().into_iter();
    packages
        .filter(|package| !AT_HOME.contains(&package.name.as_str()))
        .cloned()
        .collect()
}

#[test]
fn every_published_crate_describes_itself_and_carries_its_licences() {
    let published = published();
    assert_eq!(published.len(), 7);
    for package in published {
        let name = package.name.as_str();
        assert_ne!(package.publish, Some(Vec::new()), "{name} is published");
        assert!(
            package.description.is_some_and(|text| text.ends_with('.')),
            "{name}"
        );
        assert_eq!(
            package.license.as_deref(),
            Some("Apache-2.0 OR MIT"),
            "{name}"
        );
        assert!(package.readme.is_some(), "{name}");
        assert!((1..=5).contains(&package.keywords.len()), "{name}");
        assert!((1..=5).contains(&package.categories.len()), "{name}");
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            assert_eq!(read(&format!("{name}/{licence}")), read(licence), "{name}");
        }
    }
}

#[test]
fn examples_and_benches_stay_at_home() {
    let metadata = metadata();
    for name in AT_HOME {
        let packages = metadata.workspace_packages();
        let package = packages
            .iter()
            .find(|package| package.name.as_str() == name);
        assert_eq!(package.unwrap().publish, Some(Vec::new()), "{name}");
    }
}

#[test]
fn every_crate_states_the_oldest_compiler_and_is_held_to_it_by_a_lint() {
    let metadata = metadata();
    let manifest = read("Cargo.toml");
    assert!(manifest.contains("\nincompatible_msrv = \"warn\"\n"));
    let stated = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap()
        .trim_matches('"');
    for package in metadata.workspace_packages() {
        let name = &package.name;
        let version = package.rust_version.as_ref().map(ToString::to_string);
        let version = version.unwrap_or_else(|| panic!("{name} states none"));
        assert!(version.starts_with(stated), "{name}: {version}");
        let lints = std::fs::read_to_string(&package.manifest_path).unwrap();
        assert!(
            lints.ends_with("[lints]\nworkspace = true\n")
                || lints.contains("[lints]\nworkspace = true\n\n"),
            "{name}"
        );
    }
    let text = read("docs/compatibility.md");
    assert!(text.contains(&format!("Rust {stated}")), "{stated}");
}

#[test]
fn every_feature_is_listed_and_no_other() {
    let mut code = BTreeSet::new();
    for package in published() {
        for feature in package.features.keys() {
            if feature != "default" {
                code.insert((package.name.to_string(), feature.clone()));
            }
        }
    }
    let text = read("docs/compatibility.md");
    let listed: BTreeSet<(String, String)> =
        rows(&text, "| crate | feature | default | what it does |")
            .into_iter()
            .map(|(_, cells)| (cells[0].replace('`', ""), cells[1].replace('`', "")))
            .collect();
    assert_eq!(listed, code);
}

/// The pages of the root, of each folder in it, and of the decisions.
fn documents() -> Vec<String> {
    let mut folders = vec![String::new(), "docs/adr/".to_owned()];
    for entry in std::fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() && name != "target" && !name.starts_with('.') {
            folders.push(format!("{name}/"));
        }
    }
    let mut documents = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                documents.push(format!("{folder}{name}"));
            }
        }
    }
    documents.sort();
    documents
}

#[test]
fn every_link_between_the_documents_leads_somewhere() {
    let mut links = 0;
    let documents = documents();
    for known in ["gcp-wire/README.md", "fuzz/README.md", "docs/adr/"] {
        let read = documents.iter().any(|document| document.contains(known));
        assert!(read, "{known} is not read");
    }
    for document in documents {
        let folder = root().join(&document).parent().unwrap().to_owned();
        let text = read(&document);
        for link in text.split("](").skip(1) {
            let target = link.split(')').next().unwrap();
            if target.contains("://") || names_code(target) {
                continue;
            }
            links += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let text = if file.is_empty() {
                text.clone()
            } else {
                let path = folder.join(file);
                assert!(path.exists(), "{document}: {target} does not exist");
                if anchor.is_empty() {
                    continue;
                }
                std::fs::read_to_string(path).unwrap()
            };
            let anchors: Vec<String> = text
                .lines()
                .filter(|line| line.starts_with('#'))
                .map(anchor_of)
                .collect();
            assert!(
                anchors.iter().any(|found| found == anchor),
                "{document}: nothing in it is {target}"
            );
        }
    }
    assert!(links > 10, "only {links} links were found");
}

/// Whether a README that is a crate's documentation links an item: rustdoc checks those.
fn names_code(target: &str) -> bool {
    let path = |letter: char| letter.is_ascii_alphanumeric() || "_:@!(".contains(letter);
    target.chars().all(path)
}

fn anchor_of(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    title
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}
