//! Text that people and records write: resource names and endpoints.

use std::ffi::OsString;

use bytes::Bytes;

use crate::{Endpoint, NameError, QueueName, Service, SnapshotName, SubscriptionName, TopicName};

/// Whatever text is given as a name, it is refused with a short error, or is a name that prints as
/// it was written and whose parts obey the services' rules.
pub fn resource_names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    check::<TopicName>(&text, &["projects", "topics"]);
    check::<SubscriptionName>(&text, &["projects", "subscriptions"]);
    check::<SnapshotName>(&text, &["projects", "snapshots"]);
    check::<QueueName>(&text, &["projects", "locations", "queues"]);
    let queue = QueueName::parse_in("demo", "us-central1", &text);
    short(queue.as_ref().err());
    if let Ok(queue) = queue {
        let task = queue.task(&text);
        short(task.as_ref().err());
        if let Ok(task) = task {
            assert_eq!(task, format!("{queue}/tasks/{text}"));
        }
    }
    for name in [
        TopicName::parse_in("demo", &text).map(|name| name.to_string()),
        SubscriptionName::parse_in(&text, "orders").map(|name| name.to_string()),
    ] {
        short(name.as_ref().err());
        assert!(name.is_err() || name.is_ok_and(|name| name.contains(&*text)));
    }
}

/// Checks one kind of name.
pub(super) fn check<N>(text: &str, collections: &[&str])
where
    N: std::str::FromStr<Err = NameError> + AsRef<str>,
{
    match text.parse::<N>() {
        Err(error) => short(Some(&error)),
        Ok(name) => {
            assert_eq!(name.as_ref(), text, "a name prints as it was written");
            let parts: Vec<&str> = text.split('/').collect();
            let (named, ids): (Vec<_>, Vec<_>) = parts
                .chunks(2)
                .map(|pair| (pair.first().copied(), pair.get(1).copied()))
                .unzip();
            assert!(named.into_iter().eq(collections.iter().copied().map(Some)));
            for id in ids {
                let id = id.expect("each collection has an id");
                assert!((1..=255).contains(&id.len()), "{id:?} is too short or long");
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+%:".contains(&byte);
                assert!(id.bytes().all(allowed), "{id:?} has other characters");
            }
        }
    }
}

fn short(error: Option<&NameError>) {
    if let Some(error) = error {
        assert!(error.value().chars().count() <= 301, "an error is short");
        assert!(!error.to_string().is_empty());
    }
}

/// Whatever text is given as an endpoint, a region or a CA, it is refused, or means one host and
/// port and prints as what parses to the same.
pub fn endpoint(bytes: &[u8]) {
    endpoints_by(bytes, Endpoint::emulator);
}

pub(super) fn endpoints_by<E>(bytes: &[u8], parse: impl Fn(&str) -> Result<Endpoint, E>) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(endpoint) = parse(&text) {
        let printed = endpoint.to_string();
        let plain = printed.strip_prefix("http://").expect("it is plaintext");
        let (host, port) = plain.rsplit_once(':').expect("it has a port");
        assert!(port.parse::<u16>().is_ok_and(|port| port > 0));
        let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.[]:".contains(&byte);
        assert!(!host.is_empty() && host.bytes().all(named), "{host:?}");
        let again = Endpoint::emulator(plain).map(|endpoint| endpoint.to_string());
        assert_eq!(again, Ok(printed.clone()), "it prints as what it means");
        let secured = Endpoint::tls(&text).map(|endpoint| endpoint.to_string());
        assert_eq!(
            secured,
            Ok(format!("https://{plain}")),
            "TLS means the same"
        );
        let variable = OsString::from(format!("http://{text}/"));
        let tolerant = Endpoint::emulator_from_value("VARIABLE", Some(variable));
        let tolerant = tolerant.map(|endpoint| endpoint.map(|endpoint| endpoint.to_string()));
        assert_eq!(tolerant, Ok(Some(printed)));
    }
    let variable = Some(OsString::from(&*text));
    if let Ok(Some(endpoint)) = Endpoint::emulator_from_value("VARIABLE", variable) {
        assert!(endpoint.is_emulator());
    }
    for service in [Service::Pubsub, Service::CloudTasks] {
        if let Ok(endpoint) = Endpoint::regional(service, &text) {
            let printed = endpoint.to_string();
            assert!(printed.ends_with(".googleapis.com:443"), "{printed}");
            assert!(!endpoint.is_emulator());
        }
    }
    let production = Endpoint::production(Service::Pubsub);
    let trusting = production.ca_pem(Bytes::copy_from_slice(bytes));
    assert!(trusting.is_err() || text.contains("CERTIFICATE"));
}
