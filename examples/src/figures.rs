//! What a small example counted.

use std::fmt;

/// Named numbers, in the order in which they are printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures(Vec<(&'static str, usize)>);

impl Figures {
    /// These figures.
    #[must_use]
    pub fn of<const N: usize>(figures: [(&'static str, usize); N]) -> Self {
        Self(figures.into())
    }

    /// The number of this name, if it was counted.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<usize> {
        let mut figures = self.0.iter();
        figures
            .find(|(known, _)| *known == name)
            .map(|(_, number)| *number)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (at, (name, number)) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{name:<width$}  {number:>6}")?;
        }
        Ok(())
    }
}
