//! What a source saves with an epoch.

mod body;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use connector_core::{StateError, Versioned, ledger::View};
use gcp_wire::SubscriptionName;

use crate::{
    machine::{MessageKey, RestoredGroup, SeenView},
    start::SeekId,
};

/// What a source saves with an epoch: the ids of messages that a commit of the epoch settles.
///
/// It names everything that is sealed, everything that is committed and not confirmed, and what the
/// seen window holds; no payload and no ack id. Restoring it equals having committed the epoch,
/// whatever was in flight. An id takes at most 12 bytes, usually 2 to 5.
#[derive(Clone)]
pub struct SourceState {
    instance: Arc<str>,
    subscriptions: Vec<Part>,
    /// The seek after which it was taken: a later one makes it say nothing.
    sought: Option<SeekId>,
}

/// What the state says about one subscription.
#[derive(Clone)]
struct Part {
    name: Arc<str>,
    groups: Vec<Group>,
}

/// Ids that share a guard and a lifetime.
#[derive(Clone)]
struct Group {
    ids: Ids,
    /// Nanoseconds since the Unix epoch: what was published later is not meant.
    published_by: i64,
    /// What is left of the time in which the ids may come again; `None` for all of it.
    remaining: Option<Duration>,
}

/// Ids as the machine shares them, or as they were decoded.
#[derive(Clone)]
enum Ids {
    Ledger(View<MessageKey>),
    Seen(SeenView),
    Listed(Arc<Vec<MessageKey>>),
}

impl Ids {
    fn each(&self, mut take: impl FnMut(&MessageKey)) {
        match self {
            Self::Ledger(view) => view.iter().for_each(&mut take),
            Self::Seen(view) => view.iter().for_each(&mut take),
            Self::Listed(ids) => ids.iter().for_each(&mut take),
        }
    }

    fn len(&self) -> usize {
        let mut len = 0;
        self.each(|_| len += 1);
        len
    }
}

impl SourceState {
    /// The state of a running source. Shares the ids; encoding them needs no lock.
    pub(crate) fn live(
        instance: Arc<str>,
        subscription: SubscriptionName,
        published_by: i64,
        held: View<MessageKey>,
        seen: Vec<SeenView>,
    ) -> Self {
        let mut groups = Vec::with_capacity(seen.len() + 1);
        if !held.is_empty() {
            groups.push(Group {
                ids: Ids::Ledger(held),
                published_by,
                remaining: None,
            });
        }
        groups.extend(seen.into_iter().map(|view| Group {
            published_by: view.published_by,
            remaining: Some(view.remaining),
            ids: Ids::Seen(view),
        }));
        Self {
            instance,
            subscriptions: vec![Part {
                name: subscription.as_str().into(),
                groups,
            }],
            sought: None,
        }
    }

    /// The same, taken by a source that reads after this seek.
    pub(crate) fn after(mut self, sought: Option<SeekId>) -> Self {
        self.sought = sought;
        self
    }

    /// The seek after which the state was taken.
    pub(crate) fn sought(&self) -> Option<SeekId> {
        self.sought
    }

    /// The states of a source's splits, of different subscriptions, as the source's one.
    pub(crate) fn join(splits: impl IntoIterator<Item = Self>) -> Option<Self> {
        splits.into_iter().reduce(|mut all, split| {
            all.subscriptions.extend(split.subscriptions);
            all
        })
    }

    /// The number of messages that the state names.
    #[must_use]
    pub fn named(&self) -> usize {
        let groups = self.subscriptions.iter().flat_map(|part| &part.groups);
        groups.map(|group| group.ids.len()).sum()
    }

    /// What the state says about a subscription.
    pub(crate) fn groups_of(&self, subscription: &SubscriptionName) -> Vec<RestoredGroup> {
        let parts = self.subscriptions.iter();
        let groups = parts
            .filter(|part| *part.name == *subscription.as_str())
            .flat_map(|part| &part.groups);
        groups
            .map(|group| {
                let mut ids = Vec::new();
                group.ids.each(|id| ids.push(id.clone()));
                RestoredGroup {
                    ids,
                    published_by: group.published_by,
                    remaining: group.remaining,
                }
            })
            .collect()
    }
}

// Ids by the million do not belong into a log.
impl fmt::Debug for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.subscriptions.iter().map(|part| &*part.name).collect();
        f.debug_struct("SourceState")
            .field("instance", &self.instance)
            .field("subscriptions", &names)
            .field("named", &self.named())
            .finish()
    }
}

impl Versioned for SourceState {
    const CONNECTOR: &'static str = "pubsub-source";
    const VERSION: u32 = 2;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        body::encode(self)
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        // Version 2 says after which seek it was taken, which version 1 did not know of.
        if !(1..=Self::VERSION).contains(&version) {
            return Err(StateError::UnknownVersion {
                connector: Self::CONNECTOR,
                found: version,
                newest: Self::VERSION,
            });
        }
        body::decode(instance, body).map_err(|problem| StateError::Damaged {
            connector: Self::CONNECTOR,
            version,
            problem,
        })
    }
}

connector_core::serde_through_envelope!(SourceState);

#[cfg(test)]
mod tests {
    use connector_core::SavedState;
    use proptest::prelude::*;

    use super::*;

    fn listed(ids: Vec<MessageKey>, published_by: i64, remaining: Option<u64>) -> Group {
        Group {
            ids: Ids::Listed(Arc::new(ids)),
            published_by,
            remaining: remaining.map(Duration::from_millis),
        }
    }

    fn state(groups: Vec<Group>) -> SourceState {
        SourceState {
            instance: "orders".into(),
            subscriptions: vec![Part {
                name: "projects/demo-project/subscriptions/s11".into(),
                groups,
            }],
            sought: None,
        }
    }

    fn name() -> SubscriptionName {
        "projects/demo-project/subscriptions/s11".parse().unwrap()
    }

    fn round_trip(state: &SourceState) -> SourceState {
        SavedState::of(state).open().unwrap()
    }

    /// What the golden files hold.
    fn golden() -> SourceState {
        let numbers = [10_000_000_000_000_000, 10_000_000_000_000_001, 7, u64::MAX];
        let mut ids: Vec<MessageKey> = numbers.into_iter().map(MessageKey::Number).collect();
        ids.push(MessageKey::Text("a-text-id".into()));
        state(vec![
            listed(ids, 1_700_000_000_123_456_789, None),
            listed(vec![MessageKey::Number(42)], -5, Some(61_500)),
        ])
    }

    fn assert_is_golden(state: &SourceState) {
        assert_eq!(state.instance(), "orders");
        let groups = state.groups_of(&name());
        assert_eq!(groups.len(), 2);
        let ids = &groups[0].ids;
        assert_eq!(ids.len(), 5);
        for number in [10_000_000_000_000_000, 10_000_000_000_000_001, 7, u64::MAX] {
            assert!(ids.contains(&MessageKey::Number(number)));
        }
        assert!(ids.contains(&MessageKey::Text("a-text-id".into())));
        assert_eq!(groups[0].published_by, 1_700_000_000_123_456_789);
        assert_eq!(groups[0].remaining, None);
        assert_eq!(groups[1].ids, [MessageKey::Number(42)]);
        assert_eq!(groups[1].published_by, -5);
        assert_eq!(groups[1].remaining, Some(Duration::from_millis(61_500)));
    }

    #[test]
    fn the_golden_file_of_version_1_decodes_for_ever() {
        let bytes = include_bytes!("../tests/data/source-state-v1.bin");
        let state = SourceState::decode_body(1, "orders", Bytes::from_static(bytes)).unwrap();
        assert_is_golden(&state);
        assert_eq!(state.sought(), None);
    }

    #[test]
    fn the_golden_file_of_version_2_decodes_for_ever() {
        let bytes = include_bytes!("../tests/data/source-state-v2.bin");
        let state = SourceState::decode_body(2, "orders", Bytes::from_static(bytes)).unwrap();
        assert_is_golden(&state);
        let sought = Some(SeekId(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10));
        assert_eq!(state.sought(), sought);
        assert_eq!(
            SourceState::VERSION,
            2,
            "a new version gets its own golden file"
        );
        assert_eq!(
            golden().after(sought).encode_body(),
            bytes.as_slice(),
            "a version's encoding is fixed"
        );
    }

    #[test]
    fn an_unknown_version_is_refused_with_both_numbers() {
        let error = SourceState::decode_body(3, "orders", Bytes::new()).unwrap_err();
        assert!(matches!(
            error,
            StateError::UnknownVersion {
                found: 3,
                newest: 2,
                ..
            }
        ));
    }

    #[test]
    fn consecutive_ids_take_two_bytes_and_any_numeric_id_at_most_twelve() {
        let base = 10_000_000_000_000_000;
        let dense = state(vec![listed(
            (base..base + 1000).map(MessageKey::Number).collect(),
            0,
            None,
        )]);
        assert!(dense.encode_body().len() < 2 * 1000 + 100);

        let sparse = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let ids = (0..1000).map(sparse).map(MessageKey::Number).collect();
        let body = state(vec![listed(ids, 0, None)]).encode_body();
        assert!(body.len() < 12 * 1000, "{} bytes", body.len());
    }

    fn id() -> impl Strategy<Value = MessageKey> {
        prop_oneof![
            any::<u64>().prop_map(MessageKey::Number),
            "[a-z]{1,8}".prop_map(|text| MessageKey::of(&text)),
        ]
    }

    proptest! {
        #[test]
        fn what_was_saved_is_restored(
            groups in prop::collection::vec(
                (prop::collection::btree_set(id(), 0..40), any::<i64>(), prop::option::of(0u64..1_000_000)),
                0..4,
            )
        ) {
            let groups: Vec<Group> = groups
                .into_iter()
                .map(|(ids, by, left)| listed(ids.into_iter().collect(), by, left))
                .collect();
            let expected = state(groups).groups_of(&name());
            let restored = round_trip(&state(
                expected
                    .iter()
                    .map(|group| Group {
                        ids: Ids::Listed(Arc::new(group.ids.clone())),
                        published_by: group.published_by,
                        remaining: group.remaining,
                    })
                    .collect(),
            ));
            let found = restored.groups_of(&name());
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                let mut ids = found.ids.clone();
                ids.sort();
                prop_assert_eq!(&ids, &expected.ids);
                prop_assert_eq!(found.published_by, expected.published_by);
                prop_assert_eq!(found.remaining, expected.remaining);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(state) = SourceState::decode_body(1, "x", bytes.into()) {
                prop_assert!(state.named() < 200 * 200);
            }
        }

        #[test]
        fn no_damage_of_one_byte_makes_it_panic(at in 0usize..200, byte in any::<u8>()) {
            let mut bytes = golden().encode_body().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(state) = SourceState::decode_body(1, "orders", bytes.into()) {
                prop_assert!(state.named() <= 200);
            }
        }
    }
}
