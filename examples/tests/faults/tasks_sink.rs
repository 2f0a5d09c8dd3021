//! The Cloud Tasks sink.

use std::{
    collections::BTreeSet,
    error::Error,
    time::{Duration, UNIX_EPOCH},
};

use cloudtasks_sink::{
    Batch, CloudTasksSink, Delivery, Endpoint, HttpTask, Resolution, SinkError, Task,
};
use gcp_emulator::{Emulator, Method, cloudtasks::proto::task::MessageType};

use tokio::time::Instant;

use crate::{
    sinks::{Case, Subject, run, word},
    trouble::Trouble,
};

column!(create_task, super::creates);
column!(create_named_task, super::creates);
column!(create_task_staged, super::creates);
column!(batch_create_tasks, super::creates);
column!(batch_create_tasks_staged, super::creates);
column!(get_operation, super::creates);
column!(get_queue, super::creates);

const QUEUE: &str = "projects/demo/locations/l/queues/orders";
const URL: &str = "https://partner.example/orders";

const HOUR: Duration = Duration::from_secs(3600);

impl Subject for CloudTasksSink<usize> {
    const CONNECTOR: &'static str = "tasks_sink";

    fn last_word(error: &(dyn Error + 'static)) -> Option<String> {
        word(error, |error| matches!(error, SinkError::Closed { .. }))
    }

    fn kept(&self) -> BTreeSet<usize> {
        let kept = self.refused().into_iter().chain(self.expired());
        kept.map(|task| {
            let task = prost::Message::decode(task.task().as_ref()).unwrap();
            number(&task)
        })
        .collect()
    }

    fn send_kept(&mut self) {
        for task in self.refused() {
            self.resolve(&task.name(), Resolution::Force).unwrap();
        }
    }
}

fn number(task: &gcp_emulator::cloudtasks::proto::Task) -> usize {
    let Some(MessageType::HttpRequest(request)) = &task.message_type else {
        panic!("not an HTTP task: {task:?}");
    };
    std::str::from_utf8(&request.body).unwrap().parse().unwrap()
}

fn stored(emulator: &Emulator) -> BTreeSet<usize> {
    let seen = emulator.observe().queue(QUEUE);
    seen.created
        .iter()
        .map(|task| number(&task.stored))
        .collect()
}

/// Tasks with names, of which there is one for each record whatever happened to its answer.
fn stored_once(emulator: &Emulator) -> BTreeSet<usize> {
    let stored = stored(emulator);
    let tasks = emulator.observe().queue(QUEUE).created.len();
    assert_eq!(
        tasks,
        stored.len(),
        "a task for each record, and no second one"
    );
    stored
}

async fn creates(column: &'static str, trouble: Trouble) {
    let emulator = Emulator::builder()
        .queue(QUEUE)
        .task_names_kept(HOUR)
        .operations_take(Duration::from_millis(500))
        .require_routing_header(true)
        .start();
    let method = match column {
        "batch_create_tasks" | "batch_create_tasks_staged" => Method::BatchCreateTasks,
        "get_operation" => Method::GetOperation,
        "get_queue" => Method::GetQueue,
        _ => Method::CreateTask,
    };
    let staged = column.ends_with("staged") || column == "get_operation";
    let has_names = staged || column == "create_named_task";
    let endpoint = Endpoint::in_memory(emulator.dialer());
    // The service's time of day is the sink's.
    let (started, noon) = (Instant::now(), UNIX_EPOCH + emulator.now().as_unix());
    let build = move |restored| {
        let encode = |number: &usize| -> Result<Option<Task>, connector_core::BoxError> {
            Ok(Some(HttpTask::post(URL)?.body(number.to_string()).into()))
        };
        let mut builder = CloudTasksSink::builder(encode)
            .queue(QUEUE.parse().unwrap())
            .endpoint(endpoint.clone())
            .wall_clock(move || noon + started.elapsed())
            .restore(restored);
        if column == "create_named_task" {
            builder = builder.task_id(|number: &usize| number.to_string());
        }
        if staged {
            builder = builder.delivery(Delivery::Staged {
                name_retention: HOUR,
            });
        }
        if column.starts_with("batch") || column == "get_operation" {
            builder = builder.batching(Batch::up_to(100));
        }
        builder.build().unwrap()
    };
    let case = Case {
        emulator,
        column,
        method,
        staged,
        build: Box::new(build),
        stored: if has_names { stored_once } else { stored },
    };
    run(case, trouble).await;
}
