//! The messages whose records are being handed out.

use connector_core::Decode;

use crate::message::Message;

/// What is left of a message in hand. Its next record is made already, to know whether the one
/// before it was the last.
pub(super) struct Current<D: Decode<Message>> {
    pub(super) ahead: D::Record,
    pub(super) records: D::Records,
}

/// What is left of the messages in hand, by split: one each at most, and more than one only while
/// splits are paused in the middle.
pub(super) struct Currents<D: Decode<Message>> {
    splits: Vec<Option<Current<D>>>,
    /// How many there are. With none, which is what every message begins with, no split is looked
    /// at.
    count: usize,
}

impl<D: Decode<Message>> Currents<D> {
    /// None of so many splits.
    pub(super) fn new(splits: usize) -> Self {
        Self {
            splits: std::iter::repeat_with(|| None).take(splits).collect(),
            count: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn keep(&mut self, split: usize, current: Current<D>) {
        let before = self.splits[split].replace(current);
        debug_assert!(before.is_none(), "one message of a split at a time");
        self.count += usize::from(before.is_none());
    }

    pub(super) fn take(&mut self, split: usize) -> Option<Current<D>> {
        let current = self.splits[split].take();
        self.count -= usize::from(current.is_some());
        current
    }

    pub(super) fn clear(&mut self) {
        self.splits.fill_with(|| None);
        self.count = 0;
    }

    /// A split whose message may go on: this one, where it is among them.
    pub(super) fn find(
        &self,
        preferred: usize,
        may_go_on: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let goes_on = |split: &usize| self.splits[*split].is_some() && may_go_on(*split);
        let preferred = Some(preferred).filter(goes_on);
        preferred.or_else(|| (0..self.splits.len()).find(goes_on))
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use connector_core::BoxError;

    use super::*;

    /// Makes one record of each message, which the tests put in themselves.
    struct Single;

    impl Decode<Message> for Single {
        type Record = u32;
        type Records = iter::Empty<Result<u32, BoxError>>;

        fn decode(&mut self, _: Message) -> Result<Self::Records, BoxError> {
            Ok(iter::empty())
        }
    }

    fn current(ahead: u32) -> Current<Single> {
        let records = iter::empty();
        Current { ahead, records }
    }

    #[test]
    fn the_preferred_split_goes_first_and_a_paused_one_is_passed_over() {
        let mut currents: Currents<Single> = Currents::new(4);
        assert_eq!(currents.find(0, |_| true), None);
        currents.keep(1, current(10));
        currents.keep(3, current(30));
        assert_eq!(currents.find(3, |_| true), Some(3));
        assert_eq!(currents.find(0, |_| true), Some(1));
        assert_eq!(currents.find(1, |split| split != 1), Some(3));
        assert_eq!(currents.find(1, |_| false), None);
    }

    #[test]
    fn what_is_taken_or_cleared_is_found_no_more_and_what_is_left_is() {
        let mut currents: Currents<Single> = Currents::new(3);
        currents.keep(0, current(1));
        currents.keep(2, current(2));
        assert_eq!(currents.take(0).map(|taken| taken.ahead), Some(1));
        assert!(currents.take(0).is_none() && currents.take(1).is_none());
        assert_eq!(currents.find(0, |_| true), Some(2));
        assert!(!currents.is_empty());
        assert_eq!(currents.take(2).map(|taken| taken.ahead), Some(2));
        assert!(currents.is_empty());
        assert_eq!(currents.find(2, |_| true), None);

        currents.keep(1, current(3));
        currents.clear();
        assert!(currents.is_empty() && currents.take(1).is_none());
        currents.keep(1, current(4));
        assert_eq!(currents.find(0, |_| true), Some(1));
    }
}
