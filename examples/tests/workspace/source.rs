//! The source of a crate, parsed: what ships, without its tests and simulations.

use std::{fs, path::Path};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Block, Expr, Item, ItemFn, Stmt, Visibility};

/// The parsed files of one crate.
pub(crate) struct Source {
    /// As paths of the code name it.
    pub(crate) name: String,
    pub(crate) items: Vec<Item>,
    pub(crate) tokens: TokenStream,
}

impl Source {
    pub(crate) fn of(package: &str) -> Self {
        let folder = crate::table::root().join(package).join("src");
        let mut source = Self {
            name: package.replace('-', "_"),
            items: Vec::new(),
            tokens: TokenStream::new(),
        };
        source.read(&folder);
        assert!(!source.items.is_empty(), "{package} has no source");
        source
    }

    fn read(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if name.contains("tests") || name == "simulation" {
                continue;
            }
            if path.is_dir() {
                self.read(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
                for item in file.items {
                    self.add(item);
                }
            }
        }
    }

    /// Modules are taken apart: names are unique enough within a crate.
    fn add(&mut self, item: Item) {
        if is_for_tests(attributes(&item)) {
            return;
        }
        match item {
            Item::Mod(module) => {
                let (_, items) = module.content.unwrap_or_default();
                for item in items {
                    self.add(item);
                }
            }
            item => {
                self.tokens.extend(quote(&item));
                self.items.push(item);
            }
        }
    }

    /// The inherent and trait implementations for the type `name`.
    pub(crate) fn impls<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a syn::ItemImpl> {
        let name = name.to_owned();
        self.items.iter().filter_map(move |item| match item {
            Item::Impl(implementation) if self_type(implementation) == name => Some(implementation),
            _ => None,
        })
    }

    /// Every function with the type whose it is, if any.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (String, &Block)> {
        self.items.iter().flat_map(|item| match item {
            Item::Fn(ItemFn { block, .. }) => vec![(String::new(), &**block)],
            Item::Impl(implementation) => implementation
                .items
                .iter()
                .filter_map(|item| match item {
                    syn::ImplItem::Fn(method) => Some((self_type(implementation), &method.block)),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        })
    }

    /// The value of the constant `name`, wherever it stands.
    pub(crate) fn constant(&self, name: &str) -> Option<&Expr> {
        for item in &self.items {
            if let Item::Const(constant) = item
                && constant.ident == name
            {
                return Some(&constant.expr);
            }
            if let Item::Impl(implementation) = item {
                for item in &implementation.items {
                    if let syn::ImplItem::Const(constant) = item
                        && constant.ident == name
                    {
                        return Some(&constant.expr);
                    }
                }
            }
        }
        for (_, block) in self.functions() {
            for statement in &block.stmts {
                if let Stmt::Item(Item::Const(constant)) = statement
                    && constant.ident == name
                {
                    return Some(&constant.expr);
                }
            }
        }
        None
    }

    pub(crate) fn is_public_struct(&self, name: &str) -> bool {
        self.items.iter().any(|item| match item {
            Item::Struct(found) => found.ident == name && is_public(&found.vis),
            _ => false,
        })
    }
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The name of the type that an implementation is for, without its parameters.
pub(crate) fn self_type(implementation: &syn::ItemImpl) -> String {
    match &*implementation.self_ty {
        syn::Type::Path(path) => path.path.segments.last().unwrap().ident.to_string(),
        _ => String::new(),
    }
}

pub(crate) fn quote(node: &impl ToTokens) -> TokenStream {
    let mut tokens = TokenStream::new();
    node.to_tokens(&mut tokens);
    tokens
}

/// Calls `found` with each macro call `path!(…)` in the tokens: its name and what is in it.
pub(crate) fn macros(tokens: TokenStream, found: &mut impl FnMut(&str, TokenStream)) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        let before = |back: usize| at.checked_sub(back).map(|index| tokens[index].to_string());
        if before(1).as_deref() == Some("!")
            && let Some(name) = before(2)
        {
            found(&name, group.stream());
        }
        macros(group.stream(), found);
    }
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = quote(attribute).to_string();
        text.contains("cfg") && text.contains("(test)")
    })
}
