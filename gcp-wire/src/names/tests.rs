use proptest::prelude::*;

use super::*;

#[test]
fn short_and_full_forms_of_one_topic_are_equal() {
    let short = TopicName::parse_in("demo", "orders").unwrap();
    let full = TopicName::parse_in("demo", "projects/demo/topics/orders").unwrap();
    assert_eq!(short, full);
    assert_eq!((short.project(), short.id()), ("demo", "orders"));
}

#[test]
fn a_full_name_goes_to_its_own_project() {
    let other = TopicName::parse_in("demo", "projects/other/topics/orders").unwrap();
    assert_eq!(other.project(), "other");
    assert_eq!(other.to_string(), "projects/other/topics/orders");
}

#[test]
fn refused_topic_ids_are_quoted_with_the_rule() {
    let long = "t".repeat(256);
    for id in [
        "a/b", "1abc", "ab", "goog-x", "google", "", &long, "a b", "ünder", "abc\n",
    ] {
        let error = TopicName::parse_in("demo", id).unwrap_err();
        assert_eq!((error.value(), error.rule()), (id, NameRule::PubsubId));
        let text = error.to_string();
        assert!(
            text.contains(&format!("{id:?}")) && text.contains("3 to 255"),
            "{text}"
        );
    }
}

#[test]
fn legal_punctuation_is_kept_unescaped() {
    let name = TopicName::parse_in("demo", "o+r%d~e.r_s-1").unwrap();
    assert_eq!(name.as_str(), "projects/demo/topics/o+r%d~e.r_s-1");
    assert!(TopicName::new("demo", &"t".repeat(255)).is_ok());
    assert!(TopicName::new("demo", "Goog").is_ok());
}

#[test]
fn a_name_of_another_collection_is_refused() {
    let error = "projects/demo/subscriptions/orders"
        .parse::<TopicName>()
        .unwrap_err();
    assert_eq!(error.rule(), NameRule::Form("projects/PROJECT/topics/ID"));
    for text in [
        "orders",
        "",
        "projects/demo/topics/",
        "projects/demo/topics/orders/x",
    ] {
        assert!(text.parse::<TopicName>().is_err(), "{text}");
    }
}

#[test]
fn projects_may_be_domain_scoped_or_numbers() {
    for project in ["p", "demo", "example.com:demo", "1234567890"] {
        assert_eq!(
            SubscriptionName::new(project, "orders").unwrap().project(),
            project
        );
    }
    for project in ["", "a/b", "a b", "-a", "a-", "a:b:c", ":a", "a:", "pröject"] {
        let error = SubscriptionName::new(project, "orders").unwrap_err();
        assert_eq!((error.value(), error.rule()), (project, NameRule::Project));
    }
}

#[test]
fn queue_names_have_a_location_and_their_own_id_rule() {
    let queue = QueueName::parse_in("demo", "us-central1", "q1").unwrap();
    assert_eq!(
        queue.as_str(),
        "projects/demo/locations/us-central1/queues/q1"
    );
    assert_eq!((queue.location(), queue.id()), ("us-central1", "q1"));
    assert_eq!(queue.parent(), "projects/demo/locations/us-central1");
    assert_eq!(
        queue,
        QueueName::parse_in("x", "y", queue.as_str()).unwrap()
    );
    for id in ["", "a_b", "a.b", "a/b", &"q".repeat(101)] {
        let error = QueueName::new("demo", "us-central1", id).unwrap_err();
        assert_eq!((error.value(), error.rule()), (id, NameRule::QueueId));
    }
    for location in ["", "US", "us_central1", "-us", "us/x"] {
        let error = QueueName::new("demo", location, "q").unwrap_err();
        assert_eq!(error.rule(), NameRule::Location);
    }
}

#[test]
fn task_ids_are_checked_by_the_service_rule() {
    let queue = QueueName::new("demo", "us-central1", "q1").unwrap();
    assert_eq!(
        queue.task("a_B-9").unwrap(),
        "projects/demo/locations/us-central1/queues/q1/tasks/a_B-9"
    );
    assert!(queue.task(&"t".repeat(500)).is_ok());
    for id in ["", "a.b", "a/b", "ü", &"t".repeat(501)] {
        assert_eq!(queue.task(id).unwrap_err().rule(), NameRule::TaskId);
    }
}

#[test]
fn an_endless_value_is_cut_in_the_error() {
    let error = TopicName::parse_in("demo", &"€".repeat(1_000_000)).unwrap_err();
    assert!(error.to_string().len() < 2_000);
}

#[test]
fn names_are_plain_strings_in_serde_and_checked_on_the_way_in() {
    let name = TopicName::new("demo", "orders").unwrap();
    let json = serde_json::to_string(&name).unwrap();
    assert_eq!(json, "\"projects/demo/topics/orders\"");
    assert_eq!(serde_json::from_str::<TopicName>(&json).unwrap(), name);
    assert!(serde_json::from_str::<TopicName>("\"orders\"").is_err());
}

proptest! {
    #[test]
    fn every_legal_name_survives_a_round_trip(
        project in "[a-z][a-z0-9-]{0,20}[a-z0-9]",
        id in "[A-Za-fh-z][A-Za-z0-9_.~+%-]{2,40}",
    ) {
        let name = SubscriptionName::new(&project, &id).unwrap();
        prop_assert_eq!(name.project(), &project);
        prop_assert_eq!(name.id(), &id);
        prop_assert_eq!(&name.to_string().parse::<SubscriptionName>().unwrap(), &name);
        let json = serde_json::to_string(&name).unwrap();
        prop_assert_eq!(serde_json::from_str::<SubscriptionName>(&json).unwrap(), name);
    }

    #[test]
    fn any_text_is_either_refused_or_printed_back_unchanged(text in "\\PC{0,60}") {
        if let Ok(name) = text.parse::<QueueName>() {
            prop_assert_eq!(name.to_string(), text.clone());
        }
        if let Ok(name) = TopicName::parse_in("demo", &text) {
            prop_assert!(name.as_str().ends_with(&text));
        }
    }
}
