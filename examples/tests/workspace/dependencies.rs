//! Who may depend on whom, and under which licences.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

const CONNECTORS: [&str; 3] = ["pubsub-source", "pubsub-sink", "cloudtasks-sink"];

/// Where the licences and exceptions are listed that a dependency may be taken under.
const RULES: &str = "deny.toml";

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The quoted words of the first list that begins with `start`.
fn listed(rules: &str, start: &str) -> BTreeSet<String> {
    let (_, rest) = rules.split_once(start).expect("the list is there");
    let (list, _) = rest.split_once(']').expect("the list ends");
    let words = list.split('"').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

/// Crates with a licence of their own: `{ crate = "name", allow = ["licence"] }`.
fn exceptions(rules: &str) -> BTreeSet<(String, String)> {
    let (_, rest) = rules
        .split_once("exceptions = [")
        .expect("the list is there");
    let lines = rest.lines().map(str::trim);
    lines
        .take_while(|line| *line != "]")
        .filter(|line| line.starts_with('{'))
        .map(|line| {
            let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            (words[0].to_owned(), words[1].to_owned())
        })
        .collect()
}

/// What cargo says of the workspace; asked once.
pub(crate) fn metadata() -> &'static Metadata {
    static ANSWER: LazyLock<Metadata> = LazyLock::new(|| {
        MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
            .other_options(vec!["--locked".to_owned(), "--all-features".to_owned()])
            .exec()
            .expect("cargo metadata answers")
    });
    &ANSWER
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
        let built_from = closure(metadata, connector);
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
    let built_from = closure(metadata(), "connector-core");
    for heavy in ["tokio", "tonic", "hyper", "prost", "rustls"] {
        assert!(
            !built_from.contains(heavy),
            "connector-core must not depend on {heavy}"
        );
    }
}

#[test]
fn the_emulator_does_not_share_code_with_what_it_tests() {
    let built_from = closure(metadata(), "gcp-emulator");
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
    let rules = crate::table::read(RULES);
    let (allowed_ones, exceptions) = (listed(&rules, "allow = ["), exceptions(&rules));
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
                    id.is_some_and(|id| {
                        let exception = (name.to_owned(), id.to_owned());
                        allowed_ones.contains(id) || exceptions.contains(&exception)
                    })
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

#[test]
fn every_dependency_comes_from_the_registry_and_none_that_is_banned() {
    let metadata = metadata();
    let rules = crate::table::read(RULES);
    let banned: BTreeSet<&str> = (rules.lines())
        .filter_map(|line| line.trim().strip_prefix("{ crate = \"")?.split_once('"'))
        .filter(|(_, rest)| rest.contains("reason"))
        .map(|(name, _)| name)
        .collect();
    assert!(!banned.is_empty(), "{RULES} bans something");
    for package in &metadata.packages {
        let name = package.name.as_str();
        assert!(!banned.contains(name), "{name} is banned");
        if let Some(source) = &package.source {
            assert_eq!(source.repr, REGISTRY, "{name}");
        }
    }
}
