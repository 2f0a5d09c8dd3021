//! What a setting is before anybody sets it, as the source says.

use syn::{BinOp, Expr, ImplItem, Item, Lit, Member, Stmt};

use crate::source::{Source, self_type};

/// A default: numbers (seconds, bytes, counts), or the name of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Default {
    Numbers(Vec<f64>),
    Name(String),
}

impl Default {
    /// As a document has it: `60 s`, `10,000 and 64 MiB`, `none`, or a name in code marks.
    pub(crate) fn of_document(cell: &str) -> Self {
        let words: Vec<&str> = cell.split_whitespace().collect();
        let starts_with_number = cell.starts_with(|letter: char| letter.is_ascii_digit());
        if !starts_with_number {
            return Self::Name(cell.replace('`', ""));
        }
        let mut numbers = Vec::new();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let digits = word.trim_matches(',').replace(',', "");
            let digits = digits.strip_prefix('×').unwrap_or(&digits);
            let Ok(number) = digits.parse::<f64>() else {
                continue;
            };
            let unit = words.peek().map_or("", |unit| unit.trim_matches(','));
            numbers.push(number * size_of_unit(unit));
        }
        Self::Numbers(numbers)
    }
}

fn size_of_unit(unit: &str) -> f64 {
    match unit {
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3_600.0,
        "KiB" => 1_024.0,
        "MiB" => 1_048_576.0,
        _ => 1.0,
    }
}

/// The first value of the field at `path` of the type `owner`: as its constructor has it.
pub(crate) fn initial(source: &Source, owner: &str, path: &[String]) -> Option<Default> {
    let (first, rest) = path.split_first()?;
    let mut value = first_field(source, owner, first)?;
    for (at, name) in rest.iter().enumerate() {
        value = match value {
            Expr::Struct(literal) => field(literal, name)?,
            Expr::Call(call) if called(call) == "Limits::new" => {
                assert_eq!(at + 1, rest.len(), "a limit has numbers in it");
                call.args.iter().nth(usize::from(name == "bytes"))?
            }
            Expr::Call(call) => {
                let called = called(call);
                let owner = called.strip_suffix("::default")?;
                first_field(source, owner, name)?
            }
            _ => return None,
        };
    }
    evaluate(source, value)
}

/// The struct literals that make an `owner`, those of its `Default` first.
fn literals<'a>(source: &'a Source, owner: &str) -> Vec<&'a syn::ExprStruct> {
    let defaults = source.impls(owner).filter(|found| {
        let of = found.trait_.as_ref();
        of.is_some_and(|(_, path, _)| path.is_ident("Default"))
    });
    let defaults = defaults.flat_map(|implementation| {
        implementation.items.iter().filter_map(|item| match item {
            ImplItem::Fn(method) => Some((owner.to_owned(), &method.block)),
            _ => None,
        })
    });
    let literal = |(of, block): (String, &'a syn::Block)| {
        let Some(Stmt::Expr(Expr::Struct(literal), None)) = block.stmts.last() else {
            return None;
        };
        let name = literal.path.segments.last().unwrap().ident.to_string();
        let complete = literal.rest.is_none();
        (complete && (name == owner || (name == "Self" && of == owner))).then_some(literal)
    };
    defaults
        .chain(source.functions())
        .filter_map(literal)
        .collect()
}

fn first_field<'a>(source: &'a Source, owner: &str, name: &str) -> Option<&'a Expr> {
    literals(source, owner)
        .into_iter()
        .find_map(|literal| field(literal, name))
}

fn field<'a>(literal: &'a syn::ExprStruct, name: &str) -> Option<&'a Expr> {
    let found = literal.fields.iter().find(|field| match &field.member {
        Member::Named(member) => member == name,
        Member::Unnamed(_) => false,
    });
    found.map(|field| &field.expr)
}

/// `Type::function` of a call.
fn called(call: &syn::ExprCall) -> String {
    match &*call.func {
        Expr::Path(path) => joined(&path.path),
        _ => String::new(),
    }
}

fn joined(path: &syn::Path) -> String {
    let segments: Vec<String> = (path.segments.iter())
        .map(|segment| segment.ident.to_string())
        .collect();
    segments.join("::")
}

/// What an expression is worth, as far as this can be read without running it.
pub(crate) fn evaluate(source: &Source, expression: &Expr) -> Option<Default> {
    let number = |expression| match evaluate(source, expression)? {
        Default::Numbers(numbers) => (numbers.len() == 1).then(|| numbers[0]),
        Default::Name(_) => None,
    };
    Some(match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => Default::Numbers(vec![number.base10_parse().ok()?]),
            Lit::Float(number) => Default::Numbers(vec![number.base10_parse().ok()?]),
            Lit::Bool(truth) => Default::Name(truth.value.to_string()),
            Lit::Str(text) if text.value().is_empty() => Default::Name("none".to_owned()),
            Lit::Str(text) => Default::Name(format!("\"{}\"", text.value())),
            _ => return None,
        },
        Expr::Binary(binary) => {
            let (left, right) = (number(&binary.left)?, number(&binary.right)?);
            Default::Numbers(vec![match binary.op {
                BinOp::Shl(_) => left * right.exp2(),
                BinOp::Mul(_) => left * right,
                BinOp::Add(_) => left + right,
                BinOp::Sub(_) => left - right,
                _ => return None,
            }])
        }
        // Texts that are made their own.
        Expr::MethodCall(call) if call.args.is_empty() => evaluate(source, &call.receiver)?,
        Expr::MethodCall(call) if call.method == "saturating_add" => {
            Default::Numbers(vec![number(&call.receiver)? + number(call.args.first()?)?])
        }
        // Names itself to the service beside what the host chose.
        Expr::MethodCall(call) if call.method == "client" => evaluate(source, &call.receiver)?,
        Expr::Path(path) => path_value(source, &joined(&path.path))?,
        Expr::Call(call) => call_value(source, call)?,
        _ => return None,
    })
}

fn path_value(source: &Source, path: &str) -> Option<Default> {
    match path {
        "None" => return Some(Default::Name("none".to_owned())),
        "Duration::ZERO" => return Some(Default::Numbers(vec![0.0])),
        "NonZeroU32::MIN" => return Some(Default::Numbers(vec![1.0])),
        _ => {}
    }
    let last = path.rsplit("::").next()?;
    match source.constant(last) {
        Some(value) => evaluate(source, value),
        None => Some(Default::Name(last.to_owned())),
    }
}

fn call_value(source: &Source, call: &syn::ExprCall) -> Option<Default> {
    let arguments: Option<Vec<Default>> = (call.args.iter())
        .map(|argument| evaluate(source, argument))
        .collect();
    let arguments = arguments?;
    let together = |scale: f64| {
        let mut all = Vec::new();
        for argument in &arguments {
            match argument {
                Default::Numbers(numbers) => {
                    all.extend(numbers.iter().map(|number| number * scale));
                }
                Default::Name(_) => return None,
            }
        }
        Some(Default::Numbers(all))
    };
    let called = called(call);
    match called.as_str() {
        "Duration::from_secs" | "Limits::new" | "Backoff::new" | "RetryBudget::new" => {
            together(1.0)
        }
        "Duration::from_millis" => together(1e-3),
        "Some" | "Box::new" | "NonZeroU32::new" => arguments.into_iter().next(),
        "Vec::new" | "BTreeMap::new" | "String::new" => Some(Default::Name("none".to_owned())),
        _ => match called.strip_suffix("::default") {
            Some(owner) => default_variant(source, owner).map(Default::Name),
            None => Some(Default::Name(called)),
        },
    }
}

/// The variant that an enumeration is by default.
fn default_variant(source: &Source, owner: &str) -> Option<String> {
    for item in &source.items {
        if let Item::Enum(found) = item
            && found.ident == owner
        {
            let marked = found.variants.iter().find(|variant| {
                let mut attributes = variant.attrs.iter();
                attributes.any(|attribute| attribute.path().is_ident("default"))
            });
            if let Some(variant) = marked {
                return Some(variant.ident.to_string());
            }
        }
        // `impl Default for Owner { fn default() -> Self { Self::Variant(…) } }`
        if let Item::Impl(implementation) = item
            && self_type(implementation) == owner
            && let Some((_, path, _)) = &implementation.trait_
            && path.is_ident("Default")
        {
            let text = crate::source::quote(implementation).to_string();
            let (_, variant) = text.rsplit_once("Self :: ")?;
            let name: String = variant
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            return Some(name);
        }
    }
    None
}

#[test]
fn a_default_is_read_out_of_a_document_with_its_units() {
    let numbers = |cell| match Default::of_document(cell) {
        Default::Numbers(numbers) => numbers,
        Default::Name(name) => panic!("{name} is no number"),
    };
    assert_eq!(numbers("10,000 messages, 64 MiB"), [10_000.0, 67_108_864.0]);
    assert_eq!(numbers("100 ms ×2 up to 60 s"), [0.1, 2.0, 60.0]);
    assert_eq!(numbers("1 h"), [3_600.0]);
    let name = Default::of_document("`Fail`");
    assert_eq!(name, Default::Name("Fail".to_owned()));
}
