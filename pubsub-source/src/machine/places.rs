//! Where the deliveries of a batch stand in the ledger.

use connector_core::ledger::Place;

/// The places of a batch's deliveries.
///
/// What came together is mostly handed out together and in order, and then one place says where all
/// of them are: eight bytes for each would be as much as a million held deliveries have left.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The delivery that the run begins with, its place, and how many more places follow.
    run: Option<(usize, Place, usize)>,
    /// The place of each delivery once they are no run any more; what belongs to a delivery that is
    /// not out is a stand-in.
    each: Vec<Place>,
}

impl Places {
    /// The place of a delivery that has one.
    pub(super) fn get(&self, index: usize) -> Place {
        match self.run {
            Some((first, place, _)) => place.after(index - first),
            None => self.each[index],
        }
    }

    /// The places of deliveries from this one on, at most `most`: the first of them, and how many
    /// follow each other.
    pub(super) fn run(&self, index: usize, most: usize) -> Option<(Place, usize)> {
        if let Some((first, place, count)) = self.run {
            let skipped = index.checked_sub(first)?;
            let left = count.checked_sub(skipped).filter(|left| *left > 0)?;
            return Some((place.after(skipped), left.min(most)));
        }
        let first = *self.each.get(index)?;
        let rest = self.each.get(index..)?.iter().take(most);
        let follows = rest
            .enumerate()
            .take_while(|(at, place)| first.after(*at) == **place);
        Some((first, follows.count()))
    }

    /// Deliveries from this one on, of `all`, have places that follow each other.
    pub(super) fn set(&mut self, index: usize, first: Place, count: usize, all: usize) {
        if count == 0 {
            return;
        }
        match &mut self.run {
            None if self.each.is_empty() => {
                self.run = Some((index, first, count));
                return;
            }
            Some((from, place, length))
                if index == *from + *length && first == place.after(*length) =>
            {
                *length += count;
                return;
            }
            Some(_) | None => {}
        }
        if let Some((from, place, length)) = self.run.take() {
            self.each = vec![place; all];
            for (at, slot) in self.each.iter_mut().skip(from).take(length).enumerate() {
                *slot = place.after(at);
            }
        }
        for (at, slot) in self.each.iter_mut().skip(index).take(count).enumerate() {
            *slot = first.after(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use connector_core::ledger::Ledger;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_are_kept_as_in_a_list(
            steps in proptest::collection::vec((0usize..20, 1usize..6, 0usize..3), 1..12),
        ) {
            let all = 30;
            let mut ledger = Ledger::new();
            let (mut places, mut model) = (Places::default(), vec![None; all]);
            for (index, count, gap) in steps {
                for _ in 0..gap {
                    ledger.add(());
                }
                let mut items = std::iter::repeat_n((), count);
                let (first, added) = ledger.extend(&mut items);
                prop_assert_eq!(added, count);
                places.set(index, first, count, all);
                for at in 0..count {
                    model[index + at] = Some(first.after(at));
                }
                for (index, place) in model.iter().enumerate() {
                    let Some(place) = *place else { continue };
                    prop_assert_eq!(places.get(index), place);
                    let (from, count) = places.run(index, 4).unwrap();
                    prop_assert!(from == place && (1..=4).contains(&count));
                    for at in 0..count {
                        prop_assert!(model[index + at].is_none_or(|it| it == place.after(at)));
                    }
                }
            }
        }
    }
}
