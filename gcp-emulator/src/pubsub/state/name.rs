//! Resource names.

use super::Refusal;

/// Kinds of named resources, by the word their names use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Topic,
    Subscription,
    Snapshot,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Topic => "topics",
            Self::Subscription => "subscriptions",
            Self::Snapshot => "snapshots",
        }
    }
}

/// Checks `projects/P/KIND/ID`: the id has 3 to 255 characters, begins with a letter, does not begin
/// with `goog`, and has only letters, digits and `-_.~+%` (Pub/Sub's resource name rules).
pub(super) fn check(kind: Kind, name: &str) -> Result<(), Refusal> {
    let refused = || Refusal::Name {
        kind: kind.word(),
        name: name.to_owned(),
    };
    let mut parts = name.split('/');
    let well_formed = parts.next() == Some("projects")
        && parts.next().is_some_and(|project| !project.is_empty())
        && parts.next() == Some(kind.word())
        && parts.next().is_some_and(id_is_valid)
        && parts.next().is_none();
    if well_formed { Ok(()) } else { Err(refused()) }
}

/// Checks `projects/P`.
pub(super) fn check_project(name: &str) -> Result<(), Refusal> {
    let project = name.strip_prefix("projects/");
    if project.is_some_and(|project| !project.is_empty() && !project.contains('/')) {
        Ok(())
    } else {
        Err(Refusal::Name {
            kind: "projects",
            name: name.to_owned(),
        })
    }
}

fn id_is_valid(id: &str) -> bool {
    (3..=255).contains(&id.len())
        && id.starts_with(|first: char| first.is_ascii_alphabetic())
        && !id.starts_with("goog")
        && id
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_.~+%".contains(letter))
}

/// The last part of a name, as error texts show it.
pub(super) fn id(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

/// The project of a name.
pub(super) fn project(name: &str) -> &str {
    name.split('/').nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_the_service() {
        for good in ["abc", "o+r%d~e.r_s-1", &"a".repeat(255)] {
            assert!(
                check(Kind::Topic, &format!("projects/p/topics/{good}")).is_ok(),
                "{good}"
            );
        }
        for bad in [
            "ab",
            "1abc",
            "goog-x",
            "a/b",
            "",
            "a b",
            "é123",
            &"a".repeat(256),
        ] {
            assert!(
                check(Kind::Topic, &format!("projects/p/topics/{bad}")).is_err(),
                "{bad}"
            );
        }
        for bad in [
            "abc",
            "projects//topics/abc",
            "projects/p/subscriptions/abc",
            "projects/p",
        ] {
            assert!(check(Kind::Topic, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_parts_of_a_name_are_found() {
        assert_eq!(id("projects/p/topics/abc"), "abc");
        assert_eq!(project("projects/p/topics/abc"), "p");
    }
}
