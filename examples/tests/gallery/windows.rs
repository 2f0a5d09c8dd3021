//! Totals with a state of their own.

use examples::hourly_totals;

use super::of;

#[tokio::test(start_paused = true)]
async fn totals_are_right_and_come_once_though_the_job_restarts_in_mid_window() {
    let figures = hourly_totals::run().await.unwrap();
    let names = ["totals expected", "totals", "totals that are right"];
    assert_eq!(of(&figures, names), [20, 20, 20], "{figures}");
    // The first hour was over before the crash; the second is made of both lives of the job.
    let names = ["totals before the crash", "not acknowledged"];
    assert_eq!(of(&figures, names), [10, 0], "{figures}");
}
