//! What is to become of each cell.

use std::time::Duration;

use crate::trouble::{LASTS, Seen, Trouble};

/// How long after the trouble everything is done that waited for it. A back-off of up to 60 s where a
/// quota was used up, a lease of 10 s that lapses unseen, and the host's own rhythm are in it.
pub(crate) const RECOVERY: Duration = Duration::from_secs(120);

/// How long after its beginning a connector says that it ends, where no retries come first. The host
/// looks every 2 s.
const END: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It goes on by itself once the trouble is over.
    Recovers,
    /// What was refused stays in the state, for the operator; everything else goes on.
    KeepsAside,
    /// It ends with this error: at once, or within these seconds of retries. Its successor, restored
    /// from the last saved state, does what is left.
    Ends(&'static str, u64),
}

impl Outcome {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Recovers => "goes on".to_owned(),
            Self::KeepsAside => "kept aside".to_owned(),
            Self::Ends(error, 0) => format!("`{error}`"),
            Self::Ends(error, within) => format!("`{error}`, {within} s"),
        }
    }

    /// Holds what was seen to it.
    pub(crate) fn check(self, seen: &Seen) {
        match (self, seen) {
            (Self::Recovers, Seen::Recovered(took)) | (Self::KeepsAside, Seen::KeptAside(took)) => {
                assert!(*took <= LASTS + RECOVERY, "only after {took:?}");
            }
            (Self::Ends(expected, within), Seen::Ended(error, took)) => {
                assert_eq!(expected, error);
                assert!(
                    *took <= END + Duration::from_secs(within),
                    "only after {took:?}"
                );
            }
            (Self::Recovers | Self::KeepsAside | Self::Ends(..), _) => {
                panic!("{self:?} is expected, {seen:?} is what happened")
            }
        }
    }
}

/// A connector, its methods with what it does there, and what becomes of each.
pub(crate) struct Table {
    pub(crate) connector: &'static str,
    pub(crate) columns: &'static [(&'static str, &'static str)],
    pub(crate) outcome: fn(&str, Trouble) -> Outcome,
}

pub(crate) const TABLES: [Table; 3] = [
    Table {
        connector: "source",
        columns: &[
            ("streaming_pull", "StreamingPull"),
            ("acknowledge", "Acknowledge"),
            ("modify_ack_deadline", "ModifyAckDeadline"),
            ("get_subscription", "GetSubscription (start)"),
            ("get_topic", "GetTopic (start)"),
            ("create_subscription", "CreateSubscription (start)"),
            ("seek", "Seek (start)"),
            ("get_snapshot", "GetSnapshot (start)"),
        ],
        outcome: source,
    },
    Table {
        connector: "pubsub_sink",
        columns: &[
            ("publish", "Publish, flushing"),
            ("publish_staged", "Publish, staged"),
            ("create_topic", "CreateTopic"),
            (
                "list_topic_subscriptions",
                "ListTopicSubscriptions (dead letters)",
            ),
        ],
        outcome: pubsub_sink,
    },
    Table {
        connector: "tasks_sink",
        columns: &[
            ("create_task", "CreateTask, flushing"),
            ("create_named_task", "CreateTask, named"),
            ("create_task_staged", "CreateTask, staged"),
            ("batch_create_tasks", "BatchCreateTasks, flushing"),
            ("batch_create_tasks_staged", "BatchCreateTasks, staged"),
            ("get_operation", "GetOperation, staged"),
            ("get_queue", "GetQueue"),
        ],
        outcome: tasks_sink,
    },
];

pub(crate) fn outcome(connector: &str, column: &str, trouble: Trouble) -> Outcome {
    let table = TABLES.iter().find(|table| table.connector == connector);
    let table = table.expect("a table for each connector");
    let known = table.columns.iter().any(|(name, _)| *name == column);
    assert!(known, "{column} is in the table of {connector}");
    (table.outcome)(column, trouble)
}

fn source(column: &str, trouble: Trouble) -> Outcome {
    use Outcome::{Ends, Recovers};
    use Trouble::*;
    match (column, trouble) {
        // It is created, and not seen everywhere yet.
        ("get_subscription" | "seek", NotFound) => Recovers,
        ("get_topic", NotFound) => Ends("MissingTopic", 0),
        ("create_subscription", NotFound) => Ends("MissingSomeTopic", 0),
        ("get_snapshot", NotFound) => Ends("MissingSnapshot", 0),
        (_, NotFound) => Ends("Missing", 0),
        // Reading the topic is no right that a reader must have.
        ("get_topic", PermissionDenied) => Recovers,
        (_, PermissionDenied | Unauthenticated) => Ends("Denied", 0),
        // The deliveries of the request count as lapsed, and come again.
        ("acknowledge" | "modify_ack_deadline", InvalidArgument | FailedPrecondition) => Recovers,
        (_, InvalidArgument | FailedPrecondition) => Ends("Refused", 0),
        _ => Recovers,
    }
}

fn pubsub_sink(column: &str, trouble: Trouble) -> Outcome {
    use Outcome::{Ends, KeepsAside, Recovers};
    use Trouble::*;
    let ends = match trouble {
        NotFound | PermissionDenied | Unauthenticated | InvalidArgument | FailedPrecondition => {
            true
        }
        Unavailable | DeadlineExceeded | ResourceExhausted | Internal | Unknown | Cancelled
        | Aborted | AnswerLost | NeverAnswered | Slow => false,
    };
    match (column, trouble) {
        _ if !ends => Recovers,
        // A look whose outcome is told and changes nothing.
        ("list_topic_subscriptions", _) => Recovers,
        ("create_topic", _) => Ends("TopicNotCreated", 0),
        // A topic that was created is not seen everywhere yet.
        (_, NotFound) => Recovers,
        ("publish", InvalidArgument) => Ends("Rejected", 0),
        (_, InvalidArgument) => KeepsAside,
        _ => Ends("Refused", 0),
    }
}

/// Retries of one creation, by default: 8 within 22.7 s at most.
const RETRIES: u64 = 23;

/// Of one whose queue is missing: 3 within 3.5 s.
const QUEUE_RETRIES: u64 = 4;

fn tasks_sink(column: &str, trouble: Trouble) -> Outcome {
    use Outcome::{Ends, KeepsAside, Recovers};
    use Trouble::*;
    let staged = match column {
        // Asked for what it knows better only.
        "get_queue" | "get_operation" => return Recovers,
        "create_task_staged" | "batch_create_tasks_staged" => true,
        _ => false,
    };
    match trouble {
        // What the service does not know how to answer is not asked again: it may have been done.
        Internal | Unknown | Cancelled | Aborted => Ends("Refused", 0),
        InvalidArgument if staged => KeepsAside,
        InvalidArgument => Ends("Rejected", 0),
        // What is committed is tried until it is there, or its deadline is over.
        _ if staged => Recovers,
        Unavailable | DeadlineExceeded | ResourceExhausted | AnswerLost => {
            Ends("RetriesSpent", RETRIES)
        }
        NotFound | FailedPrecondition => Ends("QueueMissing", QUEUE_RETRIES),
        PermissionDenied | Unauthenticated => Ends("Refused", 0),
        NeverAnswered | Slow => Recovers,
    }
}
