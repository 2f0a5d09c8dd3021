//! Resource names: parsed once by the service's rules, then cheap to clone, compare and print.

mod rule;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::rule::{NameError, NameRule};

/// Declares a name of the form `projects/{project}/{collection}/{id}`.
macro_rules! pubsub_name {
    ($(#[$doc:meta])* $name:ident, $collection:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            full: Arc<str>,
        }

        impl $name {
            const FORM: &'static str = concat!("projects/PROJECT/", $collection, "/ID");

            /// The name of `id` in `project`.
            ///
            /// # Errors
            ///
            /// A [`NameError`] that quotes the offending value and names the rule.
            pub fn new(project: &str, id: &str) -> Result<Self, NameError> {
                rule::project(project)?;
                rule::pubsub_id(id)?;
                let full = format!(concat!("projects/{}/", $collection, "/{}"), project, id);
                Ok(Self { full: full.into() })
            }

            /// The name that `text` means inside `project`: a bare id, or a full name, which may
            /// be of another project.
            ///
            /// # Errors
            ///
            /// A [`NameError`] that quotes the offending value and names the rule.
            pub fn parse_in(project: &str, text: &str) -> Result<Self, NameError> {
                if text.starts_with("projects/") { text.parse() } else { Self::new(project, text) }
            }

            /// The project, for example `example.com:shop`.
            #[must_use]
            pub fn project(&self) -> &str {
                rule::segment(&self.full, 1)
            }

            /// The last part of the name.
            #[must_use]
            pub fn id(&self) -> &str {
                rule::segment(&self.full, 3)
            }

            /// The full name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.full
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let parts: Vec<&str> = text.split('/').collect();
                match parts[..] {
                    ["projects", project, $collection, id] => Self::new(project, id),
                    _ => Err(NameError::form(text, Self::FORM)),
                }
            }
        }

        plain_text!($name);
    };
}

/// Printing, comparing with text and serde for a name type: always its full form.
macro_rules! plain_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.as_str())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pubsub_name!(
    /// The full name of a Pub/Sub topic, `projects/PROJECT/topics/ID`.
    ///
    /// ```
    /// use gcp_wire::names::TopicName;
    /// let orders = TopicName::parse_in("shop", "orders")?;
    /// assert_eq!(orders, "projects/shop/topics/orders".parse()?);
    /// assert!(TopicName::parse_in("shop", "a/b").is_err());
    /// # Ok::<(), gcp_wire::names::NameError>(())
    /// ```
    ///
    /// A subscription whose topic was deleted reports its topic as `_deleted-topic_`, which is
    /// not a name and does not parse.
    TopicName,
    "topics"
);

pubsub_name!(
    /// The full name of a Pub/Sub subscription, `projects/PROJECT/subscriptions/ID`.
    SubscriptionName,
    "subscriptions"
);

pubsub_name!(
    /// The full name of a Pub/Sub snapshot, `projects/PROJECT/snapshots/ID`.
    SnapshotName,
    "snapshots"
);

/// The full name of a Cloud Tasks queue, `projects/PROJECT/locations/LOCATION/queues/ID`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName {
    full: Arc<str>,
}

impl QueueName {
    const FORM: &'static str = "projects/PROJECT/locations/LOCATION/queues/ID";

    /// The name of queue `id` at `location` in `project`.
    ///
    /// # Errors
    ///
    /// A [`NameError`] that quotes the offending value and names the rule.
    pub fn new(project: &str, location: &str, id: &str) -> Result<Self, NameError> {
        rule::project(project)?;
        rule::location(location)?;
        rule::queue_id(id)?;
        let full = format!("projects/{project}/locations/{location}/queues/{id}");
        Ok(Self { full: full.into() })
    }

    /// The queue that `text` means at `location` in `project`: a bare id, or a full name.
    ///
    /// # Errors
    ///
    /// A [`NameError`] that quotes the offending value and names the rule.
    pub fn parse_in(project: &str, location: &str, text: &str) -> Result<Self, NameError> {
        if text.starts_with("projects/") {
            text.parse()
        } else {
            Self::new(project, location, text)
        }
    }

    /// The project, for example `example.com:shop`.
    #[must_use]
    pub fn project(&self) -> &str {
        rule::segment(&self.full, 1)
    }

    /// The location, for example `us-central1`.
    #[must_use]
    pub fn location(&self) -> &str {
        rule::segment(&self.full, 3)
    }

    /// The last part of the name.
    #[must_use]
    pub fn id(&self) -> &str {
        rule::segment(&self.full, 5)
    }

    /// The full name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.full
    }

    /// The name of the location that holds the queue, `projects/PROJECT/locations/LOCATION`,
    /// which is the parent that `CreateQueue` asks for.
    #[must_use]
    pub fn parent(&self) -> String {
        format!("projects/{}/locations/{}", self.project(), self.location())
    }

    /// The full name of task `id` in this queue.
    ///
    /// # Errors
    ///
    /// A [`NameError`] when `id` is not 1 to 500 letters, digits, hyphens or underscores.
    pub fn task(&self, id: &str) -> Result<String, NameError> {
        rule::task_id(id)?;
        Ok(format!("{}/tasks/{id}", self.full))
    }
}

impl FromStr for QueueName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            ["projects", project, "locations", location, "queues", id] => {
                Self::new(project, location, id)
            }
            _ => Err(NameError::form(text, Self::FORM)),
        }
    }
}

plain_text!(QueueName);

#[cfg(test)]
mod tests;
