//! How the splits of one source share its buffer.

#[cfg(test)]
mod tests;

use connector_core::Limits;

/// A paused split may hold at most this part of the source's bound, so that the others always have
/// most of it.
pub(crate) const PAUSED_PART: usize = 4;

/// How a split stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What it has received and not handed out.
    pub(crate) held: Limits,
    /// Whether it would read on if there is room.
    pub(crate) wants: bool,
    /// Whether its host does not want anything of it for now.
    pub(crate) paused: bool,
    /// Whether it has given back what it held, and reads nothing. Only what is paused is parked.
    pub(crate) parked: bool,
}

impl Standing {
    fn may_be_parked(self) -> bool {
        self.paused && !self.parked
    }
}

/// The shares of a source's splits in its one buffer.
///
/// Half of the bound is reserved in equal parts, so that whoever comes to life finds room at once;
/// running splits borrow from the rest. A paused split has its share and no more: beyond it, it is
/// to be parked. When a running split finds no room, the paused one that holds most is parked.
///
/// Admission asks "below the bound", never "does it fit", and stands for one response of each
/// stream: by so much the bound may be passed.
#[derive(Debug)]
pub(crate) struct Shares {
    bound: Limits,
    paused_limit: Limits,
    splits: Vec<Standing>,
    /// What all hold, or have in reserve where that is more.
    spoken_for: Limits,
    /// What all hold.
    held: Limits,
    /// How many may be parked.
    paused: usize,
}

impl Shares {
    /// Shares of `splits` splits in a buffer of `bound`.
    pub(crate) fn new(bound: Limits, paused_limit: Limits, splits: usize) -> Self {
        let mut shares = Self {
            bound,
            paused_limit,
            splits: vec![Standing::default(); splits],
            spoken_for: Limits::default(),
            held: Limits::default(),
            paused: 0,
        };
        for split in 0..splits {
            shares.spoken_for = plus(shares.spoken_for, shares.claim(split));
        }
        shares
    }

    /// How a split stands now.
    pub(crate) fn report(&mut self, split: usize, standing: Standing) {
        debug_assert!(standing.paused || !standing.parked, "parked is paused");
        self.spoken_for = minus(self.spoken_for, self.claim(split));
        self.held = minus(self.held, self.splits[split].held);
        self.paused -= usize::from(self.splits[split].may_be_parked());
        self.splits[split] = standing;
        self.spoken_for = plus(self.spoken_for, self.claim(split));
        self.held = plus(self.held, standing.held);
        self.paused += usize::from(standing.may_be_parked());
    }

    /// Whether a split may read one more response on each of its streams.
    pub(crate) fn may_read(&self, split: usize) -> bool {
        let Standing {
            held,
            paused,
            parked,
            ..
        } = self.splits[split];
        if parked || (paused && self.passes_its_share(split)) {
            return false;
        }
        let others = minus(self.spoken_for, self.claim(split));
        held == Limits::default()
            || self.reserve().admits(held)
            || self.bound.admits(plus(others, held))
    }

    /// The split that is to be parked next, if any. `free` says whether there is room at all, where
    /// the source shares it with others.
    pub(crate) fn to_park(&self, free: bool) -> Option<usize> {
        if self.paused == 0 {
            return None;
        }
        let mut paused = (0..self.splits.len()).filter(|at| self.splits[*at].may_be_parked());
        if let Some(overfull) = paused.clone().find(|at| self.passes_its_share(*at)) {
            return Some(overfull);
        }
        let starves = |at: usize| {
            let split = self.splits[at];
            split.wants && !split.paused && !(free && self.may_read(at))
        };
        let holds_something = |at: &usize| self.splits[*at].held.items > 0;
        if !paused.any(|at| holds_something(&at)) || !(0..self.splits.len()).any(starves) {
            return None;
        }
        (0..self.splits.len())
            .filter(|at| self.splits[*at].may_be_parked() && holds_something(at))
            .max_by_key(|at| self.weight(self.splits[*at].held))
    }

    /// What a paused split may hold.
    fn paused_room(&self) -> Limits {
        let splits = self.splits.len().max(1);
        let share = |bound: usize, limit: usize| (bound / splits).min(limit).max(1);
        Limits::new(
            share(self.bound.items, self.paused_limit.items),
            share(self.bound.bytes, self.paused_limit.bytes),
        )
    }

    /// Exactly its share is fine.
    fn passes_its_share(&self, split: usize) -> bool {
        let (held, room) = (self.splits[split].held, self.paused_room());
        held.items > room.items || held.bytes > room.bytes
    }

    /// What nobody else can take from a split.
    fn reserve(&self) -> Limits {
        let ways = 2 * self.splits.len().max(1);
        Limits::new(self.bound.items / ways, self.bound.bytes / ways)
    }

    fn claim(&self, split: usize) -> Limits {
        let (held, reserve) = (self.splits[split].held, self.reserve());
        Limits::new(held.items.max(reserve.items), held.bytes.max(reserve.bytes))
    }

    /// The part of the bound that is taken, in whichever of both dimensions it is more.
    fn weight(&self, held: Limits) -> u128 {
        let items = held.items as u128 * self.bound.bytes as u128;
        let bytes = held.bytes as u128 * self.bound.items as u128;
        items.max(bytes)
    }

    /// Whether a split would read on that may, as far as its share goes.
    pub(crate) fn wants(&self) -> bool {
        (0..self.splits.len()).any(|at| self.splits[at].wants && self.may_read(at))
    }

    /// What all splits hold together.
    pub(crate) const fn held(&self) -> Limits {
        self.held
    }
}

pub(super) fn plus(a: Limits, b: Limits) -> Limits {
    Limits::new(
        a.items.saturating_add(b.items),
        a.bytes.saturating_add(b.bytes),
    )
}

pub(super) fn minus(a: Limits, b: Limits) -> Limits {
    Limits::new(
        a.items.saturating_sub(b.items),
        a.bytes.saturating_sub(b.bytes),
    )
}
