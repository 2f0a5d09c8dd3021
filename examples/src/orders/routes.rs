//! The routes table: which partner is called for which customer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::order::{EnrichedOrder, Order};

/// Where a customer's orders go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Route {
    /// The partner's base URL, without a slash at its end.
    pub(crate) endpoint: String,
    /// What the partner calls the shop, sent as `X-Tenant`.
    pub(crate) tenant: String,
}

/// The route of each customer that has one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Routes(BTreeMap<String, Route>);

impl Routes {
    /// The partners that customers are spread over.
    const PARTNERS: [&str; 5] = ["acme", "borealis", "cobalt", "dune", "ember"];

    /// A table for `customers`, served below `origin` (for example `http://127.0.0.1:9000`).
    ///
    /// The first `unrouted_share` of the customers, rounded up, have no route.
    pub(crate) fn spread(customers: &[String], origin: &str, unrouted_share: Share) -> Self {
        let without = unrouted_share.of(customers.len());
        let routes = customers
            .iter()
            .enumerate()
            .skip(without)
            .map(|(index, customer)| {
                let partner = Self::PARTNERS[index % Self::PARTNERS.len()];
                let route = Route {
                    endpoint: format!("{origin}/{partner}"),
                    tenant: format!("shop-{partner}-{}", index % 3),
                };
                (customer.clone(), route)
            });
        Self(routes.collect())
    }

    pub(crate) fn of(&self, customer: &str) -> Option<&Route> {
        self.0.get(customer)
    }

    /// Adds the customer's route to an order.
    pub(crate) fn enrich(&self, order: Order) -> EnrichedOrder {
        let route = self.of(&order.customer).cloned();
        EnrichedOrder { order, route }
    }
}

/// A share between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share(f64);

/// Text that is no number from 0 to 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no share; write a number from 0 to 1, for example 0.1")]
pub(crate) struct ShareError {
    text: String,
}

impl Share {
    /// That share of `count`, rounded up, so that a share above nothing is never nothing.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of customers times a number from 0 to 1 is a count again"
    )]
    fn of(self, count: usize) -> usize {
        (self.0 * count as f64).ceil() as usize
    }
}

impl std::str::FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        match text.parse() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Self(share)),
            Ok(_) | Err(_) => Err(ShareError {
                text: text.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
