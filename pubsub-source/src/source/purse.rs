//! A source's part in a budget that it shares with other connectors.

use std::{
    sync::Arc,
    task::{Context, Wake, Waker},
};

use connector_core::{Limits, Member};
use tokio::sync::Notify;

use super::shares::minus;

/// What wakes the drivers of a source's splits.
#[derive(Debug)]
pub(super) struct Bells(Vec<Arc<Notify>>);

impl Bells {
    pub(super) fn new(splits: usize) -> Self {
        Self((0..splits).map(|_| Arc::default()).collect())
    }

    pub(super) fn of(&self, split: usize) -> Arc<Notify> {
        Arc::clone(&self.0[split])
    }

    pub(super) fn ring(&self, split: usize) {
        self.0[split].notify_one();
    }
}

/// The budget has room again: whichever split wants it comes and asks.
///
/// Called with the budget's lock free and any source's books locked, so it must take no lock.
impl Wake for Bells {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.iter().for_each(|bell| bell.notify_one());
    }
}

/// Keeps the budget's account of the source equal to what the source holds.
#[derive(Debug)]
pub(super) struct Purse {
    member: Member,
    waker: Waker,
    charged: Limits,
    /// In the budget's queue, or admitted.
    asks: bool,
}

impl Purse {
    pub(super) fn new(member: Member, bells: Arc<Bells>) -> Self {
        Self {
            member,
            waker: Waker::from(bells),
            charged: Limits::default(),
            asks: false,
        }
    }

    /// The source holds this much now. Answers whether one more response may be read, on each
    /// stream, if it wants to read.
    pub(super) fn settle(&mut self, held: Limits, wants: bool) -> bool {
        let (more, less) = (minus(held, self.charged), minus(self.charged, held));
        if less != Limits::default() {
            self.member.release(less);
        }
        if more != Limits::default() {
            self.member.charge(more);
        }
        self.charged = held;
        if wants {
            self.asks = true;
            let mut cx = Context::from_waker(&self.waker);
            return self.member.poll_admit(&mut cx).is_ready();
        }
        // Room that is kept for whoever does not want it is missing for others.
        if std::mem::take(&mut self.asks) {
            self.member.give_up();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use connector_core::Budget;
    use proptest::prelude::*;

    use super::*;

    fn purse(budget: &Budget, name: &str) -> (Purse, Arc<Notify>) {
        let bells = Arc::new(Bells::new(1));
        let bell = bells.of(0);
        (Purse::new(budget.join(name), bells), bell)
    }

    #[tokio::test]
    async fn whoever_waits_is_woken_when_another_source_hands_out() {
        let budget = Budget::new(Limits::items(100));
        let ((mut first, _), (mut second, bell)) = (purse(&budget, "a"), purse(&budget, "b"));
        assert!(first.settle(Limits::new(75, 75), false));
        assert!(second.settle(Limits::new(24, 24), true));
        assert!(!second.settle(Limits::new(26, 26), true));
        assert!(first.settle(Limits::new(10, 10), false));
        bell.notified().await;
        assert!(second.settle(Limits::new(26, 26), true));
    }

    #[test]
    fn room_that_nobody_wants_any_more_goes_to_the_next() {
        let budget = Budget::new(Limits::items(2));
        let ((mut first, _), (mut second, _)) = (purse(&budget, "a"), purse(&budget, "b"));
        assert!(first.settle(Limits::default(), true));
        assert!(first.settle(Limits::default(), false));
        assert!(second.settle(Limits::new(1, 1), true));
    }

    proptest! {
        #[test]
        fn the_budget_knows_what_each_source_holds(
            steps in prop::collection::vec((0usize..3, 0usize..50, 0usize..500, any::<bool>()), 1..100)
        ) {
            let budget = Budget::new(Limits::new(60, 600));
            let mut purses: Vec<Purse> =
                (0..3).map(|at| purse(&budget, &format!("{at}")).0).collect();
            let mut held = [Limits::default(); 3];
            for (at, items, bytes, wants) in steps {
                held[at] = Limits::new(items, bytes);
                let admitted = purses[at].settle(held[at], wants);
                prop_assert!(admitted || wants);
                prop_assert!(admitted || held[at] != Limits::default(), "whoever holds nothing is admitted");
                let holders = budget.holders();
                for (holder, held) in holders.iter().zip(&held) {
                    prop_assert_eq!(holder.held, *held);
                }
                prop_assert!(!holders[at].waiting || !admitted);
            }
            drop(purses);
            prop_assert_eq!(budget.held(), Limits::default());
        }
    }
}
