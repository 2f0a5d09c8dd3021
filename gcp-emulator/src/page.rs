//! Lists in pages.

use thiserror::Error;

/// A page that can not be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PageRefusal {
    /// A token nobody gave out.
    #[error("Invalid page token.")]
    Token,
    /// A size below zero.
    #[error("Invalid page size: it must not be negative.")]
    Size,
}

/// The size of a page nobody asked a size for, and the largest one (assumed; the service says only
/// that it may return fewer).
const DEFAULT: usize = 100;
const LARGEST: usize = 1000;

/// A page of an ordered list of names, and the token of the next one (empty at the end).
pub(crate) fn page<'a>(
    names: impl Iterator<Item = &'a String>,
    size: i32,
    token: &str,
) -> Result<(Vec<String>, String), PageRefusal> {
    let asked = usize::try_from(size).map_err(|_| PageRefusal::Size)?;
    let size = if asked == 0 {
        DEFAULT
    } else {
        asked.min(LARGEST)
    };
    // A token is the last name of the page before: it stays good when names come and go.
    if !token.is_empty() && !token.starts_with("projects/") {
        return Err(PageRefusal::Token);
    }
    let mut rest = names.filter(|name| name.as_str() > token);
    let page: Vec<String> = rest.by_ref().take(size).cloned().collect();
    let more = rest.next().is_some();
    let next = if more {
        page.last().cloned().unwrap_or_default()
    } else {
        String::new()
    };
    Ok((page, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_gap_or_overlap() {
        let names: Vec<String> = (0..7).map(|n| format!("projects/p/topics/t{n}")).collect();
        let (mut seen, mut token) = (vec![], String::new());
        loop {
            let (page, next) = page(names.iter(), 3, &token).unwrap();
            assert!(page.len() <= 3);
            seen.extend(page);
            token = next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, names);
    }

    #[test]
    fn a_page_that_ends_exactly_at_the_end_has_no_successor() {
        let names: Vec<String> = (0..3).map(|n| format!("projects/p/topics/t{n}")).collect();
        assert_eq!(page(names.iter(), 3, "").unwrap().1, "");
    }

    #[test]
    fn tokens_and_sizes_nobody_gave_are_refused() {
        let names = [String::from("projects/p/topics/abc")];
        assert_eq!(page(names.iter(), -1, ""), Err(PageRefusal::Size));
        assert_eq!(page(names.iter(), 1, "nonsense"), Err(PageRefusal::Token));
    }
}
