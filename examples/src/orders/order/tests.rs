use std::time::{Duration, SystemTime};

use super::*;

fn order() -> Order {
    Order {
        event_id: "e1".to_owned(),
        order_id: "A-1".to_owned(),
        customer: "c-7".to_owned(),
        region: Region::Europe,
        lines: vec![Line {
            sku: "tea".to_owned(),
            quantity: 2,
            unit_cents: 450,
        }],
        dispatch_at: None,
    }
}

#[test]
fn an_order_reads_as_the_shop_writes_it() {
    let json = r#"{"event_id":"e1","order_id":"A-1","customer":"c-7","region":"europe",
        "lines":[{"sku":"tea","quantity":2,"unit_cents":450}]}"#;
    assert_eq!(serde_json::from_str::<Order>(json).unwrap(), order());
}

#[test]
fn a_dispatch_time_survives_the_trip_to_the_millisecond() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_796_034_600_123);
    let order = Order {
        dispatch_at: Some(at),
        ..order()
    };
    let json = serde_json::to_string(&order).unwrap();
    assert!(
        json.contains(r#""dispatch_at":"2026-11-30T10:30:00.123Z""#),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<Order>(&json).unwrap(), order);
}

#[test]
fn an_enriched_order_is_the_order_with_one_more_field() {
    let route = Route {
        endpoint: "http://127.0.0.1:9/acme".to_owned(),
        tenant: "acme".to_owned(),
    };
    let enriched = EnrichedOrder {
        order: order(),
        route: Some(route),
    };
    let json = serde_json::to_string(&enriched).unwrap();
    assert_eq!(serde_json::from_str::<Order>(&json).unwrap(), order());
    assert_eq!(
        serde_json::from_str::<EnrichedOrder>(&json).unwrap(),
        enriched
    );
}

#[test]
fn a_region_is_named_in_json_as_in_its_topic() {
    for region in Region::ALL {
        assert_eq!(
            serde_json::to_string(&region).unwrap(),
            format!("{:?}", region.name())
        );
    }
}

#[test]
fn only_what_stands_for_itself_is_one_path_segment() {
    for id in ["A-1", "0", "a.b_c~d", "...", &"x".repeat(128)] {
        assert_eq!(PathSegment::parse(id).unwrap().to_string(), id);
    }
    assert_eq!(PathSegment::parse(""), Err(SegmentError::Empty));
    for id in [".", ".."] {
        assert!(
            matches!(PathSegment::parse(id), Err(SegmentError::Dots { .. })),
            "{id}"
        );
    }
    for (id, bad) in [
        ("a/b", '/'),
        ("../x", '/'),
        ("a b", ' '),
        ("a%2Fb", '%'),
        ("q?x", '?'),
        ("h#x", '#'),
        ("é", 'é'),
        ("a\nb", '\n'),
        ("a\\b", '\\'),
        ("a;b", ';'),
    ] {
        let refused = SegmentError::Character {
            id: id.to_owned(),
            found: bad,
        };
        assert_eq!(PathSegment::parse(id), Err(refused));
    }
    assert!(matches!(
        PathSegment::parse(&"x".repeat(129)),
        Err(SegmentError::Long { .. })
    ));
}
