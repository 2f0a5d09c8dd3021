//! What must hold of the workspace as a whole: who may depend on whom, and under which licences.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

const CONNECTORS: [&str; 3] = ["pubsub-source", "pubsub-sink", "cloudtasks-sink"];

/// The licences a dependency may be taken under.
const LICENCES: [&str; 9] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "MPL-2.0",
    "Unicode-DFS-2016",
];

/// Data, not code: the certificate list of `rustls-platform-verifier`, compiled in on platforms
/// without a certificate store.
const DATA: [(&str, &str); 1] = [("webpki-root-certs", "CDLA-Permissive-2.0")];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .other_options(vec!["--locked".to_owned(), "--all-features".to_owned()])
        .exec()
        .expect("cargo metadata answers")
}

/// Everything `package` is built from, dev-dependencies left out.
fn closure(metadata: &Metadata, package: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let nodes: BTreeMap<_, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let name_of: BTreeMap<_, _> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package.name.to_string()))
        .collect();
    let root = metadata
        .workspace_packages()
        .into_iter()
        .find(|candidate| candidate.name.as_str() == package)
        .expect("a member of the workspace");
    let mut seen = BTreeSet::new();
    let mut todo = vec![&root.id];
    while let Some(id) = todo.pop() {
        for dependency in &nodes[id].deps {
            let built = dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind == DependencyKind::Normal);
            if built && seen.insert(name_of[&dependency.pkg].clone()) {
                todo.push(&dependency.pkg);
            }
        }
    }
    seen
}

#[test]
fn no_connector_depends_on_another() {
    let metadata = metadata();
    for connector in CONNECTORS {
        let built_from = closure(&metadata, connector);
        assert!(
            built_from.contains("connector-core"),
            "{connector} speaks the contract"
        );
        for other in CONNECTORS {
            assert!(
                !built_from.contains(other),
                "{connector} must not depend on {other}"
            );
        }
        assert!(
            !built_from.contains("gcp-emulator"),
            "{connector} ships without the emulator"
        );
    }
}

#[test]
fn the_contract_needs_no_runtime_and_no_network() {
    let built_from = closure(&metadata(), "connector-core");
    for heavy in ["tokio", "tonic", "hyper", "prost", "rustls"] {
        assert!(
            !built_from.contains(heavy),
            "connector-core must not depend on {heavy}"
        );
    }
}

#[test]
fn the_emulator_does_not_share_code_with_what_it_tests() {
    let built_from = closure(&metadata(), "gcp-emulator");
    for ours in CONNECTORS.into_iter().chain(["gcp-wire", "connector-core"]) {
        assert!(
            !built_from.contains(ours),
            "a mistake in {ours} would be made twice"
        );
    }
}

#[test]
fn every_dependency_comes_under_a_licence_we_may_use() {
    let metadata = metadata();
    let mut refused = Vec::new();
    let mut checked = 0;
    for package in metadata
        .packages
        .iter()
        .filter(|package| package.source.is_some())
    {
        let name = package.name.as_str();
        let licence = package.license.as_deref().unwrap_or("none");
        let allowed =
            spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX).is_ok_and(|expression| {
                expression.evaluate(|requirement| {
                    let id = requirement.license.id().map(|id| id.name);
                    id.is_some_and(|id| LICENCES.contains(&id) || DATA.contains(&(name, id)))
                })
            });
        checked += 1;
        if !allowed {
            refused.push(format!("{name} {}: {licence}", package.version));
        }
    }
    assert!(
        checked > 100,
        "the whole graph was looked at, not {checked} packages"
    );
    assert!(refused.is_empty(), "licences to look at: {refused:#?}");
}
