use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn topic(id: &str) -> TopicName {
    TopicName::new("demo-project", id).unwrap()
}

fn name() -> SubscriptionName {
    "projects/demo-project/subscriptions/s11".parse().unwrap()
}

fn bare() -> SubscriptionCreationBuilder {
    SubscriptionCreation::builder(topic("t11"))
}

#[test]
fn what_is_not_set_is_left_to_the_service() {
    let sent = bare().build().unwrap().subscription(&name());
    let expected = Subscription {
        name: "projects/demo-project/subscriptions/s11".to_owned(),
        topic: "projects/demo-project/topics/t11".to_owned(),
        ..Subscription::default()
    };
    assert_eq!(sent, expected);
}

#[test]
fn every_setting_reaches_the_request() {
    let creation = bare()
        .ack_deadline(SECOND * 30)
        .message_ordering(true)
        .message_retention(Duration::from_millis(86_400_500))
        .retain_acked_messages(true)
        .expiration(Expiration::After(SECOND * 86_400 * 2))
        .dead_letter_policy(topic("dead"), 20)
        .filter("attributes.kind = \"order\"")
        .exactly_once(true);
    let sent = creation.build().unwrap().subscription(&name());
    assert_eq!(sent.ack_deadline_seconds, 30);
    assert!(sent.enable_message_ordering);
    let retention = sent.message_retention_duration.unwrap();
    assert_eq!((retention.seconds, retention.nanos), (86_400, 500_000_000));
    assert!(sent.retain_acked_messages);
    let ttl = sent.expiration_policy.unwrap().ttl.unwrap();
    assert_eq!((ttl.seconds, ttl.nanos), (172_800, 0));
    let policy = sent.dead_letter_policy.unwrap();
    assert_eq!(
        policy.dead_letter_topic,
        "projects/demo-project/topics/dead"
    );
    assert_eq!(policy.max_delivery_attempts, 20);
    assert_eq!(sent.filter, "attributes.kind = \"order\"");
    assert!(sent.enable_exactly_once_delivery);
}

#[test]
fn never_is_a_policy_without_a_time_and_the_last_word_counts() {
    let creation = bare()
        .expiration(Expiration::After(SECOND * 86_400))
        .expiration(Expiration::Never);
    let sent = creation.build().unwrap().subscription(&name());
    assert_eq!(sent.expiration_policy, Some(ExpirationPolicy { ttl: None }));
}

#[test]
fn what_the_service_would_refuse_is_refused_by_name_and_value() {
    let part = Duration::from_millis(10_500);
    let refused = [
        (bare().ack_deadline(SECOND * 9), "ack_deadline is 9s"),
        (bare().ack_deadline(SECOND * 601), "ack_deadline is 601s"),
        (bare().ack_deadline(part), "ack_deadline is 10.5s"),
        (
            bare().message_retention(SECOND * 599),
            "message_retention is 599s",
        ),
        (
            bare().message_retention(SECOND * 2_678_401),
            "message_retention is 2678401s",
        ),
        (
            bare().message_retention(SECOND * 2_678_400 + Duration::from_nanos(1)),
            "message_retention is 2678400.000000001s",
        ),
        (
            bare().expiration(Expiration::After(SECOND * 86_399)),
            "expiration is 86399s",
        ),
        (
            bare().dead_letter_policy(topic("dead"), 4),
            "the attempts of dead_letter_policy is 4",
        ),
        (
            bare().dead_letter_policy(topic("dead"), 101),
            "the attempts of dead_letter_policy is 101",
        ),
        (
            bare().dead_letter_policy(topic("t11"), 10),
            "the topic is projects/demo-project/topics/t11",
        ),
        (bare().filter(" "), "filter is \" \""),
        (bare().filter("x".repeat(257)), "257 bytes"),
    ];
    for (builder, expected) in refused {
        let text = builder.build().unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn the_bounds_themselves_are_allowed() {
    let allowed = [
        bare().ack_deadline(SECOND * 10),
        bare().ack_deadline(SECOND * 600),
        bare().message_retention(SECOND * 600),
        bare().message_retention(SECOND * 2_678_400),
        bare().expiration(Expiration::After(SECOND * 86_400)),
        bare().dead_letter_policy(topic("dead"), 5),
        bare().dead_letter_policy(topic("dead"), 100),
        bare().filter("x".repeat(256)),
    ];
    for builder in allowed {
        builder.build().unwrap();
    }
}
