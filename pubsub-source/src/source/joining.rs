//! What several splits answer, as the answer of the source.

use connector_core::{CheckpointError, Committed, Receipt};
use futures::future::join_all;

use crate::{error::SourceError, split::SplitReader};

/// One receipt for what every split does. It fails with the first failure, once all are known; what
/// several of them could not confirm in time counts together.
pub(super) fn joined(receipts: impl Iterator<Item = Receipt<Committed>>) -> Receipt<Committed> {
    let mut receipts: Vec<Receipt<Committed>> = receipts.collect();
    if receipts.len() == 1
        && let Some(only) = receipts.pop()
    {
        return only;
    }
    Receipt::pending(async move {
        let mut all = Committed::default();
        let mut failure = None;
        for committed in join_all(receipts).await {
            match committed {
                Ok(committed) => all += committed,
                Err(error) => failure = Some(more(failure, error)),
            }
        }
        failure.map_or(Ok(all), Err)
    })
}

fn more(before: Option<CheckpointError>, error: CheckpointError) -> CheckpointError {
    match (before, error) {
        (
            Some(CheckpointError::Unconfirmed {
                epoch,
                pending,
                after,
            }),
            CheckpointError::Unconfirmed {
                pending: others, ..
            },
        ) => CheckpointError::Unconfirmed {
            epoch,
            pending: pending + others,
            after,
        },
        (Some(first), _) => first,
        (None, error) => error,
    }
}

/// The error that the source ends with, taken from its splits.
///
/// What one died of comes before what the others, who followed it, could not finish in time.
pub(super) fn last_word(splits: &mut [SplitReader]) -> Option<SourceError> {
    let errors: Vec<SourceError> = splits
        .iter_mut()
        .filter_map(SplitReader::take_error)
        .collect();
    errors
        .into_iter()
        .reduce(|first, second| match (first, second) {
            (
                SourceError::CloseTimedOut {
                    after,
                    acknowledgements,
                    releases,
                },
                SourceError::CloseTimedOut {
                    acknowledgements: more_acknowledgements,
                    releases: more_releases,
                    ..
                },
            ) => SourceError::CloseTimedOut {
                after,
                acknowledgements: acknowledgements + more_acknowledgements,
                releases: releases + more_releases,
            },
            (SourceError::CloseTimedOut { .. }, cause) => cause,
            (cause, _) => cause,
        })
}
