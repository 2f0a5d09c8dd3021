use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;

use super::tree::Tree;
use super::*;

fn form<T: Serialize + ?Sized>(value: &T) -> String {
    String::from_utf8(Form.encode(value).unwrap().to_vec()).unwrap()
}

fn csv<T: Serialize + ?Sized>(format: &Csv, value: &T) -> String {
    String::from_utf8(format.encode(value).unwrap().to_vec()).unwrap()
}

fn refusal<T: ?Sized>(format: &impl BodyFormat<T>, value: &T) -> BodyError {
    let error = format.encode(value).unwrap_err();
    error.downcast_ref::<BodyError>().unwrap().clone()
}

/// One field of the name and value given.
fn one(name: &str, value: &str) -> String {
    form(&BTreeMap::from([(name, value)]))
}

/// `*-._` and letters and digits stay, a space is `+`, all else is a percent sign and the upper-case
/// digits of a UTF-8 byte (the URL standard's `application/x-www-form-urlencoded` serializer).
#[test]
fn a_form_is_encoded_as_the_url_standard_has_it() {
    for (text, expected) in [
        ("東京 + pickup", "%E6%9D%B1%E4%BA%AC+%2B+pickup"),
        ("books,sale", "books%2Csale"),
        ("Alice & Bob", "Alice+%26+Bob"),
        ("AZaz09*-._", "AZaz09*-._"),
        ("~", "%7E"),
        ("", ""),
        ("100%", "100%25"),
    ] {
        assert_eq!(one("n", text), format!("n={expected}"));
    }
    for (name, expected) in [
        ("items[]", "items%5B%5D"),
        ("customer.name", "customer.name"),
        ("表示 name +&=", "%E8%A1%A8%E7%A4%BA+name+%2B%26%3D"),
    ] {
        assert_eq!(one(name, "v"), format!("{expected}=v"));
    }
}

#[derive(Serialize, Default)]
struct Order {
    zebra: String,
    absent: Option<String>,
    #[serde(rename = "items[]")]
    items: Vec<String>,
    none: Option<Vec<String>>,
    alpha: Option<String>,
}

#[test]
fn the_fields_of_a_form_keep_their_order_and_absent_ones_are_left_out() {
    let order = Order {
        zebra: "z".to_owned(),
        items: ["b", "a", ""].map(str::to_owned).to_vec(),
        alpha: Some(String::new()),
        ..Order::default()
    };
    assert_eq!(
        form(&order),
        "zebra=z&items%5B%5D=b&items%5B%5D=a&items%5B%5D=&alpha="
    );
    #[derive(Serialize)]
    struct Absent {
        a: Option<String>,
        b: Vec<String>,
        c: (),
    }
    let absent = Absent {
        a: None,
        b: Vec::new(),
        c: (),
    };
    assert_eq!(form(&absent), "", "an empty body is a body");
    #[derive(Serialize)]
    struct Flat {
        first: &'static str,
        #[serde(flatten)]
        rest: BTreeMap<String, String>,
    }
    let flat = Flat {
        first: "1",
        rest: BTreeMap::from([("a".to_owned(), "2".to_owned())]),
    };
    assert_eq!(form(&flat), "first=1&a=2");
}

#[derive(Serialize)]
enum Choice {
    Plain,
    Of(u8),
    Pair(u8, u8),
    Named { field: u8 },
}

#[test]
fn what_is_no_text_is_refused_by_a_form_with_the_name_of_its_field() {
    fn refused(value: impl Serialize) -> BodyError {
        refusal(&Form, &BTreeMap::from([("f", value)]))
    }
    let not_text = |found| BodyError::NotText {
        field: "f".to_owned(),
        found,
    };
    assert_eq!(refused(1), not_text("a number"));
    assert_eq!(refused(1.5), not_text("a number"));
    assert_eq!(refused(true), not_text("a boolean"));
    assert_eq!(refused('c'), not_text("a character"));
    assert_eq!(refused(Choice::Plain), not_text("an enum"));
    assert_eq!(refused(Choice::Of(1)), not_text("an enum with data"));
    assert_eq!(refused(Choice::Pair(1, 2)), not_text("an enum with data"));
    assert_eq!(
        refused(Choice::Named { field: 1 }),
        not_text("an enum with data")
    );
    assert_eq!(
        refused(BTreeMap::from([("a", "b")])),
        not_text("a struct or map")
    );
    let text = refused(1).to_string();
    assert!(text.contains("convert it to a string"), "{text}");

    let element = |index, found| BodyError::Element {
        field: "f".to_owned(),
        index,
        found,
    };
    assert_eq!(refused([Some("a"), None]), element(1, "absent"));
    assert_eq!(refused([[1]]), element(0, "a list"));
    assert_eq!(refused((1, "a")), element(0, "a number"));

    let found = "a list";
    assert_eq!(refusal(&Form, &["a"]), BodyError::NotFields { found });
    let found = "a text";
    assert_eq!(refusal(&Form, "a=b"), BodyError::NotFields { found });
    let found = "a number";
    assert_eq!(
        refusal(&Form, &BTreeMap::from([(1, "a")])),
        BodyError::Name { found }
    );
}

#[test]
fn a_csv_row_quotes_what_needs_it_and_ends_without_a_line_break() {
    let format = Csv::new(b'|', b'"').unwrap().null("NULL");
    let row = ("a \"b\"", "line\nbreak", None::<String>);
    assert_eq!(csv(&format, &row), "\"a \"\"b\"\"\"|\"line\nbreak\"|NULL");
    assert_eq!(csv(&format, &("x|y", "x,y")), "\"x|y\"|x,y");
    let plain = Csv::default();
    assert_eq!(csv(&plain, &("o-7", 3, true)), "o-7,3,true");
    assert_eq!(csv(&plain, &("a", None::<u8>, "")), "a,,");
    assert_eq!(
        csv(&plain, &(-1_i8, u64::MAX, 1.5_f32, 'c', Choice::Plain)),
        "-1,18446744073709551615,1.5,c,Plain"
    );
    assert_eq!(csv(&plain, &("a\r",)), "\"a\r\"");
    assert_eq!(
        csv(&plain, &[""]),
        "\"\"",
        "one empty column is not no column"
    );
    assert_eq!(csv(&plain, &[""; 0]), "");
    let quoted = Csv::new(b';', b'\'').unwrap();
    assert_eq!(csv(&quoted, &("it's", "a\"b")), "'it''s';a\"b");
    let order = Order {
        zebra: "z".to_owned(),
        ..Order::default()
    };
    assert_eq!(
        refusal(&plain, &order),
        BodyError::Column {
            column: 2,
            found: "a list"
        }
    );
}

#[test]
fn a_csv_row_is_made_of_single_values() {
    let plain = Csv::default();
    for (error, column, found) in [
        (refusal(&plain, &("a", ["b"])), 1, "a list"),
        (
            refusal(&plain, &(BTreeMap::from([("a", 1)]),)),
            0,
            "a struct or map",
        ),
        (refusal(&plain, &(Choice::Of(1),)), 0, "an enum with data"),
    ] {
        assert_eq!(error, BodyError::Column { column, found });
    }
    let found = "a text";
    assert_eq!(refusal(&plain, "a,b"), BodyError::NotARow { found });
    let found = "absent";
    assert_eq!(refusal(&plain, &()), BodyError::NotARow { found });
}

#[test]
fn a_delimiter_and_a_quote_that_tell_nothing_apart_are_refused() {
    for (delimiter, quote) in [
        (b'"', b'"'),
        (b'\n', b'"'),
        (b',', b'\r'),
        (0xe9, b'"'),
        (b',', 0xff),
    ] {
        let expected = BodyError::Dialect { delimiter, quote };
        assert_eq!(Csv::new(delimiter, quote), Err(expected));
    }
    assert!(Csv::new(b'\t', b'\'').is_ok());
}

#[test]
fn text_is_written_in_its_charset() {
    let bytes = |charset, text: &str| Text::new(charset).encode(text).unwrap().to_vec();
    assert_eq!(bytes(Charset::Utf16Be, "東京"), [0x67, 0x71, 0x4e, 0xac]);
    assert_eq!(bytes(Charset::Utf16Le, "東京"), [0x71, 0x67, 0xac, 0x4e]);
    assert_eq!(
        bytes(Charset::Utf16Be, "\u{1f600}"),
        [0xd8, 0x3d, 0xde, 0x00]
    );
    assert_eq!(bytes(Charset::Utf8, "東"), [0xe6, 0x9d, 0xb1]);
    assert_eq!(bytes(Charset::Latin1, "caf\u{e9}"), b"caf\xe9");
    assert_eq!(bytes(Charset::Ascii, "cafe"), b"cafe");
    for (charset, text, symbol) in [
        (Charset::Latin1, "1 \u{20ac}", '\u{20ac}'),
        (Charset::Ascii, "caf\u{e9}", '\u{e9}'),
    ] {
        let expected = BodyError::Unencodable { symbol, charset };
        assert_eq!(refusal(&Text::new(charset), text), expected);
    }
}

#[test]
fn every_format_names_its_type() {
    fn of<T: ?Sized>(format: &impl BodyFormat<T>, _value: &T) -> ContentType {
        format.content_type()
    }
    assert_eq!(of(&Json, ""), ContentType::Default("application/json"));
    assert_eq!(of(&Csv::default(), ""), ContentType::Default("text/csv"));
    assert_eq!(
        of(&Form, ""),
        ContentType::Fixed("application/x-www-form-urlencoded")
    );
    for charset in [
        Charset::Utf8,
        Charset::Utf16Be,
        Charset::Utf16Le,
        Charset::Latin1,
        Charset::Ascii,
    ] {
        let ContentType::Default(given) = of(&Text::new(charset), "") else {
            panic!("{charset}")
        };
        assert_eq!(given, format!("text/plain; charset={charset}"));
    }
}

#[test]
fn a_failure_of_the_values_own_code_is_told() {
    struct Broken;
    impl Serialize for Broken {
        fn serialize<S: serde::Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("the cart is gone"))
        }
    }
    assert_eq!(
        refusal(&Form, &BTreeMap::from([("f", Broken)])).to_string(),
        "the value does not serialize: the cart is gone"
    );
}

proptest! {
    #[test]
    fn a_form_parses_back_to_its_pairs(pairs in proptest::collection::btree_map(".*", ".*", 0..8)) {
        let text = form(&pairs);
        let parsed: BTreeMap<String, String> =
            form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        prop_assert_eq!(parsed, pairs);
    }

    #[test]
    fn a_csv_row_parses_back_to_its_columns(
        columns in proptest::collection::vec(".*|[|\"'\r\n a]{0,6}", 1..6),
        dialect in proptest::sample::select(vec![(b',', b'"'), (b'|', b'\''), (b' ', b'a')]),
    ) {
        // This reader takes a first U+FEFF for a byte order mark and drops it.
        prop_assume!(!columns[0].starts_with('\u{feff}'));
        let (delimiter, quote) = dialect;
        let text = csv(&Csv::new(delimiter, quote).unwrap(), &columns);
        let mut reader = ::csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(delimiter)
            .quote(quote)
            .from_reader(text.as_bytes());
        let records: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        prop_assert_eq!(records.len(), 1);
        prop_assert_eq!(records[0].iter().collect::<Vec<_>>(), columns);
    }

    #[test]
    fn text_in_utf_16_comes_back_as_it_was(text in ".*") {
        let bytes = Text::new(Charset::Utf16Le).encode(&text).unwrap();
        let units: Vec<u16> = bytes
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        prop_assert_eq!(String::from_utf16(&units).unwrap(), text);
    }

    #[test]
    fn text_is_never_taken_for_anything_else(text in ".*") {
        prop_assert_eq!(Tree::of(&text).unwrap(), Tree::Text(text));
    }
}
