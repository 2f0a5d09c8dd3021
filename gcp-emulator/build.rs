//! Generates the server side of the gRPC services without protoc.
//!
//! The published type crate carries clients only, and Cloud Tasks messages are declared by this
//! crate, so the services are described by hand: method, route, request and response type.

use tonic_build::manual::{Builder, Method, Service};

const CODEC: &str = "tonic_prost::ProstCodec";
const PUBSUB: &str = "crate::pubsub::proto";
const TASKS: &str = "crate::cloudtasks::proto";
const EMPTY: &str = "crate::Empty";

fn main() {
    Builder::new()
        .build_client(false)
        .build_transport(false)
        .compile(&[publisher(), subscriber(), cloud_tasks(), operations()]);
}

fn unary(route: &str, input: String, output: String) -> Method {
    described(route, input, output).build()
}

fn described(route: &str, input: String, output: String) -> tonic_build::manual::MethodBuilder {
    Method::builder()
        .name(snake(route))
        .route_name(route)
        .input_type(input)
        .output_type(output)
        .codec_path(CODEC)
}

fn snake(route: &str) -> String {
    let mut name = String::new();
    for letter in route.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn typed(module: &str, name: &str) -> String {
    if name == EMPTY {
        name.to_owned()
    } else {
        format!("{module}::{name}")
    }
}

fn service(name: &str, package: &str, module: &str, methods: &[(&str, &str, &str)]) -> Service {
    let mut service = Service::builder().name(name).package(package);
    for (route, input, output) in methods {
        service = service.method(unary(route, typed(module, input), typed(module, output)));
    }
    service.build()
}

fn publisher() -> Service {
    service(
        "Publisher",
        "google.pubsub.v1",
        PUBSUB,
        &[
            ("CreateTopic", "Topic", "Topic"),
            ("UpdateTopic", "UpdateTopicRequest", "Topic"),
            ("Publish", "PublishRequest", "PublishResponse"),
            ("GetTopic", "GetTopicRequest", "Topic"),
            ("ListTopics", "ListTopicsRequest", "ListTopicsResponse"),
            (
                "ListTopicSubscriptions",
                "ListTopicSubscriptionsRequest",
                "ListTopicSubscriptionsResponse",
            ),
            (
                "ListTopicSnapshots",
                "ListTopicSnapshotsRequest",
                "ListTopicSnapshotsResponse",
            ),
            ("DeleteTopic", "DeleteTopicRequest", EMPTY),
            (
                "DetachSubscription",
                "DetachSubscriptionRequest",
                "DetachSubscriptionResponse",
            ),
        ],
    )
}

fn subscriber() -> Service {
    let methods = [
        ("CreateSubscription", "Subscription", "Subscription"),
        ("GetSubscription", "GetSubscriptionRequest", "Subscription"),
        (
            "UpdateSubscription",
            "UpdateSubscriptionRequest",
            "Subscription",
        ),
        (
            "ListSubscriptions",
            "ListSubscriptionsRequest",
            "ListSubscriptionsResponse",
        ),
        ("DeleteSubscription", "DeleteSubscriptionRequest", EMPTY),
        ("ModifyAckDeadline", "ModifyAckDeadlineRequest", EMPTY),
        ("Acknowledge", "AcknowledgeRequest", EMPTY),
        ("Pull", "PullRequest", "PullResponse"),
        ("ModifyPushConfig", "ModifyPushConfigRequest", EMPTY),
        ("GetSnapshot", "GetSnapshotRequest", "Snapshot"),
        (
            "ListSnapshots",
            "ListSnapshotsRequest",
            "ListSnapshotsResponse",
        ),
        ("CreateSnapshot", "CreateSnapshotRequest", "Snapshot"),
        ("UpdateSnapshot", "UpdateSnapshotRequest", "Snapshot"),
        ("DeleteSnapshot", "DeleteSnapshotRequest", EMPTY),
        ("Seek", "SeekRequest", "SeekResponse"),
    ];
    let mut service = Service::builder()
        .name("Subscriber")
        .package("google.pubsub.v1");
    for (route, input, output) in methods {
        service = service.method(unary(route, typed(PUBSUB, input), typed(PUBSUB, output)));
    }
    service
        .method(
            described(
                "StreamingPull",
                typed(PUBSUB, "StreamingPullRequest"),
                typed(PUBSUB, "StreamingPullResponse"),
            )
            .client_streaming()
            .server_streaming()
            .build(),
        )
        .build()
}

fn cloud_tasks() -> Service {
    service(
        "CloudTasks",
        "google.cloud.tasks.v2",
        TASKS,
        &[
            ("ListQueues", "ListQueuesRequest", "ListQueuesResponse"),
            ("GetQueue", "GetQueueRequest", "Queue"),
            ("CreateQueue", "CreateQueueRequest", "Queue"),
            ("UpdateQueue", "UpdateQueueRequest", "Queue"),
            ("DeleteQueue", "DeleteQueueRequest", EMPTY),
            ("PurgeQueue", "PurgeQueueRequest", "Queue"),
            ("PauseQueue", "PauseQueueRequest", "Queue"),
            ("ResumeQueue", "ResumeQueueRequest", "Queue"),
            ("ListTasks", "ListTasksRequest", "ListTasksResponse"),
            ("GetTask", "GetTaskRequest", "Task"),
            ("CreateTask", "CreateTaskRequest", "Task"),
            ("DeleteTask", "DeleteTaskRequest", EMPTY),
            ("RunTask", "RunTaskRequest", "Task"),
            ("BatchCreateTasks", "BatchCreateTasksRequest", "Operation"),
        ],
    )
}

fn operations() -> Service {
    service(
        "Operations",
        "google.longrunning",
        TASKS,
        &[("GetOperation", "GetOperationRequest", "Operation")],
    )
}
