//! The names in the answer to a call, which is most of it and of which nothing else is wanted.

use prost::{DecodeError, Message};

/// `BatchCreateTasksResponse`, as far as it is read.
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(message, repeated, tag = "1")]
    tasks: Vec<Created>,
}

/// `Task`, as far as it is read: whatever else the service says of it is passed over.
#[derive(Clone, PartialEq, Message)]
struct Created {
    #[prost(string, tag = "1")]
    name: String,
}

/// The names of the tasks in an encoded `BatchCreateTasksResponse`, in their order.
pub(super) fn of_created(response: &[u8]) -> Result<Vec<String>, DecodeError> {
    let tasks = Response::decode(response)?.tasks;
    Ok(tasks.into_iter().map(|task| task.name).collect())
}

#[cfg(test)]
mod tests {
    use gcp_wire::proto::tasks::{BatchCreateTasksResponse, HttpRequest, Task, task::MessageType};

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
        let names = of_created(&response.encode_to_vec()).unwrap();
        assert_eq!(names, ["a", "", "c"]);
        assert!(of_created(b"\x0A\x05?").is_err());
    }
}
