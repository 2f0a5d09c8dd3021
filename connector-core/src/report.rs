//! An error as a program tells it.

use std::fmt;

use crate::BoxError;

/// Any error, told with its causes in one line: what `main` may return.
///
/// A `main` that returns the error itself prints its fields, `InUse { place: "state", .. }`. The
/// texts of this family say what became of the data and what to do, and leave the cause to
/// [`source`](std::error::Error::source); this prints both.
///
/// ```
/// use connector_core::Report;
///
/// fn port(text: &str) -> Result<u16, Report> {
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(format!("{:?}", port("x").unwrap_err()), "invalid digit found in string");
/// ```
///
/// It is for the end of a program and no error itself: what takes a decision matches on the errors
/// it came from.
pub struct Report(BoxError);

impl Report {
    /// The error that was reported.
    #[must_use]
    pub fn into_inner(self) -> BoxError {
        self.0
    }
}

impl<E: Into<BoxError>> From<E> for Report {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

/// As [`Display`](fmt::Display): it is what `main` prints.
impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the state cannot be used; nothing was restored")]
    struct Unusable(#[source] Foreign);

    #[derive(Debug, thiserror::Error)]
    #[error("it belongs to another instance")]
    struct Foreign;

    fn fails() -> Result<(), Report> {
        Err(Unusable(Foreign))?
    }

    #[test]
    fn what_main_prints_is_the_text_and_every_cause() {
        let report = fails().unwrap_err();
        let told = "the state cannot be used; nothing was restored: it belongs to another instance";
        assert_eq!(format!("{report:?}"), told);
        assert_eq!(report.to_string(), told);
    }

    #[test]
    fn boxed_errors_and_texts_are_taken_as_they_are() {
        let boxed: BoxError = Box::new(Foreign);
        let report = Report::from(boxed);
        assert!(report.into_inner().is::<Foreign>());
        assert_eq!(Report::from("no such topic").to_string(), "no such topic");
    }
}
