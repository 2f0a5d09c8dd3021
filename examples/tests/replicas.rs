//! The job with several readers, with small numbers.

use clap::Parser;
use examples::replicas::{self, Options};

#[tokio::test(flavor = "multi_thread")]
async fn two_readers_and_after_a_crash_three_count_each_order_once_and_seek_once() {
    let options = Options::try_parse_from(["replicas", "--orders", "600"]).unwrap();
    let report = replicas::run(&options).await.unwrap();
    assert_eq!((report.orders, report.counted), (600, 600), "{report:#?}");
    assert_eq!((report.lost, report.counted_twice), (0, 0), "{report:#?}");
    assert_eq!((report.starts, report.seeks), (2, 1), "{report:#?}");
    let before = report.before_crash;
    assert!((300..600).contains(&before), "in the middle: {report:#?}");
    assert_eq!(report.exit_status(), 0);
}
