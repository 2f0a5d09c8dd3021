//! The URI of an App Engine task.

use super::error::{RelativeUriRule, excerpt};
use super::{TaskError, path};

/// The longest URI in characters (interface definition).
const LONGEST: usize = 2_083;

/// A path and a query string within an application. Checked when the sink takes the task, since
/// segments and pairs may be added until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RelativeUri {
    path: String,
    /// Without the question mark.
    query: Option<String>,
}

impl RelativeUri {
    pub(super) fn new(text: String) -> Self {
        match text.split_once('?') {
            Some((path, query)) => Self {
                path: path.to_owned(),
                query: Some(query.to_owned()),
            },
            None => Self {
                path: text,
                query: None,
            },
        }
    }

    pub(super) fn push_segment(&mut self, segment: &str) -> Result<(), TaskError> {
        path::push_segment(&mut self.path, segment)
    }

    pub(super) fn push_query(&mut self, key: &str, value: &str) {
        if self.path.is_empty() {
            self.path.push('/');
        }
        path::push_query(&mut self.query, key, value);
    }

    pub(super) fn without_query(&self) -> &str {
        &self.path
    }

    pub(super) fn into_string(self) -> String {
        match self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path,
        }
    }

    pub(super) fn check(&self) -> Result<(), TaskError> {
        self.broken_rule().map_or(Ok(()), |rule| {
            Err(TaskError::RelativeUri {
                uri: excerpt(&self.path),
                rule,
            })
        })
    }

    /// The first rule that is broken. An empty URI is the application's root.
    fn broken_rule(&self) -> Option<RelativeUriRule> {
        let parts = [
            self.path.as_str(),
            self.query.as_deref().unwrap_or_default(),
        ];
        let characters = || parts.iter().flat_map(|part| part.chars());
        let length = characters().count() + usize::from(self.query.is_some());
        if length == 0 {
            None
        } else if length > LONGEST {
            Some(RelativeUriRule::TooLong)
        } else if !self.path.starts_with('/') {
            Some(RelativeUriRule::Slash)
        } else if characters().any(|symbol| symbol.is_whitespace() || symbol.is_control()) {
            Some(RelativeUriRule::Whitespace)
        } else if self.path.starts_with("//") {
            Some(RelativeUriRule::Authority)
        } else if characters().any(|symbol| symbol == '#') {
            Some(RelativeUriRule::Fragment)
        } else if !parts.iter().all(|part| escapes_are_whole(part)) {
            Some(RelativeUriRule::Escape)
        } else if characters().any(|symbol| "\"<>\\^`{|}".contains(symbol))
            // Brackets stand for IPv6 addresses, except in a query string.
            || self.path.contains(['[', ']'])
        {
            Some(RelativeUriRule::Character)
        } else {
            None
        }
    }
}

/// Whether two hexadecimal digits follow every percent sign.
fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        let mut digits = rest.bytes();
        let mut is_digit = || digits.next().is_some_and(|byte| byte.is_ascii_hexdigit());
        is_digit() && is_digit()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(text: &str) -> Option<RelativeUriRule> {
        RelativeUri::new(text.to_owned()).broken_rule()
    }

    #[test]
    fn a_uri_stays_within_its_application() {
        for fine in [
            "",
            "/",
            "/tasks",
            "/tasks/17?a=b&c=%20",
            "/a?x=[1]",
            "/%E2%9C%93",
            "/stra\u{df}e",
            "/a//b",
            "/?//x",
        ] {
            assert_eq!(rule(fine), None, "{fine:?}");
        }
        for (broken, expected) in [
            ("tasks", RelativeUriRule::Slash),
            ("?a=b", RelativeUriRule::Slash),
            ("https://evil.example/", RelativeUriRule::Slash),
            (" /tasks", RelativeUriRule::Slash),
            ("/a b", RelativeUriRule::Whitespace),
            ("/a?b\t", RelativeUriRule::Whitespace),
            ("/a\u{7}", RelativeUriRule::Whitespace),
            ("//evil.example/x", RelativeUriRule::Authority),
            ("/x#f", RelativeUriRule::Fragment),
            ("/x#", RelativeUriRule::Fragment),
            ("/x?a#b", RelativeUriRule::Fragment),
            ("/tasks%", RelativeUriRule::Escape),
            ("/tasks%2", RelativeUriRule::Escape),
            ("/tasks?a=%zz", RelativeUriRule::Escape),
            ("/a[1]", RelativeUriRule::Character),
            ("/a|b", RelativeUriRule::Character),
            ("/a?b=\"c\"", RelativeUriRule::Character),
            ("/a\\b", RelativeUriRule::Character),
        ] {
            assert_eq!(rule(broken), Some(expected), "{broken:?}");
        }
    }

    #[test]
    fn a_uri_has_at_most_2083_characters() {
        let of = |length: usize| format!("/{}", "\u{e9}".repeat(length - 1));
        assert_eq!(rule(&of(2_083)), None);
        assert_eq!(rule(&of(2_084)), Some(RelativeUriRule::TooLong));
        let with_query = |length: usize| format!("/?{}", "q".repeat(length - 2));
        assert_eq!(rule(&with_query(2_083)), None);
        assert_eq!(rule(&with_query(2_084)), Some(RelativeUriRule::TooLong));
    }

    #[test]
    fn an_error_about_a_uri_leaves_its_query_string_out() {
        let uri = RelativeUri::new("tasks?token=secret".to_owned());
        let error = uri.check().unwrap_err();
        assert!(error.to_string().contains("\"tasks\""), "{error}");
        assert!(
            !format!("{error} {error:?}").contains("secret"),
            "{error:?}"
        );
    }

    proptest! {
        #[test]
        fn any_text_in_a_segment_or_a_pair_leaves_the_path_as_it_is(
            segment in ".+", key in ".*", value in ".*",
        ) {
            let mut uri = RelativeUri::new("/tasks".to_owned());
            if uri.push_segment(&segment).is_ok() {
                uri.push_query(&key, &value);
                let text = uri.clone().into_string();
                prop_assert!(text.starts_with("/tasks/"));
                prop_assert_eq!(text.matches('/').count(), 2);
                prop_assert_eq!(text.matches('?').count(), 1);
                let rule = uri.broken_rule();
                prop_assert!(matches!(rule, None | Some(RelativeUriRule::TooLong)), "{:?}", rule);
            } else {
                prop_assert!(matches!(segment.as_str(), "." | ".."));
            }
        }

        #[test]
        fn no_text_makes_a_uri_panic(text in ".*") {
            let uri = RelativeUri::new(text.clone());
            let _verdict = uri.check();
            prop_assert_eq!(uri.into_string(), text);
        }
    }
}
