//! An optional time as RFC 3339 text, which every language reads.

use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

pub(super) fn serialize<S: Serializer>(
    time: &Option<SystemTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(|time| humantime::format_rfc3339_millis(time).to_string())
        .serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SystemTime>, D::Error> {
    Option::<String>::deserialize(deserializer)?
        .map(|text| humantime::parse_rfc3339(&text).map_err(D::Error::custom))
        .transpose()
}
