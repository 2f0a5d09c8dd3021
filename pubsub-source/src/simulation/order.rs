//! The order of keys, as it was published and as it came out.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;

/// What was published with each key, in order.
#[derive(Default)]
pub(super) struct Order {
    keys: BTreeMap<u64, &'static str>,
    numbers: BTreeMap<&'static str, Vec<u64>>,
}

/// How far a key has come out in a line of incarnations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// The last message handed out.
    end: u64,
    /// The greatest one handed out.
    most: u64,
    /// It went back, and nothing new has come out since.
    back: bool,
}

/// How far each key has come out.
pub(super) type AllProgress = BTreeMap<&'static str, Progress>;

/// What a hand-out was, in its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// The first time, after everything before it.
    On,
    /// Once more, from an earlier point on.
    Back,
    /// Once more, behind an earlier message that was.
    Again,
}

impl Order {
    /// A message is published. Answers its key; the empty one is none.
    pub(super) fn publish(&mut self, number: u64, key: &'static str) -> &'static str {
        if !key.is_empty() {
            self.keys.insert(number, key);
            self.numbers.entry(key).or_default().push(number);
        }
        key
    }

    /// A message is handed out: its key goes on without a gap, or back. `done` is what need not
    /// come out.
    pub(super) fn hand_out(
        &self,
        progress: &mut AllProgress,
        number: u64,
        done: impl Fn(u64) -> bool,
    ) -> Result<Option<Move>, Violation> {
        let Some(&key) = self.keys.get(&number) else {
            return Ok(None);
        };
        let before = progress.get(key).copied();
        let skipped: BTreeSet<u64> = self.numbers[key]
            .iter()
            .copied()
            .filter(|other| before.is_none_or(|before| *other > before.end) && *other < number)
            .filter(|other| !done(*other))
            .collect();
        if !skipped.is_empty() {
            return Err(format!(
                "key {key}: {number} was handed out after {before:?}, without {skipped:?}"
            ));
        }
        let most = before.map_or(number, |before| before.most.max(number));
        let back = before
            .is_some_and(|before| number <= before.end || (before.back && number <= before.most));
        let end = number;
        progress.insert(key, Progress { end, most, back });
        Ok(Some(match before {
            Some(before) if number <= before.end => Move::Back,
            Some(before) if number <= before.most => Move::Again,
            Some(_) | None => Move::On,
        }))
    }

    /// Whether a key went back, and nothing new has come out of it since.
    pub(super) fn went_back(&self, progress: &AllProgress, number: u64) -> bool {
        let progress = self.keys.get(&number).and_then(|key| progress.get(key));
        progress.is_some_and(|progress| progress.back)
    }

    pub(super) fn has_key(&self, number: u64) -> bool {
        self.keys.contains_key(&number)
    }
}
