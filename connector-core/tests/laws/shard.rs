//! Shards stay where they are, and are even.

use connector_core::shard;
use proptest::prelude::*;

/// Computed with Python's hashlib: the first eight bytes of SHA-256, big-endian, modulo n. A task
/// queue or a reader that a key was given to yesterday is the same tomorrow.
#[test]
fn shards_are_pinned() {
    for (key, n, expected) in [
        (&b""[..], 4, 0),
        (b"customer-1", 4, 3),
        (b"customer-2", 4, 0),
        (b"customer-17", 7, 5),
        (b"\xff\x00", 500, 69),
        (b"orders", 1, 0),
        (b"customer-1", 1_000_003, 900_864),
    ] {
        assert_eq!(shard(key, n), expected, "{key:?} of {n}");
    }
}

#[test]
fn keys_spread_evenly() {
    for n in [2, 4, 7, 16] {
        let mut counts = vec![0usize; n];
        for key in 0..20_000 {
            counts[shard(format!("customer-{key}"), n)] += 1;
        }
        let even = 20_000 / n;
        for (at, count) in counts.iter().enumerate() {
            // Five standard deviations of a fair draw at the smallest share.
            assert!(
                count.abs_diff(even) < even / 5,
                "shard {at} of {n} has {count} keys, a fair share is {even}"
            );
        }
    }
}

#[test]
#[should_panic(expected = "no shard among zero")]
fn no_shard_exists_among_zero() {
    assert_eq!(shard("key", 0), 0);
}

proptest! {
    #[test]
    fn a_shard_is_one_of_its_n(key in any::<Vec<u8>>(), n in 1usize..10_000) {
        prop_assert!(shard(&key, n) < n);
    }
}
