//! Simulations: many histories, each of which follows from its seed.

use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// How often each thing happened.
pub type Counts = BTreeMap<&'static str, u64>;

/// A simulation, whose runs are functions of their seeds.
///
/// `SEED=17` in the environment replays one run, `RUNS=100000` makes the search longer, and
/// `SEEDS=5000..9000` searches elsewhere. `B` names
/// the bugs that can be planted, to show that the invariants bite.
/// [`history_tests!`](crate::history_tests) makes the tests.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a simulation is described by all of this, in a constant"
)]
pub struct Histories<B: 'static> {
    /// Runs in an ordinary test run.
    pub runs: u64,
    /// Runs in which a planted bug has to show.
    pub runs_per_bug: u64,
    /// What has to happen in every quarter of the runs: a fault that never strikes shows nothing.
    pub everything: &'static [&'static str],
    /// All planted bugs.
    pub bugs: &'static [B],
    /// Runs one seed, with a bug or without. The error says which invariant was violated; a panic
    /// counts as one too.
    pub run: fn(u64, Option<B>) -> Result<Counts, String>,
}

impl<B: Copy + fmt::Debug> Histories<B> {
    /// Runs a quarter of the seeds, so that a test harness runs them on all cores.
    ///
    /// # Panics
    ///
    /// When a run violates an invariant, with the seed, and when something of
    /// [`everything`](Self::everything) never happened.
    pub fn check_quarter(&self, quarter: u64) {
        if let Some(seed) = number_from_environment("SEED") {
            if quarter == seed % 4 {
                let counts = self
                    .run(seed, None)
                    .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
                println!("seed {seed}: {counts:#?}");
            }
            return;
        }
        let runs = number_from_environment("RUNS").unwrap_or(self.runs);
        let seeds = seeds_from_environment().unwrap_or(0..runs);
        let many = seeds.end.saturating_sub(seeds.start);
        let mut total = Counts::new();
        for seed in seeds.filter(|seed| seed % 4 == quarter) {
            let counts = self
                .run(seed, None)
                .unwrap_or_else(|why| panic!("SEED={seed} fails: {why}"));
            for (name, count) in counts {
                *total.entry(name).or_default() += count;
            }
        }
        println!("what happened in {} runs: {total:#?}", many / 4);
        for name in self.everything {
            assert!(total.contains_key(name), "{name} never happened");
        }
    }

    /// Looks for each planted bug.
    ///
    /// # Panics
    ///
    /// When one is not found in [`runs_per_bug`](Self::runs_per_bug) runs.
    pub fn find_bugs(&self) {
        // What is expected to panic need not fill the log.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let first = |bug| {
            (0..self.runs_per_bug).find_map(|seed| Some((seed, self.run(seed, Some(bug)).err()?)))
        };
        let found: Vec<_> = self.bugs.iter().map(|&bug| (bug, first(bug))).collect();
        std::panic::set_hook(hook);
        for (bug, first) in &found {
            match first {
                Some((seed, why)) => println!("{bug:?}: seed {seed}: {why}"),
                None => println!("{bug:?}: not found"),
            }
        }
        let missed: Vec<_> = found.iter().filter(|(_, first)| first.is_none()).collect();
        assert!(missed.is_empty(), "not found: {missed:?}");
    }

    fn run(&self, seed: u64, bug: Option<B>) -> Result<Counts, String> {
        let run = catch_unwind(AssertUnwindSafe(|| (self.run)(seed, bug)));
        run.unwrap_or_else(|panic| Err(format!("panic: {}", text_of(&*panic))))
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or_default()
}

fn number_from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// `SEEDS=5000..9000`: from the first, up to and without the second.
fn seeds_from_environment() -> Option<std::ops::Range<u64>> {
    let text = std::env::var("SEEDS").ok()?;
    let (first, end) = text.split_once("..")?;
    Some(first.trim().parse().ok()?..end.trim().parse().ok()?)
}

/// Makes the tests of a simulation: its histories, in four quarters, and its planted bugs.
///
/// Takes the path of a constant [`Histories`](crate::conformance::Histories).
#[macro_export]
macro_rules! history_tests {
    ($histories:path) => {
        #[test]
        fn no_history_breaks_an_invariant_1() {
            $histories.check_quarter(0);
        }

        #[test]
        fn no_history_breaks_an_invariant_2() {
            $histories.check_quarter(1);
        }

        #[test]
        fn no_history_breaks_an_invariant_3() {
            $histories.check_quarter(2);
        }

        #[test]
        fn no_history_breaks_an_invariant_4() {
            $histories.check_quarter(3);
        }

        #[test]
        fn every_planted_bug_is_found() {
            $histories.find_bugs();
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third run counts "three"; bug 5 shows from seed 5 on, by a panic.
    fn run(seed: u64, bug: Option<u64>) -> Result<Counts, String> {
        assert!(bug.is_none_or(|bug| seed < bug), "the bug of {seed}");
        let name = if seed.is_multiple_of(3) {
            "three"
        } else {
            "other"
        };
        Ok(Counts::from([(name, 1)]))
    }

    const SOUND: Histories<u64> = Histories {
        runs: 100,
        runs_per_bug: 10,
        everything: &["three", "other"],
        bugs: &[5],
        run,
    };

    crate::history_tests!(SOUND);

    fn panic_of(act: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(act)).unwrap_err();
        text_of(&*panic).to_owned()
    }

    #[test]
    fn what_never_happened_is_told() {
        let never = Histories {
            everything: &["three", "never"],
            ..SOUND
        };
        let text = panic_of(|| never.check_quarter(0));
        assert_eq!(text, "never never happened");
    }

    #[test]
    fn a_violation_is_told_with_its_seed() {
        let broken = Histories {
            run: |seed, bug| match seed {
                42 => Err("it broke".to_owned()),
                _ => run(seed, bug),
            },
            ..SOUND
        };
        let text = panic_of(|| broken.check_quarter(2));
        assert_eq!(text, "SEED=42 fails: it broke");
    }

    #[test]
    fn a_bug_that_does_not_show_is_told() {
        let blind = Histories {
            bugs: &[5, 11],
            ..SOUND
        };
        let text = panic_of(|| blind.find_bugs());
        assert_eq!(text, "not found: [(11, None)]");
    }
}
