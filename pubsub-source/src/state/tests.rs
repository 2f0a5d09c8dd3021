//! What a state keeps, and in how much room.

use std::time::{Duration, UNIX_EPOCH};

use connector_core::SavedState;
use proptest::prelude::*;

use super::*;
use crate::{
    machine::{AckIds, MessageKey},
    start::SeekId,
};

const SECOND: Duration = Duration::from_secs(1);

fn listed(ids: Vec<MessageKey>, published_by: i64, remaining: Option<u64>) -> Group {
    Group {
        ids: Ids::Listed(Arc::new(ids), Arc::default()),
        lease: Lease::Unknown,
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
            unfinished: Vec::new(),
            behind: Vec::new(),
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

/// What the golden file of version 1 holds.
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
    let groups = state.groups_of(&name(), UNIX_EPOCH);
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
    let bytes = include_bytes!("../../tests/data/source-state-v1.bin");
    let state = SourceState::decode_body(1, "orders", Bytes::from_static(bytes)).unwrap();
    assert_is_golden(&state);
    assert_eq!(state.sought(), None);
    assert!(state.groups_of(&name(), UNIX_EPOCH)[0].held.is_none());
    assert_eq!(
        golden().encode_body(),
        bytes.as_slice(),
        "what version 1 could say is said as it was"
    );
}

#[test]
fn the_golden_file_of_version_2_decodes_for_ever() {
    let bytes = include_bytes!("../../tests/data/source-state-v2.bin");
    let state = SourceState::decode_body(2, "orders", Bytes::from_static(bytes)).unwrap();
    assert_is_golden(&state);
    let sought = Some(SeekId(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10));
    assert_eq!(state.sought(), sought);
    assert_eq!(
        golden().after(sought).encode_body(),
        bytes.as_slice(),
        "a version's encoding is fixed"
    );
}

#[test]
fn the_keys_in_which_a_host_is_behind_are_restored() {
    let mut saved = state(Vec::new());
    saved.subscriptions[0].behind = vec!["customer-7".into(), "".into()];
    let restored = round_trip(&saved);
    assert_eq!(
        restored.behind_in(&name()),
        ["customer-7".into(), "".into()]
    );
    let other = "projects/demo-project/subscriptions/other".parse().unwrap();
    assert!(restored.behind_in(&other).is_empty());
}

/// When the leases of the golden file with ack ids end.
const LEASED_UNTIL: Duration = Duration::from_millis(1_700_000_042_500);

/// What the golden file with ack ids holds: that of version 1, and deliveries with their ack ids.
fn golden_with_ack_ids() -> SourceState {
    let mut state = golden();
    let ids = [9, 8].map(MessageKey::Number);
    let ids = ids.into_iter().chain([MessageKey::Text("text".into())]);
    let mut ack_ids = AckIds::default();
    for ack_id in ["ack-9", "ack-8", "ack-text"] {
        assert!(ack_ids.push(ack_id.as_bytes()));
    }
    state.subscriptions[0].groups.push(Group {
        ids: Ids::Listed(Arc::new(ids.collect()), Arc::new(ack_ids)),
        published_by: 77,
        remaining: None,
        lease: Lease::Until(UNIX_EPOCH + LEASED_UNTIL),
    });
    state
}

#[test]
fn the_golden_file_with_ack_ids_decodes_for_ever() {
    let bytes = include_bytes!("../../tests/data/source-state-v2-ack-ids.bin");
    let state = SourceState::decode_body(2, "orders", Bytes::from_static(bytes)).unwrap();
    let opened = UNIX_EPOCH + LEASED_UNTIL - SECOND * 7;
    let groups = state.groups_of(&name(), opened);
    let held = groups[2].held.as_ref().unwrap();
    assert_eq!(held.lease_left, SECOND * 7);
    let pairs = held.keys.iter().enumerate();
    let pairs: Vec<_> = pairs.map(|(at, key)| (key, held.ack_ids.get(at))).collect();
    let (eight, nine) = (MessageKey::Number(8), MessageKey::Number(9));
    let text = MessageKey::Text("text".into());
    assert_eq!(
        pairs,
        [
            (&eight, b"ack-8".as_slice()),
            (&nine, b"ack-9"),
            (&text, b"ack-text")
        ]
    );
    assert_eq!(
        SourceState::VERSION,
        2,
        "a new version gets its own golden file"
    );
    assert_eq!(
        golden_with_ack_ids().encode_body(),
        bytes.as_slice(),
        "a version's encoding is fixed"
    );
}

#[test]
fn a_lease_that_ended_while_nobody_ran_leaves_nothing_to_acknowledge() {
    let later = UNIX_EPOCH + LEASED_UNTIL + SECOND;
    let groups = round_trip(&golden_with_ack_ids()).groups_of(&name(), later);
    assert_eq!(groups[2].held.as_ref().unwrap().lease_left, Duration::ZERO);
}

/// What the golden file with unfinished messages holds: that of version 1, and two of them.
fn golden_with_unfinished() -> SourceState {
    let mut state = golden();
    state.subscriptions[0].unfinished = vec![
        Unfinished {
            key: MessageKey::Number(10_000_000_000_000_002),
            published: 1_700_000_000_123_456_789,
            records: 3,
            remaining: SECOND * 660,
        },
        Unfinished {
            key: MessageKey::Text("a-text-id".into()),
            published: -5,
            records: 1,
            remaining: Duration::from_millis(61_500),
        },
    ];
    state
}

#[test]
fn the_golden_file_with_unfinished_messages_decodes_for_ever() {
    let bytes = include_bytes!("../../tests/data/source-state-v2-unfinished.bin");
    let state = SourceState::decode_body(2, "orders", Bytes::from_static(bytes)).unwrap();
    assert_is_golden(&state);
    let expected = golden_with_unfinished();
    assert_eq!(state.unfinished(), 2);
    assert_eq!(
        state.unfinished_of(&name()),
        expected.unfinished_of(&name())
    );
    assert_eq!(
        expected.encode_body(),
        bytes.as_slice(),
        "a version's encoding is fixed"
    );
}

#[test]
fn an_unfinished_message_that_was_not_begun_is_damage() {
    let mut state = golden_with_unfinished();
    state.subscriptions[0].unfinished[0].records = 0;
    let error = SourceState::decode_body(2, "orders", state.encode_body()).unwrap_err();
    assert!(error.to_string().contains("not begun"), "{error}");
}

#[test]
fn a_list_of_ack_ids_of_another_length_is_damage() {
    let mut bytes = golden_with_ack_ids().encode_body().to_vec();
    // The last ack id becomes a field that nobody knows.
    let at = bytes.windows(8).position(|part| part == b"ack-text");
    bytes[at.unwrap() - 2] = 13 << 3 | 2;
    let error = SourceState::decode_body(2, "orders", bytes.into()).unwrap_err();
    assert!(
        error.to_string().contains("one ack id for each id"),
        "{error}"
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

    // As the service gives them: 16 or 17 digits, dense within a publish request and far apart
    // between requests and partitions.
    let mut realistic = Vec::new();
    for request in 0..200u64 {
        let spread = request.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 8_000_000_000_000_000;
        let first = 10_000_000_000_000_000 + spread;
        realistic.extend((first..first + 1 + request % 7).map(MessageKey::Number));
    }
    for few in [1, 10, 100, realistic.len()] {
        let nothing = state(vec![listed(Vec::new(), 0, None)]).encode_body().len();
        let some = state(vec![listed(realistic[..few].to_vec(), 0, None)]);
        let bytes = some.encode_body().len() - nothing;
        assert!(bytes <= 12 * few, "{bytes} bytes for {few} ids");
    }

    let sparse = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let ids = (0..1000).map(sparse).map(MessageKey::Number).collect();
    let body = state(vec![listed(ids, 0, None)]).encode_body();
    assert!(body.len() < 12 * 1000, "{} bytes", body.len());
}

fn id() -> impl Strategy<Value = MessageKey> {
    prop_oneof![
        any::<u64>().prop_map(MessageKey::Number),
        "[a-z]{1,8}".prop_map(|text| MessageKey::of(text.as_bytes())),
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
        let expected = state(groups).groups_of(&name(), UNIX_EPOCH);
        let restored = round_trip(&state(
            expected
                .iter()
                .map(|group| Group {
                    ids: Ids::Listed(Arc::new(group.ids.clone()), Arc::default()),
                    lease: Lease::Unknown,
                    published_by: group.published_by,
                    remaining: group.remaining,
                })
                .collect(),
        ));
        let found = restored.groups_of(&name(), UNIX_EPOCH);
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
