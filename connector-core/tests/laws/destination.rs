//! What a resolver's answer means, in each form a closure may give it.

use connector_core::{DestinationResolver, Fixed, Resolution};

fn resolve(mut resolver: impl DestinationResolver<str, u16>, record: &str) -> Resolution<u16> {
    resolver.resolve(record)
}

#[test]
fn a_destination_is_the_answer_in_any_form() {
    let answers = [
        resolve(|_: &str| 7, "7"),
        resolve(|record: &str| record.parse().ok(), "7"),
        resolve(str::parse, "7"),
        resolve(Fixed::new(7), "8"),
    ];
    for answer in answers {
        assert!(matches!(answer, Resolution::To(7)), "{answer:?}");
    }
}

#[test]
fn no_destination_is_a_mistake_in_the_configuration_and_not_in_the_record() {
    let answer = resolve(|record: &str| record.parse().ok(), "seven");
    assert!(matches!(answer, Resolution::Nothing), "{answer:?}");
}

#[test]
fn a_destination_that_does_not_parse_is_the_records_own_failure_with_its_cause() {
    let Resolution::Invalid(cause) = resolve(str::parse, "seven") else {
        panic!("a failure is neither a destination nor a missing one");
    };
    let expected = "seven".parse::<u16>().unwrap_err().to_string();
    assert_eq!(cause.to_string(), expected);
}
