//! `docs/options.md` lists every option, with the default that the code has.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Expr, FnArg, ImplItem, ReturnType, Stmt};

use crate::{
    defaults::{Default, initial},
    source::{Source, is_public, self_type},
    table::{name, read, rows},
};

const DOCUMENT: &str = "docs/options.md";
const CRATES: [&str; 6] = [
    "connector-core",
    "gcp-wire",
    "checkpoint-store",
    "pubsub-source",
    "pubsub-sink",
    "cloudtasks-sink",
];

/// What has methods like a builder's and is set by nobody: values that are passed on.
const VALUES: [&str; 7] = [
    "connector_core::Epoch",
    "connector_core::Place",
    "connector_core::Receipt",
    "connector_core::Rejected",
    "connector_core::Restored",
    "gcp_wire::AuthHeaders",
    "pubsub_source::Annotated",
];

/// What is made for each record or connection: its parts have no default but to be left out.
const PARTS: [&str; 8] = [
    "cloudtasks_sink::AppEngineTask",
    "cloudtasks_sink::Csv",
    "cloudtasks_sink::FullTask",
    "cloudtasks_sink::HttpTask",
    "cloudtasks_sink::TaskRetries",
    "cloudtasks_sink::Batch",
    "gcp_wire::Endpoint",
    "pubsub_sink::PublishMessage",
];

/// Options whose field is nothing until it is set, and where their default is instead.
const ELSEWHERE: [(&str, &str, Place); 12] = [
    (
        "pubsub_source::SourceBuilder",
        "paused_limit",
        Place::Constant("PAUSED_LIMIT"),
    ),
    (
        "pubsub_sink::SinkBuilder",
        "limits",
        Place::Constant("DEFAULT_LIMITS"),
    ),
    (
        "pubsub_sink::SinkBuilder",
        "stage",
        Place::Field("Settings", "stage"),
    ),
    (
        "pubsub_sink::SinkBuilder",
        "quarantine",
        Place::Field("Settings", "quarantine"),
    ),
    (
        "pubsub_sink::SinkBuilder",
        "retry_for",
        Place::Field("Settings", "retry.total"),
    ),
    // Those of the connection, which the wire's own table holds to its code.
    ("pubsub_sink::SinkBuilder", "gzip", Place::Text("false")),
    (
        "pubsub_sink::SinkBuilder",
        "attributes",
        Place::Text("none"),
    ),
    (
        "pubsub_sink::SinkBuilder",
        "ordering_key",
        Place::Text("none"),
    ),
    ("cloudtasks_sink::SinkBuilder", "queue", Place::Text("none")),
    (
        "cloudtasks_sink::SinkBuilder",
        "wall_clock",
        Place::Text("the system's clock"),
    ),
    (
        "pubsub_source::SourceBuilder",
        "wall_clock",
        Place::Text("the system's clock"),
    ),
    (
        "pubsub_source::SubscriptionCreationBuilder",
        "dead_letter_policy",
        Place::Text("none"),
    ),
];

#[derive(Clone, Copy)]
enum Place {
    Constant(&'static str),
    Field(&'static str, &'static str),
    Text(&'static str),
}

/// Every public method that takes a value and gives it back changed, by type and name.
fn options(source: &Source) -> BTreeMap<(String, String), Vec<String>> {
    let mut options = BTreeMap::new();
    for item in &source.items {
        let syn::Item::Impl(implementation) = item else {
            continue;
        };
        let owner = self_type(implementation);
        if implementation.trait_.is_some() || !source.is_public_struct(&owner) {
            continue;
        }
        for method in &implementation.items {
            let ImplItem::Fn(method) = method else {
                continue;
            };
            let by_value = matches!(
                method.sig.inputs.first(),
                Some(FnArg::Receiver(receiver)) if receiver.reference.is_none()
            );
            if is_public(&method.vis) && by_value && gives_back(&method.sig.output, &owner) {
                let owner = format!("{}::{owner}", source.name);
                let name = method.sig.ident.to_string();
                options.insert((owner, name), path(&method.block));
            }
        }
    }
    options
}

/// `Self`, the type itself, or a `Result` of one.
fn gives_back(output: &ReturnType, owner: &str) -> bool {
    let ReturnType::Type(_, of) = output else {
        return false;
    };
    let text = crate::source::quote(&**of).to_string().replace(' ', "");
    let text = text.strip_prefix("Result<").unwrap_or(&text);
    let first: String = text
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    first == "Self" || first == owner
}

/// The field that a setter sets: `self.a.b = …`, or `self.a.insert(…)`. A setter that also notes
/// that it was called sets the deeper one, or sets it first.
fn path(block: &syn::Block) -> Vec<String> {
    let paths = block.stmts.iter().filter_map(|statement| {
        let Stmt::Expr(expression, _) = statement else {
            return None;
        };
        match expression {
            Expr::Assign(assign) => fields(&assign.left),
            Expr::MethodCall(call) => fields(&call.receiver),
            _ => None,
        }
    });
    paths.rev().max_by_key(Vec::len).unwrap_or_default()
}

fn fields(expression: &Expr) -> Option<Vec<String>> {
    match expression {
        Expr::Path(path) if path.path.is_ident("self") => Some(Vec::new()),
        Expr::Field(field) => {
            let mut path = fields(&field.base)?;
            match &field.member {
                syn::Member::Named(name) => path.push(name.to_string()),
                syn::Member::Unnamed(_) => return None,
            }
            Some(path)
        }
        _ => None,
    }
}

/// What the document has: the cells of each option by type and name.
fn documented() -> BTreeMap<(String, String), Vec<String>> {
    let text = read(DOCUMENT);
    let full = rows(
        &text,
        "| option | unit | default | why this default | interacts with |",
    );
    let parts = rows(&text, "| part | unit and range | left out | what it does |");
    let mut options = BTreeMap::new();
    for (owner, cells) in full.into_iter().chain(parts) {
        let option = name(&cells[0]).to_owned();
        let twice = options.insert((owner.clone(), option.clone()), cells);
        assert_eq!(twice, None, "{owner}::{option} stands there twice");
    }
    options
}

pub(crate) fn in_code() -> BTreeMap<(String, String), Option<Default>> {
    let mut all = BTreeMap::new();
    let mut unreadable = Vec::new();
    for package in CRATES {
        let source = Source::of(package);
        for ((owner, option), path) in options(&source) {
            if VALUES.contains(&&*owner) {
                continue;
            }
            let mut default = None;
            if !PARTS.contains(&&*owner) {
                default = default_of(&source, &owner, &option, &path);
                if default.is_none() {
                    unreadable.push(format!("{owner}::{option} ({})", path.join(".")));
                }
            }
            all.insert((owner, option), default);
        }
    }
    assert!(
        unreadable.is_empty(),
        "the defaults of these cannot be read, say where they are: {unreadable:#?}"
    );
    all
}

fn default_of(source: &Source, owner: &str, option: &str, path: &[String]) -> Option<Default> {
    let place = (ELSEWHERE.iter()).find(|(of, named, _)| (*of, *named) == (owner, option));
    match place {
        Some((_, _, Place::Text(text))) => Some(Default::Name((*text).to_owned())),
        Some((_, _, Place::Constant(constant))) => {
            crate::defaults::evaluate(source, source.constant(constant)?)
        }
        Some((_, _, Place::Field(of, path))) => {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            initial(source, of, &path)
        }
        None => initial(source, owner.rsplit("::").next()?, path),
    }
}

#[test]
fn every_option_is_documented_with_its_default_and_no_other() {
    let (code, documented) = (in_code(), documented());
    let missing: Vec<_> = code
        .keys()
        .filter(|option| !documented.contains_key(*option))
        .collect();
    let gone: Vec<_> = documented
        .keys()
        .filter(|option| !code.contains_key(*option))
        .collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "{DOCUMENT} lacks {missing:#?} and has {gone:#?}, which the code has not"
    );
    assert!(code.len() > 130, "only {} options were found", code.len());

    let mut wrong = Vec::new();
    for (option, default) in code {
        let Some(default) = default else { continue };
        let written = Default::of_document(&documented[&option][2]);
        if !same(&written, &default) {
            wrong.push(format!(
                "{option:?}: {written:?}, and in the code {default:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{DOCUMENT}: {wrong:#?}");
}

fn same(written: &Default, code: &Default) -> bool {
    match (written, code) {
        (Default::Numbers(written), Default::Numbers(code)) => {
            written.len() == code.len()
                && (written.iter().zip(code)).all(|(a, b)| (a - b).abs() <= b.abs() * 1e-9)
        }
        (Default::Name(written), Default::Name(code)) => written == code,
        _ => false,
    }
}

#[test]
fn every_cell_of_an_option_says_something() {
    for ((owner, option), cells) in documented() {
        for cell in cells {
            assert!(!cell.is_empty(), "{owner}::{option} has an empty cell");
        }
    }
}

/// The enumerations that options take.
const CHOICES: [(&str, &str); 9] = [
    ("pubsub-source", "OnDrop"),
    ("pubsub-source", "SavedDeliveries"),
    ("pubsub-source", "DecodeFailure"),
    ("pubsub-source", "StartPosition"),
    ("pubsub-source", "Expiration"),
    ("pubsub-sink", "Delivery"),
    ("pubsub-sink", "MissingTopics"),
    ("pubsub-sink", "Outstanding"),
    ("cloudtasks-sink", "Delivery"),
];

#[test]
fn every_choice_that_an_option_offers_is_documented_and_no_other() {
    let mut code = BTreeSet::new();
    let packages: BTreeSet<&str> = CHOICES.iter().map(|(package, _)| *package).collect();
    for package in packages {
        let source = Source::of(package);
        for item in &source.items {
            if let syn::Item::Enum(found) = item
                && CHOICES.contains(&(package, &found.ident.to_string()))
            {
                for variant in &found.variants {
                    code.insert(format!(
                        "{}::{}::{}",
                        source.name, found.ident, variant.ident
                    ));
                }
            }
        }
    }
    let text = read(DOCUMENT);
    let document = rows(&text, "| choice | what it means | when to take it |");
    let document: BTreeSet<String> = (document.iter())
        .map(|(owner, cells)| format!("{owner}::{}", name(&cells[0])))
        .collect();
    assert_eq!(document, code);
    // The types of what options take are no longer enumerations, or have another name.
    assert!(code.len() > 20, "only {} choices were found", code.len());
}

#[test]
fn an_option_is_recognised_by_what_it_takes_and_gives() {
    let text = "pub struct Knobs; impl Knobs {
        pub fn turned(mut self, far: u8) -> Self { self.inner.far = far; self }
        pub const fn held(mut self) -> Result<Self, E> { self.held = true; Ok(self) }
        pub fn read(&self) -> u8 { 0 }
        pub fn build(self) -> Machine { Machine }
        fn hidden(mut self) -> Self { self }
    }";
    let source = Source {
        name: "toy".to_owned(),
        items: syn::parse_file(text).unwrap().items,
        tokens: proc_macro2::TokenStream::new(),
    };
    let found = options(&source);
    let of = |name: &str| found[&("toy::Knobs".to_owned(), name.to_owned())].clone();
    assert_eq!(found.len(), 2);
    assert_eq!(of("turned"), ["inner", "far"]);
    assert_eq!(of("held"), ["held"]);
}
