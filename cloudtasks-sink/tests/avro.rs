//! Avro bodies, as whoever sends them sees them.

use std::collections::BTreeMap;

use apache_avro::{Schema, reader::datum::GenericDatumReader, types::Value};
use cloudtasks_sink::{Avro, BodyError, BodyFormat, ContentType};
use proptest::prelude::*;
use serde::Serialize;

const ORDER: &str = r#"{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "string"},
    {"name": "quantity", "type": "int"},
    {"name": "rush", "type": "boolean"}
]}"#;

#[derive(Serialize)]
struct Order<'a> {
    id: &'a str,
    quantity: i32,
    rush: bool,
}

fn order() -> Order<'static> {
    Order {
        id: "o-7",
        quantity: 3,
        rush: true,
    }
}

fn refusal(schema: &Avro, value: &impl Serialize) -> BodyError {
    let error = schema.encode(value).expect_err("refused");
    error
        .downcast_ref::<BodyError>()
        .expect("of its own kind")
        .clone()
}

#[test]
fn a_value_is_its_fields_in_the_order_of_the_schema_and_nothing_around_them() {
    let schema = Avro::parse(ORDER).unwrap();
    let golden = [0x06, 0x6f, 0x2d, 0x37, 0x06, 0x01];
    assert_eq!(schema.encode(&order()).unwrap(), &golden[..]);
    let content_type = BodyFormat::<Order<'_>>::content_type(&schema);
    assert_eq!(content_type, ContentType::Unset);
}

#[test]
fn the_order_of_the_values_own_fields_does_not_matter() {
    #[derive(Serialize)]
    struct Turned {
        rush: bool,
        quantity: i32,
        id: &'static str,
    }
    let turned = Turned {
        rush: true,
        quantity: 3,
        id: "o-7",
    };
    let schema = Avro::parse(ORDER).unwrap();
    assert_eq!(
        schema.encode(&turned).unwrap(),
        schema.encode(&order()).unwrap()
    );
}

#[test]
fn a_value_that_does_not_fit_is_refused_without_a_word_of_it() {
    #[derive(Serialize)]
    struct Wrong {
        id: &'static str,
        quantity: &'static str,
        rush: bool,
    }
    let schema = Avro::parse(ORDER).unwrap();
    let wrong = Wrong {
        id: "secret",
        quantity: "hunter2",
        rush: true,
    };
    let error = refusal(&schema, &wrong);
    assert_eq!(error, BodyError::AvroValue);
    let text = error.to_string();
    assert!(
        !text.contains("hunter2") && !text.contains("secret"),
        "{text}"
    );
    let missing = BTreeMap::from([("id", "o-7")]);
    assert_eq!(refusal(&schema, &missing), BodyError::AvroValue);
}

#[test]
fn a_schema_that_is_none_is_refused_when_it_is_read() {
    for wrong in ["", "{}", "order", r#"{"type": "record", "name": "Order"}"#] {
        let error = Avro::parse(wrong).unwrap_err();
        assert!(matches!(error, BodyError::AvroSchema { .. }), "{error}");
    }
}

proptest! {
    #[test]
    fn a_value_comes_back_as_it_was(id in ".*", quantity: i32, rush: bool) {
        let order = Order { id: &id, quantity, rush };
        let bytes = Avro::parse(ORDER).unwrap().encode(&order).unwrap();
        let schema = Schema::parse_str(ORDER).unwrap();
        let reader = GenericDatumReader::builder(&schema).build().unwrap();
        let read = reader.read_value(&mut &bytes[..]).unwrap();
        let expected = Value::Record(vec![
            ("id".to_owned(), Value::String(id.clone())),
            ("quantity".to_owned(), Value::Int(quantity)),
            ("rush".to_owned(), Value::Boolean(rush)),
        ]);
        prop_assert_eq!(read, expected);
    }
}
