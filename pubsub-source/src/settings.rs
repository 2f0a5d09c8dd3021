//! What can be chosen about a source, and what is chosen by default.

use std::time::Duration;

use connector_core::Limits;

use crate::{error::BuildError, on_drop::OnDrop, source::PAUSED_PART, state::SavedDeliveries};

/// The service's bounds on the lease of a pull stream.
const LEASE_SECONDS: std::ops::RangeInclusive<u64> = 10..=600;

/// The most streams of one source: what two connections carry with room for successors.
const MOST_STREAMS: usize = 50;

/// Everything numeric about a source. The builder's setters document each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) streams: usize,
    pub(crate) outstanding: usize,
    pub(crate) first_outstanding: usize,
    pub(crate) outstanding_bytes: Option<u64>,
    pub(crate) buffer: Limits,
    pub(crate) paused_limit: Option<Limits>,
    pub(crate) max_extension: Duration,
    pub(crate) max_hold: Duration,
    pub(crate) stall_after: Duration,
    pub(crate) unreachable_after: Option<Duration>,
    pub(crate) seen_limit: usize,
    pub(crate) close_budget: Duration,
    pub(crate) confirm_acks: Option<Duration>,
    pub(crate) saved_deliveries: SavedDeliveries,
    /// As the deliveries are, unless the host has a wish.
    pub(crate) on_drop: Option<OnDrop>,
    pub(crate) message_ordering: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            streams: 1,
            outstanding: 100_000,
            first_outstanding: 1000,
            outstanding_bytes: None,
            buffer: Limits::new(10_000, 64 << 20),
            paused_limit: None,
            max_extension: Duration::from_secs(60),
            max_hold: Duration::from_secs(3600),
            stall_after: Duration::from_secs(600),
            unreachable_after: None,
            seen_limit: 1_000_000,
            close_budget: Duration::from_secs(5),
            confirm_acks: None,
            saved_deliveries: SavedDeliveries::MessageIds,
            on_drop: None,
            message_ordering: false,
        }
    }
}

/// What a paused split may hold by default, where a quarter of the buffer is not less.
const PAUSED_LIMIT: Limits = Limits::new(2000, 16 << 20);

impl Settings {
    /// What a paused split may hold.
    pub(crate) fn paused_limit(&self) -> Limits {
        let most = self.most_paused();
        self.paused_limit.unwrap_or(Limits::new(
            PAUSED_LIMIT.items.min(most.items),
            PAUSED_LIMIT.bytes.min(most.bytes),
        ))
    }

    fn most_paused(&self) -> Limits {
        Limits::new(
            (self.buffer.items / PAUSED_PART).max(1),
            (self.buffer.bytes / PAUSED_PART).max(1),
        )
    }

    /// Checks each setting, and those that have to fit together.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let refuse = |setting, found: String, allowed| {
            Err(BuildError::Setting {
                setting,
                found,
                allowed,
            })
        };
        if self.streams == 0 || self.streams > MOST_STREAMS {
            return refuse("streams", self.streams.to_string(), "1 to 50");
        }
        if self.outstanding == 0 {
            return refuse("outstanding", "0".into(), "1 or more");
        }
        if self.first_outstanding == 0 {
            return refuse("first_outstanding", "0".into(), "1 or more");
        }
        if self.buffer.items == 0 || self.buffer.bytes == 0 {
            return refuse(
                "buffer",
                format!(
                    "{} messages, {} bytes",
                    self.buffer.items, self.buffer.bytes
                ),
                "at least 1 message and 1 byte",
            );
        }
        if let Some(paused) = self.paused_limit {
            let of = |limits: Limits| format!("{} messages, {} bytes", limits.items, limits.bytes);
            if paused.items == 0 || paused.bytes == 0 {
                return refuse("paused_limit", of(paused), "at least 1 message and 1 byte");
            }
            let most = self.most_paused();
            if paused.items > most.items || paused.bytes > most.bytes {
                return Err(BuildError::Contradiction {
                    first: "paused_limit",
                    first_value: of(paused),
                    second: "buffer",
                    second_value: of(self.buffer),
                    rule: "a paused subscription may hold a quarter of the buffer at most, so that it does not starve the others",
                });
            }
        }
        let whole = self.max_extension.subsec_nanos() == 0;
        if !whole || !LEASE_SECONDS.contains(&self.max_extension.as_secs()) {
            return refuse(
                "max_extension",
                format!("{:?}", self.max_extension),
                "10 s to 600 s, in whole seconds",
            );
        }
        if self.seen_limit == 0 {
            return refuse("seen_limit", "0".into(), "1 or more");
        }
        if self.close_budget.is_zero() {
            return refuse("close_budget", "0s".into(), "longer than nothing");
        }
        if self.unreachable_after.is_some_and(|wait| wait.is_zero()) {
            return refuse("unreachable_after", "0s".into(), "longer than nothing");
        }
        if self.confirm_acks.is_some_and(|wait| wait.is_zero()) {
            return refuse("confirm_acks", "0s".into(), "longer than nothing");
        }
        if let Some(OnDrop::ReleaseAfter(delay)) = self.on_drop
            && delay > Duration::from_secs(*LEASE_SECONDS.end())
        {
            return refuse(
                "on_drop",
                format!("ReleaseAfter({delay:?})"),
                "ReleaseAfter of at most 600 s",
            );
        }
        if self.streams > self.outstanding {
            return Err(BuildError::Contradiction {
                first: "streams",
                first_value: self.streams.to_string(),
                second: "outstanding",
                second_value: self.outstanding.to_string(),
                rule: "each stream has to be told at least 1, so there can be no more streams than outstanding messages",
            });
        }
        if let Some(bytes) = self.outstanding_bytes
            && (self.streams as u64) > bytes
        {
            return Err(BuildError::Contradiction {
                first: "streams",
                first_value: self.streams.to_string(),
                second: "outstanding_bytes",
                second_value: bytes.to_string(),
                rule: "each stream has to be told at least 1 byte",
            });
        }
        if self.message_ordering && self.streams > 1 {
            return Err(BuildError::Contradiction {
                first: "message_ordering",
                first_value: "true".into(),
                second: "streams",
                second_value: self.streams.to_string(),
                rule: "the order of keys holds on one stream only, so streams has to be 1",
            });
        }
        if self.max_hold < self.max_extension {
            return Err(BuildError::Contradiction {
                first: "max_hold",
                first_value: format!("{:?}", self.max_hold),
                second: "max_extension",
                second_value: format!("{:?}", self.max_extension),
                rule: "a delivery cannot be given back before its first lease ends",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_these_and_pass_their_own_check() {
        let settings = Settings::default();
        assert_eq!(settings.streams, 1);
        assert_eq!(settings.outstanding, 100_000);
        assert_eq!(settings.first_outstanding, 1000);
        assert_eq!(settings.buffer, Limits::new(10_000, 67_108_864));
        assert_eq!(settings.paused_limit(), Limits::new(2000, 16 << 20));
        assert_eq!(settings.max_extension.as_secs(), 60);
        assert_eq!(settings.max_hold.as_secs(), 3600);
        assert_eq!(settings.stall_after.as_secs(), 600);
        assert_eq!(settings.seen_limit, 1_000_000);
        assert_eq!(settings.close_budget.as_secs(), 5);
        assert_eq!(settings.confirm_acks, None);
        assert_eq!(settings.saved_deliveries, SavedDeliveries::MessageIds);
        assert_eq!(settings.on_drop, None);
        settings.check().unwrap();
    }

    #[test]
    fn a_lease_outside_the_services_bounds_is_refused_with_its_value() {
        for (lease, allowed) in [
            (Duration::ZERO, false),
            (Duration::from_secs(9), false),
            (Duration::from_secs(10), true),
            (Duration::from_secs(12), true),
            (Duration::from_secs(14), true),
            (Duration::from_secs(15), true),
            (Duration::from_secs(600), true),
            (Duration::from_secs(601), false),
            (Duration::from_secs(60_000), false),
            (Duration::from_millis(10_500), false),
        ] {
            let settings = Settings {
                max_extension: lease,
                max_hold: Duration::from_secs(100_000),
                ..Settings::default()
            };
            match settings.check() {
                Ok(()) => assert!(allowed, "{lease:?}"),
                Err(error) => {
                    assert!(!allowed, "{lease:?}");
                    assert!(error.to_string().contains(&format!("{lease:?}")), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_setting_out_of_its_range_is_refused_by_its_name() {
        let refused = |name: &str, set: &dyn Fn(&mut Settings)| {
            let mut settings = Settings::default();
            set(&mut settings);
            match settings.check() {
                Err(BuildError::Setting { setting, .. }) => assert_eq!(setting, name),
                other => panic!("{name}: {other:?}"),
            }
        };
        refused("streams", &|these| these.streams = 0);
        refused("streams", &|these| these.streams = MOST_STREAMS + 1);
        refused("outstanding", &|these| these.outstanding = 0);
        refused("first_outstanding", &|these| these.first_outstanding = 0);
        refused("buffer", &|these| these.buffer = Limits::new(0, 1));
        refused("buffer", &|these| these.buffer = Limits::new(1, 0));
        for nothing in [Limits::new(0, 1), Limits::new(1, 0)] {
            refused("paused_limit", &|these| these.paused_limit = Some(nothing));
        }
        refused("seen_limit", &|these| these.seen_limit = 0);
        refused("close_budget", &|these| these.close_budget = Duration::ZERO);
        refused("confirm_acks", &|these| {
            these.confirm_acks = Some(Duration::ZERO);
        });
        refused("on_drop", &|these| {
            these.on_drop = Some(OnDrop::ReleaseAfter(Duration::from_millis(600_001)));
        });
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused_with_both_values() {
        let settings = Settings {
            streams: 8,
            outstanding: 7,
            ..Settings::default()
        };
        let text = settings.check().unwrap_err().to_string();
        assert!(
            text.contains("streams is 8") && text.contains("outstanding is 7"),
            "{text}"
        );

        let settings = Settings {
            streams: 4,
            message_ordering: true,
            ..Settings::default()
        };
        let text = settings.check().unwrap_err().to_string();
        assert!(
            text.contains("message_ordering is true") && text.contains("streams is 4"),
            "{text}"
        );

        let settings = Settings {
            paused_limit: Some(Limits::new(2501, 1)),
            ..Settings::default()
        };
        let text = settings.check().unwrap_err().to_string();
        assert!(
            text.contains("paused_limit is 2501") && text.contains("buffer is 10000"),
            "{text}"
        );

        let settings = Settings {
            max_hold: Duration::from_secs(30),
            ..Settings::default()
        };
        let text = settings.check().unwrap_err().to_string();
        assert!(
            text.contains("max_hold is 30s") && text.contains("max_extension is 60s"),
            "{text}"
        );
    }
}
