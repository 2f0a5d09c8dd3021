//! The names in the answer to a call, which is most of it and of which nothing else is wanted.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// `tasks` of `BatchCreateTasksResponse`.
const TASKS: u32 = 1;
/// `name` of `Task`.
const NAME: u32 = 1;

/// The names of the tasks in an encoded `BatchCreateTasksResponse`, in their order; nothing when it
/// is malformed. `expected` is how many there should be.
///
/// Read without the generated type, which would make a task of each.
pub(super) fn of_created(response: &[u8], expected: usize) -> Option<Vec<String>> {
    let mut names = Vec::with_capacity(expected);
    each(response, TASKS, |task| {
        let mut name: &[u8] = &[];
        // Of a field that comes twice, the last counts.
        each(task, NAME, |text| {
            name = text;
            Some(())
        })?;
        names.push(str::from_utf8(name).ok()?.to_owned());
        Some(())
    })?;
    Some(names)
}

/// Calls `found` with each of the fields `wanted`; nothing when the message is malformed.
fn each<'a>(
    mut message: &'a [u8],
    wanted: u32,
    mut found: impl FnMut(&'a [u8]) -> Option<()>,
) -> Option<()> {
    while !message.is_empty() {
        let (field, wire_type) = decode_key(&mut message).ok()?;
        if field != wanted {
            skip_field(wire_type, field, &mut message, DecodeContext::default()).ok()?;
        } else if wire_type == WireType::LengthDelimited {
            let len = usize::try_from(decode_varint(&mut message).ok()?).ok()?;
            let (value, rest) = message.split_at_checked(len)?;
            message = rest;
            found(value)?;
        } else {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use gcp_wire::proto::tasks::{BatchCreateTasksResponse, HttpRequest, Task, task::MessageType};

    use prost::Message as _;

    use super::*;

    #[test]
    fn every_task_has_its_name_whatever_else_is_said_of_it() {
        let target = HttpRequest {
            url: "https://h/".to_owned(),
            ..HttpRequest::default()
        };
        let task = |name: &str| Task {
            name: name.to_owned(),
            message_type: Some(MessageType::HttpRequest(target.clone())),
            dispatch_count: 3,
            ..Task::default()
        };
        let response = BatchCreateTasksResponse {
            tasks: vec![task("a"), task(""), task("c")],
        };
        let names = of_created(&response.encode_to_vec(), 3).unwrap();
        assert_eq!(names, ["a", "", "c"]);
        assert_eq!(of_created(&[], 0), Some(Vec::new()));
    }

    #[test]
    fn what_is_malformed_has_no_names() {
        for malformed in [
            &b"\x0A\x05?"[..],       // shorter than it says
            b"\x08\x05",             // tasks as a number
            b"\x0A\x03\x0A\x02a",    // a name that is shorter than it says
            b"\x0A\x03\x0A\x01\xFF", // a name that is no text
            b"\x0A\x02\x08\x01",     // a name that is a number
            b"\x0A",
        ] {
            assert_eq!(of_created(malformed, 1), None, "{malformed:?}");
        }
    }
}
