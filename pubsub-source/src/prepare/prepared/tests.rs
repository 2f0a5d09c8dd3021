use gcp_wire::SubscriptionName;
use proptest::prelude::*;

use super::*;

fn names(count: usize) -> Vec<SubscriptionName> {
    let name = |number| SubscriptionName::new("demo-project", &format!("sub-{number}"));
    (0..count).map(|number| name(number).unwrap()).collect()
}

/// What the golden file of version 1 holds.
fn golden() -> Prepared {
    let plan = SplitPlan::ordered(names(2), 3).unwrap();
    let sought = SeekId(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
    Prepared::new(plan, "orders".into(), Some(sought), DecodeFailure::Nack)
}

#[test]
fn the_golden_file_of_version_1_decodes_for_ever() {
    let bytes = include_bytes!("../../../tests/data/prepared-v1.bin");
    let decoded = Prepared::decode_body(1, "orders", Bytes::from_static(bytes)).unwrap();
    assert_eq!(decoded, golden());
    assert_eq!(
        golden().encode_body(),
        bytes.as_slice(),
        "a version's encoding is fixed"
    );
    assert_eq!(Prepared::VERSION, 1, "a new version gets its own file");
}

#[test]
fn an_unknown_version_is_refused_with_both_numbers() {
    let text = Prepared::decode_body(9, "orders", Bytes::new())
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("version 9") && text.contains("up to 1"),
        "{text}"
    );
}

#[test]
fn a_reader_with_nothing_to_read_is_none_and_one_beyond_them_an_error() {
    let prepared = golden();
    assert!(prepared.reader(0, 3).unwrap().is_some());
    assert!(prepared.reader(2, 3).unwrap().is_none());
    assert!(prepared.reader(3, 3).is_err());
    assert!(prepared.reader(0, 0).is_err());
}

proptest! {
    #[test]
    fn what_was_handed_over_arrives(
        count in 1usize..5, readers in 1usize..9, ordered in any::<bool>(), id in prop::option::of(any::<u128>()), policy in 0usize..3,
    ) {
        let plan = if ordered {
            SplitPlan::ordered(names(count), readers)
        } else {
            SplitPlan::new(names(count), readers)
        };
        let policy = [DecodeFailure::Fail, DecodeFailure::Drop, DecodeFailure::Nack][policy];
        let prepared = Prepared::new(plan.unwrap(), "job".into(), id.map(SeekId), policy);
        let text = serde_json::to_string(&prepared).unwrap();
        prop_assert_eq!(serde_json::from_str::<Prepared>(&text).unwrap(), prepared);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(prepared) = Prepared::decode_body(1, "x", bytes.into()) {
            prop_assert!(prepared.plan().readers() > 0);
        }
    }
}
