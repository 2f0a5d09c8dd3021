//! The figures at the end of a run.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// What the servers and the partner saw, counted by the parent process and never by the pipeline.
///
/// Serializes to the object that `--json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Orders published to the subscription's topic.
    pub orders: u64,
    /// Orders of customers without a route: published to a region, and no task.
    pub unrouted: u64,
    /// Messages in the region topics.
    pub published_to_regions: u64,
    /// Orders that reached the topic of their region.
    pub distinct_published: u64,
    /// Distinct tasks: those that called the partner, and those still in the queues.
    pub tasks_created: u64,
    /// Calls the partner took, repeated ones included.
    pub partner_calls: u64,
    /// Orders that reached the partner.
    pub distinct_partner_orders: u64,
    /// Orders that did not reach their region's topic, or are routed and did not reach the partner.
    pub lost: u64,
    /// Messages in the region topics beyond the first of each order.
    pub duplicate_publishes: u64,
    /// Checkpoints that became durable.
    pub checkpoints: u64,
    /// How often the pipeline was started again.
    pub restarts: u64,
    /// From the first start of the pipeline until the last order had arrived everywhere.
    pub seconds: f64,
    /// `orders` by `seconds`.
    pub orders_per_second: f64,
    /// The most memory a pipeline process held at once, in MiB. `None` (`null`) where the system
    /// has no `/proc/PID/status` to read it from.
    pub peak_rss_mb: Option<f64>,
}

impl Report {
    /// What the program ends with: 1 when orders were lost, else 0.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        if self.lost == 0 { 0 } else { 1 }
    }

    /// The report as the one line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // Numbers with fixed keys: nothing in it can fail to serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The report as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let rss = self
            .peak_rss_mb
            .map_or_else(|| "unknown".to_owned(), |rss| format!("{rss:.0}"));
        let rows = [
            ("orders", self.orders.to_string()),
            ("  without a route", self.unrouted.to_string()),
            (
                "published to regions",
                self.published_to_regions.to_string(),
            ),
            ("  distinct orders", self.distinct_published.to_string()),
            ("  duplicates", self.duplicate_publishes.to_string()),
            ("tasks created", self.tasks_created.to_string()),
            ("partner calls", self.partner_calls.to_string()),
            (
                "  distinct orders",
                self.distinct_partner_orders.to_string(),
            ),
            ("lost", self.lost.to_string()),
            ("checkpoints", self.checkpoints.to_string()),
            ("restarts of the pipeline", self.restarts.to_string()),
            ("seconds", format!("{:.1}", self.seconds)),
            (
                "orders per second",
                format!("{:.0}", self.orders_per_second),
            ),
            ("peak memory of the pipeline, MiB", rss),
        ];
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_FULL_CONDENSED)
            .set_header(["figure", "counted"]);
        for (figure, counted) in rows {
            table.add_row([figure, &counted]);
        }
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            orders: 20_000,
            unrouted: 0,
            published_to_regions: 20_131,
            distinct_published: 20_000,
            tasks_created: 20_000,
            partner_calls: 20_000,
            distinct_partner_orders: 20_000,
            lost: 0,
            duplicate_publishes: 131,
            checkpoints: 9,
            restarts: 1,
            seconds: 17.5,
            orders_per_second: 1142.9,
            peak_rss_mb: Some(41.5),
        }
    }

    #[test]
    fn the_json_line_has_exactly_the_agreed_keys_in_the_agreed_order() {
        assert_eq!(
            report().json(),
            "{\"orders\":20000,\"unrouted\":0,\"published_to_regions\":20131,\
             \"distinct_published\":20000,\"tasks_created\":20000,\"partner_calls\":20000,\
             \"distinct_partner_orders\":20000,\"lost\":0,\"duplicate_publishes\":131,\
             \"checkpoints\":9,\"restarts\":1,\"seconds\":17.5,\"orders_per_second\":1142.9,\
             \"peak_rss_mb\":41.5}"
        );
    }

    #[test]
    fn a_lost_order_makes_the_run_fail_and_a_duplicate_does_not() {
        assert_eq!(report().exit_status(), 0);
        let report = Report {
            lost: 1,
            ..report()
        };
        assert_eq!(report.exit_status(), 1);
    }

    #[test]
    fn memory_that_cannot_be_read_is_null_and_not_zero() {
        let report = Report {
            peak_rss_mb: None,
            ..report()
        };
        assert!(report.json().ends_with("\"peak_rss_mb\":null}"));
        assert!(report.table().contains("unknown"));
    }

    #[test]
    fn the_table_shows_every_figure() {
        let table = report().table();
        for figure in ["20131", "131", "17.5", "1143", "42", "│ lost", "│ restarts"] {
            assert!(table.contains(figure), "{figure} is missing from\n{table}");
        }
    }
}
