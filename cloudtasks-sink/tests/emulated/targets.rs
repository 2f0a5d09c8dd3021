//! Tasks of every kind, and how large they may be.

use std::num::NonZeroU32;
use std::time::Duration;

use cloudtasks_sink::{
    AppEngineTask, CloudTasksSink, Form, FullTask, HttpMethod, HttpTask, Task, TaskError,
    TaskRetries,
};
use connector_core::{BoxError, Encode, RejectedReason};
use gcp_emulator::cloudtasks::proto::task::MessageType;

use crate::world::{Kept, Q1, World, chain, queue, request, send};

fn http() -> HttpTask {
    HttpTask::post("https://partner.example/").unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_encoder_makes_tasks_of_every_kind() {
    let world = World::new();
    let mut sink = CloudTasksSink::builder(|task: &Task| Ok(Some(task.clone())))
        .queue(queue(Q1))
        .task_id(|_: &Task| "one key")
        .endpoint(world.endpoint())
        .build()
        .unwrap();
    let app_engine = AppEngineTask::post("/orders?a=b")
        .service("worker")
        .body("app engine");
    send(&mut sink, [Task::from(app_engine)]).await.unwrap();
    let tasks = world.created(Q1);
    assert_eq!(tasks.len(), 1);
    assert!(tasks[0].sent.name.starts_with(Q1), "{}", tasks[0].sent.name);
    let Some(MessageType::AppEngineHttpRequest(sent)) = &tasks[0].sent.message_type else {
        panic!("not an App Engine task: {:?}", tasks[0].sent)
    };
    assert_eq!(sent.relative_uri, "/orders?a=b");
    assert_eq!(sent.body, "app engine".as_bytes());
    assert_eq!(sent.app_engine_routing.as_ref().unwrap().service, "worker");

    // The key is the same, so the name is: whatever its kind, a second task is none.
    let whole = FullTask::decode(&b"\x1a\x0b\x0a\x09http://h/"[..]).unwrap();
    send(&mut sink, [Task::from(whole), Task::from(http())])
        .await
        .unwrap();
    assert_eq!(sink.stats().duplicates, 2);
    assert_eq!(world.created(Q1).len(), 1);
}

struct ToApplication;

impl Encode<String, AppEngineTask> for ToApplication {
    fn encode(&mut self, record: &String) -> Result<Option<AppEngineTask>, BoxError> {
        Ok(Some(AppEngineTask::post(record.as_str())))
    }
}

#[tokio::test(start_paused = true)]
async fn an_app_engine_task_outside_its_application_is_rejected_and_the_others_are_created() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = CloudTasksSink::builder_with(ToApplication)
        .queue(queue(Q1))
        .endpoint(world.endpoint())
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    let uris = ["/a", "//evil.example/", "", "/b#c", "/d"].map(str::to_owned);
    send(&mut sink, uris).await.unwrap();
    assert_eq!(sink.stats().created, 3);
    assert_eq!(world.creates(), 3, "what is refused here is never sent");
    let rejected = kept.all();
    assert_eq!(rejected.len(), 2);
    for one in rejected {
        assert_eq!(one.reason, RejectedReason::Limit);
        let text = one.source.unwrap().to_string();
        assert!(text.contains("relative URI"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_payload_of_a_rejected_record_becomes_the_same_task_again() {
    let world = World::new();
    let kept = Kept::default();
    let mut limited = world
        .tasks()
        .minted_names()
        .largest_task(100)
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    let task = http().header("X-A", "1").body("b".repeat(200));
    send(&mut limited, [task.clone()]).await.unwrap();
    let payload = kept.all().remove(0).payload.unwrap();

    let mut again = CloudTasksSink::builder(|payload: &bytes::Bytes| {
        Ok(Some(FullTask::decode(payload.clone())?.unnamed()))
    })
    .queue(queue(Q1))
    .endpoint(world.endpoint())
    .build()
    .unwrap();
    send(&mut again, [payload]).await.unwrap();
    let mut plain = world.tasks().build().unwrap();
    send(&mut plain, [task]).await.unwrap();
    let tasks = world.created(Q1);
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0].sent, tasks[1].sent);
    assert_eq!(request(&tasks[0]).body.len(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_whole_task_with_a_name_is_rejected() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink =
        CloudTasksSink::builder(|bytes: &Vec<u8>| Ok(Some(FullTask::decode(bytes.clone())?)))
            .queue(queue(Q1))
            .endpoint(world.endpoint())
            .on_rejected(kept.clone())
            .build()
            .unwrap();
    let unnamed = b"\x1a\x0b\x0a\x09http://h/".to_vec();
    let named = [&b"\x0a\x01n"[..], &unnamed].concat();
    send(&mut sink, [named, unnamed]).await.unwrap();
    assert_eq!(sink.stats().created, 1);
    let rejected = kept.all();
    assert_eq!(rejected.len(), 1);
    let source = rejected[0].source.as_ref().unwrap().to_string();
    assert_eq!(source, TaskError::Named.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_record_that_its_format_refuses_is_rejected_and_the_others_are_created() {
    let world = World::new();
    let kept = Kept::default();
    let encode = |(method, note): &(HttpMethod, serde_json::Value)| {
        let task = HttpTask::new(*method, "https://partner.example/")?;
        Ok(Some(task.body_as(&Form, note)?))
    };
    let mut sink = CloudTasksSink::builder(encode)
        .queue(queue(Q1))
        .endpoint(world.endpoint())
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    let text = serde_json::json!({"note": "two words", "tags": ["a", "b"], "gone": null});
    let number = serde_json::json!({"count": 1});
    let records = [
        (HttpMethod::Post, text),
        (HttpMethod::Post, number.clone()),
        (HttpMethod::Get, number),
    ];
    send(&mut sink, records).await.unwrap();
    let tasks = world.created(Q1);
    assert_eq!(tasks.len(), 2);
    let form = request(&tasks[0]);
    // A JSON object has its fields in alphabetical order.
    assert_eq!(form.body, "note=two+words&tags=a&tags=b".as_bytes());
    assert_eq!(
        form.headers["Content-Type"],
        "application/x-www-form-urlencoded"
    );
    assert!(
        request(&tasks[1]).body.is_empty(),
        "a GET serializes nothing"
    );
    let rejected = kept.all();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0].reason, RejectedReason::Encoding);
    let text = chain(rejected[0].source.as_ref().unwrap());
    assert!(text.contains("\"count\" is a number"), "{text}");
    assert!(text.contains("convert it to a string"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_task_brings_its_own_rules_for_repeating_the_call() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = world.tasks().on_rejected(kept.clone()).build().unwrap();
    let retries = TaskRetries::default().attempts(NonZeroU32::MIN);
    let broken = TaskRetries::default().within(Duration::from_millis(1_500));
    send(
        &mut sink,
        [http().retries(retries), http().retries(broken), http()],
    )
    .await
    .unwrap();
    let tasks = world.created(Q1);
    let given: Vec<Option<i32>> = tasks
        .iter()
        .map(|task| {
            task.sent
                .retry_config
                .as_ref()
                .map(|retries| retries.max_attempts)
        })
        .collect();
    assert_eq!(given, [Some(1), None]);
    let text = kept.all().remove(0).source.unwrap().to_string();
    assert!(text.contains("whole seconds"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_size_of_a_task_is_checked_against_the_setting_or_left_to_the_service() {
    let world = World::new();
    let kept = Kept::default();
    let sizes = || [900, 1_100].map(|size| http().body(vec![b'a'; size]));
    let mut limited = world
        .tasks()
        .largest_task(1_000)
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    send(&mut limited, sizes()).await.unwrap();
    assert_eq!((limited.stats().created, world.creates()), (1, 1));
    let text = kept.all().remove(0).source.unwrap().to_string();
    assert!(text.contains("1000 are the limit"), "{text}");

    let kept = Kept::default();
    let mut unlimited = world
        .tasks()
        .largest_task(None)
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    send(&mut unlimited, [http().body(vec![b'a'; 1_100_000])])
        .await
        .unwrap();
    assert_eq!(world.creates(), 2, "it was for the service to refuse");
    assert_eq!(kept.all()[0].reason, RejectedReason::Refused);
}
