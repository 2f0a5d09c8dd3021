//! The attributes of a message, read when they are asked for.

use std::{
    collections::HashMap,
    sync::{LazyLock, OnceLock},
};

use gcp_wire::pulled;

static NONE: LazyLock<HashMap<String, String>> = LazyLock::new(HashMap::new);

/// A message's attributes: as they came, in one piece, until somebody wants the map of them.
///
/// Most hosts look at a few of a message's attributes or at none, and a map costs an allocation for
/// each key and each value.
#[derive(Clone, Default)]
pub(crate) struct Attributes(Option<Box<Given>>);

#[derive(Clone)]
struct Given {
    encoded: Box<[u8]>,
    map: OnceLock<HashMap<String, String>>,
}

impl Attributes {
    /// Copies them out of their response.
    pub(crate) fn of(attributes: pulled::Attributes<'_>) -> Self {
        if attributes.is_empty() {
            return Self::default();
        }
        Self(Some(Box::new(Given {
            encoded: attributes.encoded().into(),
            map: OnceLock::new(),
        })))
    }

    pub(crate) fn map(&self) -> &HashMap<String, String> {
        let Some(given) = &self.0 else { return &NONE };
        given.map.get_or_init(|| {
            let entries = pulled::Attributes::new(&given.encoded).iter();
            entries
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect()
        })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let given = self.0.as_ref()?;
        match given.map.get() {
            Some(map) => map.get(key).map(String::as_str),
            None => pulled::Attributes::new(&given.encoded).get(key),
        }
    }

    /// What they count for in the buffer.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |given| given.encoded.len())
    }

    /// The bytes of their keys and values.
    pub(crate) fn text(&self) -> usize {
        self.0.as_ref().map_or(0, |given| {
            let entries = pulled::Attributes::new(&given.encoded).iter();
            entries.map(|(key, value)| key.len() + value.len()).sum()
        })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.map().len()
    }

    #[cfg(test)]
    pub(crate) fn fake(key: &str, value: &str) -> Self {
        use gcp_wire::proto::pubsub::PubsubMessage;
        use prost::Message as _;

        let message = PubsubMessage {
            attributes: [(key.to_owned(), value.to_owned())].into(),
            ..PubsubMessage::default()
        };
        Self::of(pulled::Attributes::new(&message.encode_to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_the_same_before_and_after_the_map_was_asked_for() {
        let attributes = Attributes::fake("k", "v");
        assert_eq!(
            (attributes.get("k"), attributes.get("x")),
            (Some("v"), None)
        );
        assert_eq!(attributes.map()["k"], "v");
        assert_eq!(
            (attributes.get("k"), attributes.get("x")),
            (Some("v"), None)
        );
        assert_eq!(attributes.clone().map(), attributes.map());
        assert!(attributes.bytes() >= 2);
    }

    #[test]
    fn no_attributes_are_an_empty_map_and_cost_nothing() {
        let attributes = Attributes::of(pulled::Attributes::default());
        assert!(attributes.map().is_empty() && attributes.get("k").is_none());
        assert_eq!((attributes.bytes(), attributes.len()), (0, 0));
    }
}
