//! The name under which a source saves its states, and a job the record of its start.

use std::sync::Arc;

use gcp_wire::SubscriptionName;

use crate::error::BuildError;

/// The name that was chosen, or that of the only subscription.
///
/// # Errors
///
/// [`BuildError::Contradiction`] for several subscriptions without a name.
pub(crate) fn instance<'a>(
    named: Option<String>,
    mut subscriptions: impl ExactSizeIterator<Item = &'a SubscriptionName>,
) -> Result<Arc<str>, BuildError> {
    let count = subscriptions.len();
    match (named, subscriptions.next()) {
        (Some(name), _) => Ok(name.into()),
        (None, Some(only)) if count == 1 => Ok(only.as_str().into()),
        (None, _) => Err(BuildError::Contradiction {
            first: "instance",
            first_value: "not given".to_owned(),
            second: "the number of subscriptions",
            second_value: count.to_string(),
            rule: "the states of several subscriptions are saved under a name of your choice, which stays when subscriptions are added",
        }),
    }
}
