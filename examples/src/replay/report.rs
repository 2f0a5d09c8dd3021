//! What a replay did.

use std::fmt;

use super::{Outcome, Unusable};

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
    /// Elements that were refused once more. Their letters stay in the subscription.
    pub refused_again: u64,
    /// Why other letters stay there.
    pub unusable: Vec<Unusable>,
}

impl Report {
    /// Counts an outcome. True when the element has arrived.
    pub(super) const fn count(&mut self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Published => self.published += 1,
            Outcome::Created => self.created += 1,
            Outcome::RefusedAgain => {
                self.refused_again += 1;
                return false;
            }
        }
        true
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "dead letters read     {}", self.letters)?;
        writeln!(f, "messages published    {}", self.published)?;
        writeln!(f, "tasks created         {}", self.created)?;
        writeln!(f, "refused once more     {}", self.refused_again)?;
        write!(f, "left as they are      {}", self.unusable.len())?;
        for unusable in &self.unusable {
            write!(f, "\n  {unusable}")?;
        }
        Ok(())
    }
}
