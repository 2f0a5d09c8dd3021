use std::fmt;

/// How much of an offending value an error quotes, in characters: a name is at most a few hundred
/// long, but records can carry anything.
const QUOTED: usize = 300;

/// Why a resource name was refused; it was not sent anywhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not {rule}")]
pub struct NameError {
    value: String,
    rule: NameRule,
}

impl NameError {
    fn new(value: &str, rule: NameRule) -> Self {
        let mut quoted: String = value.chars().take(QUOTED).collect();
        if quoted.len() < value.len() {
            quoted.push('…');
        }
        Self {
            value: quoted,
            rule,
        }
    }

    pub(super) fn form(value: &str, form: &'static str) -> Self {
        Self::new(value, NameRule::Form(form))
    }

    /// The offending value, cut after 300 characters.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The rule that it breaks.
    #[must_use]
    pub const fn rule(&self) -> NameRule {
        self.rule
    }
}

/// The rules that the services state for their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameRule {
    /// The shape of the whole name.
    Form(&'static str),
    /// A project id or number: letters, digits, hyphens, periods, and one colon after a domain
    /// (the Cloud Tasks interface definition). Emulators accept any id, so the length and case
    /// rules of Resource Manager, which made the project, are not repeated here.
    Project,
    /// A topic, subscription or snapshot id: 3 to 255 characters, a letter first, then letters,
    /// digits, `-`, `_`, `.`, `~`, `+` or `%`, not starting with `goog` (Pub/Sub's resource names).
    PubsubId,
    /// A location id such as `us-central1`.
    Location,
    /// A queue id: 1 to 100 letters, digits or hyphens (the Cloud Tasks interface definition).
    QueueId,
    /// A task id: 1 to 500 letters, digits, hyphens or underscores (same source).
    TaskId,
}

impl fmt::Display for NameRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form(form) => return write!(f, "of the form {form}"),
            Self::Project => {
                "a project: letters, digits, hyphens and periods, one colon after a domain"
            }
            Self::PubsubId => {
                "a Pub/Sub id: 3 to 255 characters, a letter first, then letters, digits or \
                 any of -_.~+%, not starting with goog"
            }
            Self::Location => "a location: lower-case letters, digits and hyphens",
            Self::QueueId => "a queue id: 1 to 100 letters, digits or hyphens",
            Self::TaskId => "a task id: 1 to 500 letters, digits, hyphens or underscores",
        })
    }
}

fn check(value: &str, rule: NameRule, holds: bool) -> Result<(), NameError> {
    if holds {
        Ok(())
    } else {
        Err(NameError::new(value, rule))
    }
}

pub(super) fn project(value: &str) -> Result<(), NameError> {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    let holds = value.len() <= 100
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().filter(|&&byte| byte == b':').count() <= 1
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-.:".contains(byte));
    check(value, NameRule::Project, holds)
}

pub(super) fn pubsub_id(value: &str) -> Result<(), NameError> {
    let bytes = value.as_bytes();
    let holds = (3..=255).contains(&value.len())
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~+%".contains(byte))
        && !value.starts_with("goog");
    check(value, NameRule::PubsubId, holds)
}

pub(super) fn location(value: &str) -> Result<(), NameError> {
    let bytes = value.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let holds = (1..=63).contains(&value.len())
        && bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain)
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-');
    check(value, NameRule::Location, holds)
}

pub(super) fn queue_id(value: &str) -> Result<(), NameError> {
    let holds = (1..=100).contains(&value.len())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    check(value, NameRule::QueueId, holds)
}

pub(super) fn task_id(value: &str) -> Result<(), NameError> {
    let holds = (1..=500).contains(&value.len())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    check(value, NameRule::TaskId, holds)
}

/// Part `index` of a name that was checked when it was made, so that the part exists.
pub(super) fn segment(full: &str, index: usize) -> &str {
    full.split('/').nth(index).unwrap_or_default()
}
