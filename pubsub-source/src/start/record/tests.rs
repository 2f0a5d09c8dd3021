use std::time::Duration;

use connector_core::SavedState;
use proptest::prelude::*;

use super::*;

fn names(count: usize) -> Vec<SubscriptionName> {
    let name = |number| SubscriptionName::new("demo-project", &format!("sub-{number}"));
    (0..count).map(|number| name(number).unwrap()).collect()
}

/// What the golden files of version 1 hold.
fn golden() -> [StartRecord; 3] {
    let at = Seek {
        id: SeekId(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
        target: SeekTarget::Time(Duration::new(1_700_000_000, 123_456_789)),
    };
    let snapshot = Seek {
        id: SeekId(7),
        target: SeekTarget::Snapshot("projects/demo-project/snapshots/before".parse().unwrap()),
    };
    [
        StartRecord::intended("orders".into(), names(2), at),
        StartRecord::done("orders".into(), names(1), Some(snapshot)),
        StartRecord::done("orders".into(), names(1), None),
    ]
}

const GOLDEN: [&[u8]; 3] = [
    include_bytes!("../../../tests/data/start-record-v1-intended.bin"),
    include_bytes!("../../../tests/data/start-record-v1-snapshot.bin"),
    include_bytes!("../../../tests/data/start-record-v1-continued.bin"),
];

#[test]
fn the_golden_files_of_version_1_decode_for_ever() {
    for (bytes, record) in GOLDEN.into_iter().zip(golden()) {
        let decoded = StartRecord::decode_body(1, "orders", Bytes::from_static(bytes)).unwrap();
        assert_eq!(decoded, record);
        assert_eq!(record.encode_body(), bytes, "a version's encoding is fixed");
    }
    assert_eq!(StartRecord::VERSION, 1, "a new version gets its own files");
}

#[test]
fn an_unknown_version_is_refused_with_both_numbers() {
    let error = StartRecord::decode_body(2, "orders", Bytes::new()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("version 2") && text.contains("up to 1"),
        "{text}"
    );
}

#[test]
fn an_intent_without_a_target_is_damaged() {
    // An empty message is not done, and says nothing else.
    let error = StartRecord::decode_body(1, "orders", Bytes::new()).unwrap_err();
    assert!(matches!(error, StateError::Damaged { .. }), "{error:?}");
}

fn target() -> impl Strategy<Value = SeekTarget> {
    prop_oneof![
        (any::<u64>(), 0u32..1_000_000_000)
            .prop_map(|(seconds, nanos)| SeekTarget::Time(Duration::new(seconds, nanos))),
        "[a-z]{3,20}".prop_map(|id| {
            SeekTarget::Snapshot(format!("projects/demo/snapshots/s{id}").parse().unwrap())
        }),
    ]
}

proptest! {
    #[test]
    fn what_was_saved_is_restored(
        id in any::<u128>(), target in target(), count in 0usize..5, done in any::<bool>(), sought in any::<bool>(),
    ) {
        let seek = Seek { id: SeekId(id), target };
        let record = if done {
            StartRecord::done("job".into(), names(count), sought.then_some(seek))
        } else {
            StartRecord::intended("job".into(), names(count), seek)
        };
        let text = serde_json::to_string(&record).unwrap();
        prop_assert_eq!(&serde_json::from_str::<StartRecord>(&text).unwrap(), &record);
        prop_assert_eq!(SavedState::of(&record).open::<StartRecord>().unwrap(), record);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(record) = StartRecord::decode_body(1, "x", bytes.into()) {
            prop_assert!(record.is_done() || record.seek().is_some());
        }
    }

    #[test]
    fn no_damage_of_one_byte_makes_it_panic(which in 0usize..3, at in 0usize..200, byte in any::<u8>()) {
        let mut bytes = golden()[which].encode_body().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(record) = StartRecord::decode_body(1, "x", bytes.into()) {
            prop_assert!(record.is_done() || record.seek().is_some());
        }
    }
}
