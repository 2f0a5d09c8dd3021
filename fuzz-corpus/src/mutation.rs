//! Random changes of an input.

use fastrand::Rng;

use crate::corpus::LARGEST;

/// Bytes at which programs change their mind: ends of ranges, continuation bits, lengths.
const TELLING: [u8; 12] = [0, 1, 2, 4, 8, 16, 32, 64, 127, 128, 254, 255];

/// One input, changed in one to eight places.
pub(crate) fn change(rng: &mut Rng, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.u32(1..=8) {
        step(rng, &mut bytes, other);
    }
    bytes.truncate(LARGEST);
    bytes
}

fn step(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = rng.usize(0..=bytes.len());
    let till = rng.usize(at..=bytes.len().min(at + 32));
    match rng.u32(0..9) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.u32(0..8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = telling(rng);
            }
        }
        2 => bytes.insert(at, telling(rng)),
        3 => bytes.insert(at, rng.u8(..)),
        4 => drop(bytes.drain(at..till)),
        5 => bytes.extend_from_within(at..till),
        6 => bytes.truncate(at),
        7 => {
            // A number as protobuf and most of our own formats write one.
            let number = rng.u64(..) >> rng.u32(0..64);
            let width = rng.usize(1..=8);
            let little = number.to_le_bytes();
            bytes.splice(at..till, little.into_iter().take(width));
        }
        _ => {
            let from = rng.usize(0..=other.len());
            let to = rng.usize(from..=other.len());
            bytes.splice(at..till, other.iter().take(to).skip(from).copied());
        }
    }
}

fn telling(rng: &mut Rng) -> u8 {
    rng.choice(TELLING).unwrap_or_default()
}
