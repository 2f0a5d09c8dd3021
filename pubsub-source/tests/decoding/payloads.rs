//! The ready-made decoders, on payloads good and bad.

use bytes::Bytes;
use connector_core::BoxError;
use proptest::prelude::*;
use pubsub_source::decode::{Decode, NotJson, NotText, json, raw, text};

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Order {
    id: u32,
    #[serde(default)]
    lines: Vec<String>,
}

fn only<R>(records: impl Iterator<Item = Result<R, BoxError>>) -> R {
    let mut records: Vec<R> = records.map(Result::unwrap).collect();
    assert_eq!(records.len(), 1);
    records.remove(0)
}

fn not_json(payload: &str) -> NotJson {
    let error = json::<Order>().decode(payload).unwrap_err();
    let whole = format!("{error:?} {error}");
    assert!(!whole.contains("secret"), "{whole}");
    assert!(error.source().is_none());
    *error.downcast().unwrap()
}

#[test]
fn json_that_is_not_what_was_expected_is_told_by_its_place_and_not_by_its_text() {
    let order = json::<Order>()
        .decode(r#"{"id": 7, "lines": ["a"]}"#)
        .unwrap();
    let lines = vec!["a".to_owned()];
    assert_eq!(only(order), Order { id: 7, lines });

    let shape = not_json(r#"{"id": "secret"}"#);
    assert!(
        matches!(
            shape,
            NotJson::Shape {
                line: 1,
                column: 15
            }
        ),
        "{shape:?}"
    );
    let syntax = not_json("{\"id\": 7,\nsecret}");
    assert!(
        matches!(syntax, NotJson::Syntax { line: 2, column: 1 }),
        "{syntax:?}"
    );
    let cut = not_json(r#"{"id": 7, "lines": ["secret"#);
    assert!(matches!(cut, NotJson::Cut { line: 1 }), "{cut:?}");
    let more = not_json(r#"{"id": 7} secret"#);
    assert!(matches!(more, NotJson::Syntax { .. }), "{more:?}");
    assert!(matches!(not_json(""), NotJson::Cut { .. }));
}

#[test]
fn text_that_is_none_is_told_by_the_place_where_it_stops_being_it() {
    let good = text().decode(Bytes::from("grüß dich")).unwrap();
    assert_eq!(only(good), "grüß dich");
    let error = text()
        .decode(Bytes::from_static(b"secret\xff\xfe"))
        .unwrap_err();
    assert!(!format!("{error:?}").contains("secret"));
    let NotText { valid, .. } = *error.downcast().unwrap();
    assert_eq!(valid, 6);
}

#[cfg(feature = "avro")]
mod avro_payloads {
    use apache_avro::writer::datum::GenericDatumWriter;
    use pubsub_source::decode::{NotAvro, avro, avro_container, avro_single_object};

    use super::*;

    const SCHEMA: &str = r#"{"type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "long"},
        {"name": "lines", "type": {"type": "array", "items": "string"}, "default": []}
    ]}"#;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct AvroOrder {
        id: i64,
        lines: Vec<String>,
    }

    fn order(id: i64) -> AvroOrder {
        AvroOrder {
            id,
            lines: vec!["a".to_owned(); usize::try_from(id % 3).unwrap()],
        }
    }

    fn schema() -> apache_avro::Schema {
        apache_avro::Schema::parse_str(SCHEMA).unwrap()
    }

    fn datum(order: &AvroOrder) -> Vec<u8> {
        let schema = schema();
        let writer = GenericDatumWriter::builder(&schema).build().unwrap();
        writer.write_ser_to_vec(order).unwrap()
    }

    fn container(orders: impl IntoIterator<Item = AvroOrder>) -> Vec<u8> {
        let schema = schema();
        let mut writer = apache_avro::Writer::new(&schema, Vec::new()).unwrap();
        for order in orders {
            writer.append_ser(order).unwrap();
        }
        writer.into_inner().unwrap()
    }

    fn why<R: std::fmt::Debug>(decoded: Result<R, BoxError>) -> NotAvro {
        let error = decoded.unwrap_err();
        assert!(
            error.source().is_none(),
            "what the crate says quotes the payload"
        );
        *error.downcast().unwrap()
    }

    #[test]
    fn an_avro_value_is_a_record_and_nothing_may_follow_it() {
        let mut decoder = avro::<AvroOrder>(SCHEMA).unwrap();
        let mut payload = datum(&order(5));
        assert_eq!(only(decoder.decode(&payload).unwrap()), order(5));
        payload.push(0);
        let longer = why(decoder.decode(&payload).map(drop));
        assert!(matches!(longer, NotAvro::Longer { bytes: 1 }), "{longer:?}");
        let cut = why(decoder.decode(&payload[..2]).map(drop));
        assert!(matches!(cut, NotAvro::Value), "{cut:?}");
    }

    #[test]
    fn an_avro_value_of_another_schema_is_refused_by_its_fingerprint() {
        use apache_avro::{rabin::Rabin, schema::SchemaFingerprint};
        let SchemaFingerprint { bytes } = schema().fingerprint::<Rabin>();
        let payload = [&[0xc3, 0x01][..], &bytes, &datum(&order(1))].concat();
        let mut decoder = avro_single_object::<AvroOrder>(SCHEMA).unwrap();
        assert_eq!(only(decoder.decode(&payload).unwrap()), order(1));

        let mut other = avro_single_object::<AvroOrder>(&SCHEMA.replace("Order", "Offer")).unwrap();
        assert!(matches!(
            why(other.decode(&payload).map(drop)),
            NotAvro::Value
        ));
    }

    #[test]
    fn the_values_of_an_avro_container_come_out_until_one_cannot_be_read() {
        let mut decoder = avro_container::<AvroOrder>();
        let payload = container((0..5).map(order));
        let values = decoder.decode(payload.clone()).unwrap();
        let values: Vec<AvroOrder> = values.map(Result::unwrap).collect();
        assert_eq!(values, (0..5).map(order).collect::<Vec<_>>());

        // The last marker is damaged: everything before it is out by then.
        let mut damaged = payload;
        *damaged.last_mut().unwrap() ^= 1;
        let values: Vec<_> = decoder.decode(damaged).unwrap().collect();
        assert!(values.last().unwrap().is_err());
        assert!(values.iter().rev().skip(1).all(Result::is_ok));

        let none = why(decoder.decode(Bytes::from("no container")).map(drop));
        assert!(matches!(none, NotAvro::Container), "{none:?}");
    }

    #[test]
    fn a_text_that_is_no_schema_is_an_error_with_its_reason() {
        let error = avro::<AvroOrder>("{").unwrap_err();
        assert!(std::error::Error::source(&error).is_some());
    }

    proptest! {
        #[test]
        fn what_avro_wrote_is_read(ids in prop::collection::vec(0i64.., 0..20)) {
            let mut one = avro::<AvroOrder>(SCHEMA).unwrap();
            for id in &ids {
                prop_assert_eq!(only(one.decode(datum(&order(*id))).unwrap()), order(*id));
            }
            let payload = container(ids.iter().copied().map(order));
            let values = avro_container::<AvroOrder>().decode(payload).unwrap();
            let found: Vec<i64> = values.map(|value| value.unwrap().id).collect();
            prop_assert_eq!(found, ids);
        }

        #[test]
        fn no_bytes_make_the_avro_decoders_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let count = |records: Result<usize, BoxError>| records.unwrap_or(0);
            let mut value = avro::<AvroOrder>(SCHEMA).unwrap();
            prop_assert!(count(value.decode(&bytes).map(Iterator::count)) <= 1);
            let mut object = avro_single_object::<AvroOrder>(SCHEMA).unwrap();
            prop_assert!(count(object.decode(&bytes).map(Iterator::count)) <= 1);
            let mut file = avro_container::<AvroOrder>();
            prop_assert_eq!(count(file.decode(bytes).map(Iterator::count)), 0);
            let mut damaged = container((0..4).map(order));
            let at = at.index(damaged.len());
            damaged[at] = byte;
            // A count that is damaged promises at most what the rest of the block can hold.
            let most = damaged.len();
            prop_assert!(count(file.decode(damaged).map(Iterator::count)) <= most);
        }
    }
}

proptest! {
    #[test]
    fn bytes_come_out_as_they_are(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let payload = Bytes::from(bytes);
        prop_assert_eq!(only(raw().decode(payload.clone()).unwrap()), payload);
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let decoded = text().decode(bytes.clone());
        prop_assert_eq!(decoded.is_ok(), std::str::from_utf8(&bytes).is_ok());
        let decoded = json::<serde_json::Value>().decode(&bytes);
        let plain: Result<serde_json::Value, _> = serde_json::from_slice(&bytes);
        prop_assert_eq!(decoded.is_ok(), plain.is_ok());
    }
}
