use super::*;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn the_defaults_are_the_documented_ones() {
    let options = Options::default();
    assert_eq!(options.instance, "0");
    assert_eq!(options.limits, Limits::new(1_000, 67_108_864));
    assert_eq!(options.largest_task, Some(1_048_571));
    assert_eq!(options.batch, None);
    assert_eq!(options.channels, 1);
    assert_eq!(options.attempt_deadline, Duration::from_secs(20));
    let budget = |attempts, first, cap| {
        RetryBudget::new(
            attempts,
            Duration::from_millis(first),
            Duration::from_millis(cap),
        )
    };
    assert_eq!(options.retries, budget(8, 100, 10_000));
    assert_eq!(options.queue_missing_retries, budget(3, 500, 2_000));
    assert_eq!(options.progress_timeout, Duration::from_secs(600));
    assert_eq!(options.close_timeout, Duration::from_secs(30));
    assert!(options.queue_check && !options.allow_url_overrides);
    assert_eq!((options.ramp, options.queue_rate), (None, None));
    assert_eq!(options.max_consecutive_rejections, NonZeroU32::new(100));
    assert_eq!(options.destination_stats, 0);
    assert_eq!(options.delivery, Delivery::Flush);
    assert_eq!(options.stage, Limits::new(20_000, 268_435_456));
    assert_eq!(options.retention_margin, Duration::from_secs(600));
    assert_eq!(options.quarantine, Limits::new(10_000, 67_108_864));
    assert!(options.check().is_ok());
}

#[test]
fn a_setting_out_of_range_is_refused_by_name() {
    let second = Duration::from_secs(1);
    let wrong = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        options.check().unwrap_err().to_string()
    };
    let cases = [
        (
            "limits",
            wrong(|options| options.limits = Limits::new(0, 1)),
        ),
        (
            "limits",
            wrong(|options| options.limits = Limits::new(1, 0)),
        ),
        (
            "largest_task is 0",
            wrong(|options| options.largest_task = Some(0)),
        ),
        (
            "batching is 101 tasks",
            wrong(|options| options.batch = Some(Batch::up_to(101))),
        ),
        (
            "batching is 0 tasks",
            wrong(|options| options.batch = Some(Batch::up_to(0))),
        ),
        (
            "batching is 3670017 bytes",
            wrong(|options| options.batch = Some(Batch::up_to(9).bytes(3_670_017))),
        ),
        ("channels is 0", wrong(|options| options.channels = 0)),
        ("channels is 257", wrong(|options| options.channels = 257)),
        (
            "attempt_deadline is 0ns",
            wrong(|o| o.attempt_deadline = Duration::ZERO),
        ),
        (
            "attempt_deadline is 31s",
            wrong(|o| o.attempt_deadline = Duration::from_secs(31)),
        ),
        (
            "progress_timeout is 0ns",
            wrong(|o| o.progress_timeout = Duration::ZERO),
        ),
        (
            "close_timeout is 0ns",
            wrong(|o| o.close_timeout = Duration::ZERO),
        ),
        ("retries is 0 attempts", wrong(|o| o.retries.attempts = 0)),
        (
            "retries is a first delay of 1ns",
            wrong(|o| {
                o.retries.first = Duration::from_nanos(1);
            }),
        ),
        (
            "queue_missing_retries",
            wrong(|o| o.queue_missing_retries.attempts = 0),
        ),
        ("queue_rate is 0", wrong(|o| o.queue_rate = Some(0.0))),
        (
            "queue_rate is NaN",
            wrong(|o| o.queue_rate = Some(f64::NAN)),
        ),
        (
            "ramp is 0 tasks",
            wrong(|o| o.ramp = Some(Ramp::new(0.0, 2.0, MINUTE))),
        ),
        (
            "ramp is a growth of 0.9",
            wrong(|o| o.ramp = Some(Ramp::new(1.0, 0.9, MINUTE))),
        ),
        (
            "ramp is every 0ns",
            wrong(|o| o.ramp = Some(Ramp::new(1.0, 2.0, Duration::ZERO))),
        ),
    ];
    for (name, text) in cases {
        assert!(text.contains(name), "{text}");
    }
    let options = Options {
        queue_missing_retries: RetryBudget::new(3, 2 * second, second),
        ..Options::default()
    };
    let text = options.check().unwrap_err().to_string();
    assert!(text.contains("queue_missing_retries (2s)"), "{text}");
    assert!(text.contains("cap (1s)"), "{text}");
}

#[test]
fn names_that_are_remembered_for_longer_than_clocks_count_are_refused() {
    let years = |years: u32| MINUTE * 60 * 24 * 365 * years;
    let check = |name_retention| {
        let options = Options {
            delivery: Delivery::Staged { name_retention },
            ..Options::default()
        };
        options.check()
    };
    assert!(check(years(100)).is_ok());
    for name_retention in [years(101), Duration::MAX] {
        let text = check(name_retention).unwrap_err().to_string();
        let named = format!("name_retention is {name_retention:?}");
        assert!(text.contains(&named), "{text}");
        assert!(text.contains("at most 100 years"), "{text}");
    }
}

#[test]
fn a_pace_slower_than_the_progress_timeout_is_refused_with_both_settings_named() {
    let options = Options {
        queue_rate: Some(1.0 / 601.0),
        ..Options::default()
    };
    let text = options.check().unwrap_err().to_string();
    assert!(text.contains("queue_rate"), "{text}");
    assert!(text.contains("progress_timeout (600s)"), "{text}");
}

#[test]
fn a_progress_timeout_within_one_attempt_is_refused_with_both_settings_named() {
    let options = Options {
        progress_timeout: Duration::from_secs(20),
        ..Options::default()
    };
    let text = options.check().unwrap_err().to_string();
    assert!(text.contains("progress_timeout"), "{text}");
    assert!(text.contains("attempt_deadline"), "{text}");
}
