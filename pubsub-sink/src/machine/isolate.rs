//! Finding the guilty message of a refused request.
//!
//! The service refuses a request as a whole and names nobody. So a refused run of messages is
//! halved until what is refused is one message alone: only that is a verdict on the message. Its
//! neighbours are stored on the way, in their order, for about 2·log₂(n) requests per guilty one
//! instead of n.

use std::ops::Range;

/// What of a batch has no verdict yet: the run that is being sent, and those after it.
#[derive(Debug, Clone)]
pub(super) struct Runs {
    current: Range<usize>,
    /// The later runs, the nearest last.
    later: Vec<Range<usize>>,
}

impl Runs {
    /// Everything in one run.
    pub(super) fn whole(messages: usize) -> Self {
        Self {
            current: 0..messages,
            later: Vec::new(),
        }
    }

    /// The run to send.
    pub(super) fn current(&self) -> Range<usize> {
        self.current.clone()
    }

    /// The current run was refused: goes on with its first half. False when it is one message
    /// alone, which is thereby confirmed to be the guilty one.
    pub(super) fn halve(&mut self) -> bool {
        if self.current.len() <= 1 {
            return false;
        }
        let middle = self.current.start + self.current.len() / 2;
        self.later.push(middle..self.current.end);
        self.current.end = middle;
        true
    }

    /// The current run has its verdict: goes on with the next. False when it was the last.
    pub(super) fn advance(&mut self) -> bool {
        match self.later.pop() {
            Some(next) => {
                self.current = next;
                true
            }
            None => {
                self.current = self.current.end..self.current.end;
                false
            }
        }
    }

    /// Everything without a verdict.
    pub(super) fn rest(&self) -> Range<usize> {
        self.current.start..self.later.first().map_or(self.current.end, |last| last.end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn exactly_the_guilty_are_refused_alone_and_the_others_are_stored_in_order(
            messages in 1usize..200,
            guilty in proptest::collection::btree_set(0usize..200, 0..12),
        ) {
            let guilty: BTreeSet<usize> = guilty.into_iter().filter(|n| *n < messages).collect();
            let mut runs = Runs::whole(messages);
            let mut stored = Vec::new();
            let mut refused = Vec::new();
            let mut requests = 0;
            loop {
                requests += 1;
                let run = runs.current();
                prop_assert_eq!(runs.rest().end, messages);
                if run.clone().any(|n| guilty.contains(&n)) {
                    if runs.halve() {
                        continue;
                    }
                    refused.push(run.start);
                } else {
                    stored.extend(run);
                }
                if !runs.advance() {
                    break;
                }
            }
            let expected: Vec<usize> = (0..messages).filter(|n| !guilty.contains(n)).collect();
            prop_assert_eq!(stored, expected);
            prop_assert_eq!(&refused, &guilty.iter().copied().collect::<Vec<_>>());
            let depth = messages.next_power_of_two().ilog2() as usize;
            prop_assert!(requests <= 1 + 2 * depth * guilty.len());
            prop_assert!(runs.rest().is_empty());
        }
    }
}
