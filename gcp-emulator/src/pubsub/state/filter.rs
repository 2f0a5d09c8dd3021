//! Subscription filters.

mod parser;

use std::collections::HashMap;

use super::Refusal;

/// The longest filter, in bytes (Pub/Sub's documentation of filters).
const LONGEST: usize = 256;

/// A condition on a message's attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Filter {
    /// `attributes:KEY`
    Has(String),
    /// `attributes.KEY = "V"`
    Equal(String, String),
    /// `attributes.KEY != "V"`; a message without the attribute matches.
    Unequal(String, String),
    /// `hasPrefix(attributes.KEY, "P")`
    Prefix(String, String),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

impl Filter {
    /// Parses a subscription's filter; an empty one matches everything and is `None`.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, Refusal> {
        if text.len() > LONGEST {
            return Err(Refusal::Filter {
                at: LONGEST,
                problem: "a filter has at most 256 bytes",
            });
        }
        if text.trim().is_empty() {
            return Ok(None);
        }
        parser::parse(text).map(Some)
    }

    pub(super) fn matches(&self, attributes: &HashMap<String, String>) -> bool {
        match self {
            Self::Has(key) => attributes.contains_key(key),
            Self::Equal(key, value) => attributes.get(key) == Some(value),
            Self::Unequal(key, value) => attributes.get(key) != Some(value),
            Self::Prefix(key, prefix) => attributes
                .get(key)
                .is_some_and(|value| value.starts_with(prefix.as_str())),
            Self::Not(inner) => !inner.matches(attributes),
            Self::And(all) => all.iter().all(|one| one.matches(attributes)),
            Self::Or(any) => any.iter().any(|one| one.matches(attributes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(filter: &str, attributes: &[(&str, &str)]) -> bool {
        let attributes = attributes
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Filter::parse(filter)
            .unwrap()
            .is_none_or(|filter| filter.matches(&attributes))
    }

    #[test]
    fn every_operator_of_the_grammar_is_applied() {
        let com = &[("domain", "com"), ("iana.org/tag", "en")][..];
        assert!(matches("", com));
        assert!(matches("attributes:domain", com));
        assert!(!matches("attributes:other", com));
        assert!(matches(r#"attributes.domain = "com""#, com));
        assert!(matches(r#"attributes.domain="com""#, com));
        assert!(!matches(r#"attributes.domain = "org""#, com));
        assert!(matches(r#"attributes.domain != "org""#, com));
        assert!(!matches(r#"attributes.domain != "com""#, com));
        assert!(matches(r#"attributes.other != "com""#, com));
        assert!(matches(r#"hasPrefix(attributes.domain, "co")"#, com));
        assert!(!matches(r#"hasPrefix(attributes.domain, "om")"#, com));
        assert!(matches(r#"attributes:"iana.org/tag""#, com));
        assert!(matches(r#"attributes."iana.org/tag" = "en""#, com));
        assert!(matches("NOT attributes:other", com));
        assert!(matches("-attributes:other", com));
        assert!(matches("attributes:domain AND NOT attributes:other", com));
        assert!(matches("attributes:other OR attributes:domain", com));
        assert!(!matches(
            "attributes:domain AND (attributes:x OR attributes:y)",
            com
        ));
        assert!(matches("NOT (attributes:x AND attributes:domain)", com));
    }

    #[test]
    fn literals_know_the_escapes() {
        let odd = &[("k", "a\"b\\c\u{e9}\n")][..];
        assert!(matches(r#"attributes.k = "a\"b\\c\u00e9\n""#, odd));
        assert!(matches(r#"attributes.k = "a\"b\134c\U000000e9\x0a""#, odd));
    }

    #[test]
    fn what_the_grammar_does_not_know_is_refused() {
        for bad in [
            "garbage(",
            "attributes",
            "attributes.",
            "attributes.k",
            "attributes.k = v",
            "attributes.k = 'v'",
            r#"attributes.k > "v""#,
            r#"attributes.k = "v"#,
            r#"attributes.k = "\q""#,
            r#"attributes.k = "\ud800""#,
            "data:k",
            "attributes:k and attributes:j",
            "attributes:k AND attributes:j OR attributes:i",
            "(attributes:k",
            "attributes:k)",
            "attributes:k attributes:j",
            "AND attributes:k",
            "NOT",
            r#"hasPrefix(attributes:k, "v")"#,
            r#"hasprefix(attributes.k, "v")"#,
        ] {
            assert!(Filter::parse(bad).is_err(), "{bad}");
        }
        let long = format!("attributes:{}", "k".repeat(246));
        assert_eq!(long.len(), 257);
        assert!(Filter::parse(&long).is_err());
    }
}
