//! What a replay did.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt::{self, Formatter},
};

use super::{RefusedAgain, Unusable, outcome::Outcome};
use crate::orders::chain;

/// Letters that may stay in the subscription: each is held until the replay ends, and beyond so many
/// no other is read. The most that a source holds by default.
pub(super) const MOST_HELD: usize = 100_000;

/// What a replay did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Dead letters read, repetitions included.
    pub letters: u64,
    /// Messages published again.
    pub published: u64,
    /// Tasks created again.
    pub created: u64,
    /// Why elements did not arrive this time either. Their letters stay in the subscription.
    pub refused_again: Vec<RefusedAgain>,
    /// Why other letters stay there.
    pub unusable: Vec<Unusable>,
}

impl Report {
    /// Counts an outcome. True when the element has arrived.
    pub(super) fn count(&mut self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Published => self.published += 1,
            Outcome::Created => self.created += 1,
            Outcome::Refused(refused) => {
                self.refused_again.push(refused);
                return false;
            }
        }
        true
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "dead letters read     {}", self.letters)?;
        writeln!(f, "messages published    {}", self.published)?;
        writeln!(f, "tasks created         {}", self.created)?;
        write!(f, "refused once more     {}", self.refused_again.len())?;
        list(f, &self.refused_again)?;
        write!(f, "\nleft as they are      {}", self.unusable.len())?;
        list(f, &self.unusable)?;
        if self.refused_again.len() + self.unusable.len() >= MOST_HELD {
            write!(
                f,
                "\nno more were read while so many stay; take them out of the subscription first"
            )?;
        }
        Ok(())
    }
}

/// Each reason in a line, with how often it was given.
fn list<E: Error>(f: &mut Formatter<'_>, reasons: &[E]) -> fmt::Result {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for reason in reasons {
        *counted.entry(chain(reason)).or_default() += 1;
    }
    for (reason, times) in counted {
        write!(f, "\n  {times} x {reason}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_reasons_share_a_line_and_the_limit_is_told_when_it_is_reached() {
        let report = |letters: usize| {
            let unusable = (0..letters).map(|_| Unusable::NoPayload).collect();
            let report = Report {
                unusable,
                ..Report::default()
            };
            report.to_string()
        };
        let below = report(MOST_HELD - 1);
        assert!(below.contains("\n  99999 x it has no payload"), "{below}");
        assert!(!below.contains("no more were read"), "{below}");
        assert_eq!(below.lines().count(), 6, "{below}");
        assert!(report(MOST_HELD).contains("no more were read"));
    }
}
