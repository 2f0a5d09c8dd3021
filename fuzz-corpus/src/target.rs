//! A function of bytes that nothing may break.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;

use crate::{
    Finding, Room,
    corpus::{self, LARGEST},
    finding::Why,
    mutation::change,
};

/// Changed inputs that are tried unless `FUZZ_ROUNDS` says otherwise: a few seconds of the slowest
/// target, unoptimized.
const ROUNDS: u64 = 1_000;

/// A fuzz target as ordinary tests run it.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    name: &'static str,
    run: fn(&[u8]),
    room: Room,
    rounds: u64,
}

impl Target {
    /// The target `run`, whose corpus is the directory `fuzz/corpus/NAME`.
    #[must_use]
    pub fn new(name: &'static str, run: fn(&[u8])) -> Self {
        Self {
            name,
            run,
            room: Room::default(),
            rounds: number("FUZZ_ROUNDS").unwrap_or(ROUNDS),
        }
    }

    /// The memory that the target may take.
    #[must_use]
    pub const fn room(mut self, room: Room) -> Self {
        self.room = room;
        self
    }

    /// Tries every file of the corpus, and as many random changes of them as `FUZZ_ROUNDS` says.
    ///
    /// # Panics
    ///
    /// When one of them breaks the target: it panics, or takes more memory than it has room for.
    /// And when the corpus cannot be read, is empty, or has a file of more than 4 KiB.
    pub fn check(self) {
        if let Some(finding) = self.find() {
            let name = self.name;
            match finding.save(name) {
                Ok(path) => panic!("{name}: {}, with {}", finding.why, path.display()),
                Err(error) => panic!(
                    "{name}: {}, with {:?}, which cannot be saved: {error}",
                    finding.why, finding.input
                ),
            }
        }
    }

    /// Tries what [`check`](Self::check) tries, and answers the first input that breaks the target.
    ///
    /// # Panics
    ///
    /// When the corpus cannot be read, is empty, or has a file of more than 4 KiB.
    #[must_use]
    pub fn find(self) -> Option<Finding> {
        let files = self.corpus();
        if let Some(finding) = files.iter().find_map(|input| self.try_one(input)) {
            return Some(finding);
        }
        let mut rng = Rng::with_seed(number("FUZZ_SEED").unwrap_or(0));
        // Half of what is changed was changed before, so that changes add up.
        let mut walks = files.clone();
        (0..self.rounds).find_map(|_| {
            let at = rng.usize(0..walks.len());
            let other = rng.choice(&files)?;
            let from = if rng.bool() { &walks } else { &files };
            let changed = change(&mut rng, from.get(at)?, other);
            let finding = self.try_one(&changed);
            walks[at] = changed;
            finding
        })
    }

    fn corpus(self) -> Vec<Vec<u8>> {
        let files = corpus::read(self.name).unwrap_or_else(|error| {
            panic!("{} has no corpus that can be read: {error}", self.name);
        });
        assert!(!files.is_empty(), "{} has an empty corpus", self.name);
        for (name, content) in &files {
            let length = content.len();
            assert!(
                length <= LARGEST,
                "{name} of {} has {length} bytes",
                self.name
            );
        }
        files.into_iter().map(|(_, content)| content).collect()
    }

    fn try_one(self, input: &[u8]) -> Option<Finding> {
        let mut outcome = Ok(());
        let used = allocation_counter::measure(|| {
            outcome = catch_unwind(AssertUnwindSafe(|| (self.run)(input)));
        });
        let room = self.room.of(input);
        let why = match outcome {
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                Why::Panicked(text.unwrap_or_default().to_owned())
            }
            Ok(()) if used.bytes_max > room => Why::Overfilled {
                held: used.bytes_max,
                room,
            },
            Ok(()) => return None,
        };
        Some(Finding {
            input: input.to_vec(),
            why,
        })
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Any corpus does to show what a target is held to.
    const NAME: &str = "resource_names";

    #[test]
    fn a_target_that_holds_passes() {
        Target::new(NAME, |bytes| assert!(bytes.len() <= LARGEST)).check();
    }

    #[test]
    fn a_panic_is_found_with_its_text_and_its_input() {
        let found = Target::new(NAME, |bytes| assert!(!bytes.contains(&0), "a zero")).find();
        let found = found.expect("changes bring zeros");
        assert_eq!(found.why, Why::Panicked("a zero".to_owned()));
        assert!(found.input.contains(&0));
    }

    #[test]
    fn memory_that_a_number_in_the_input_makes_it_take_is_found() {
        let found = Target::new(NAME, |bytes| {
            let length = bytes.first().map_or(0, |first| usize::from(*first));
            let taken = Vec::<u8>::with_capacity(length << 16);
            assert!(taken.is_empty());
        });
        let found = found.find().expect("64 KiB per byte's worth are too much");
        assert!(matches!(found.why, Why::Overfilled { held, room } if held > room));
    }

    #[test]
    fn the_same_seed_tries_the_same_inputs() {
        let find = || Target::new(NAME, |bytes| assert!(!bytes.contains(&254))).find();
        let [once, again] = [find(), find()].map(|found| found.expect("changes bring it"));
        assert_eq!(once.input, again.input);
    }

    #[test]
    #[should_panic(expected = "has no corpus")]
    fn a_target_without_a_corpus_fails() {
        Target::new("nothing-of-this-name", |_| {}).check();
    }
}
