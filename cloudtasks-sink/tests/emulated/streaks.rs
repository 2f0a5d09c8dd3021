//! Rejections in a row.

use std::num::NonZeroU32;

use cloudtasks_sink::{Batch, HttpTask, SinkError};
use connector_core::Checkpoint;
use gcp_emulator::{Code, Fault, Rule};

use crate::world::{Kept, Q1, World, chain, queue, send};

fn refuse(body: &'static str) -> Rule {
    use gcp_emulator::cloudtasks::proto::task::MessageType;
    let refusal = Fault::answer(Code::InvalidArgument, "wrong project");
    Rule::on_task()
        .when_task(move |task| match &task.message_type {
            Some(MessageType::HttpRequest(request)) => request.body == body,
            _ => false,
        })
        .then(refusal)
}

fn task(body: &'static str) -> HttpTask {
    HttpTask::post("https://partner.example/")
        .unwrap()
        .body(body)
}

#[tokio::test(start_paused = true)]
async fn a_hundred_refusals_in_a_row_end_the_sink_and_the_handler_has_them_all() {
    for size in [None, Some(Batch::up_to(10))] {
        let world = World::new();
        world.emulator.faults().add(refuse("bad"));
        let kept = Kept::default();
        let mut sink = world.tasks().on_rejected(kept.clone());
        if let Some(size) = size {
            sink = sink.batching(size);
        }
        let mut sink = sink.build().unwrap();
        send(&mut sink, (0..99).map(|_| task("bad"))).await.unwrap();
        assert_eq!(sink.stats().consecutive_rejections, 99);
        let error = send(&mut sink, [task("bad")]).await.unwrap_err();
        assert!(
            matches!(&error, SinkError::TooManyRejections { count: 100, queue: of, .. } if *of == queue(Q1)),
            "{error:?}"
        );
        let text = chain(&error);
        assert!(text.contains("max_consecutive_rejections"), "{text}");
        assert!(text.contains("wrong project"), "{text}");
        assert_eq!(kept.all().len(), 100, "the last one too");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_created_starts_the_row_anew() {
    let world = World::new();
    world.emulator.faults().add(refuse("bad"));
    let kept = Kept::default();
    let mut sink = world
        .tasks()
        .on_rejected(kept.clone())
        .max_consecutive_rejections(NonZeroU32::new(3))
        .build()
        .unwrap();
    for _ in 0..5 {
        for body in ["bad", "bad", "good"] {
            send(&mut sink, [task(body)]).await.unwrap();
        }
    }
    assert_eq!((kept.all().len(), sink.stats().created), (10, 5));
    assert_eq!(sink.stats().consecutive_rejections, 0);
}

#[tokio::test(start_paused = true)]
async fn the_limit_can_be_off() {
    let world = World::new();
    world.emulator.faults().add(refuse("bad"));
    let kept = Kept::default();
    let mut sink = world
        .tasks()
        .on_rejected(kept.clone())
        .max_consecutive_rejections(None)
        .build()
        .unwrap();
    send(&mut sink, (0..150).map(|_| task("bad")))
        .await
        .unwrap();
    let epoch = connector_core::Epoch::default().next();
    sink.snapshot(epoch).await.unwrap();
    let committed = sink.commit(epoch).await.unwrap();
    assert_eq!((kept.all().len(), committed.retained), (150, 150));
}

#[tokio::test(start_paused = true)]
async fn refusals_of_staged_tasks_end_no_sink_whatever_their_number() {
    let stage = crate::staged::Stage::new();
    let refusal = Fault::answer(Code::InvalidArgument, "wrong project");
    stage
        .world
        .emulator
        .faults()
        .add(Rule::on_task().times(5).then(refusal));
    let kept = Kept::default();
    let sink = stage
        .sink()
        .on_rejected(kept.clone())
        .max_consecutive_rejections(NonZeroU32::new(3));
    let mut running = crate::staged::run(sink);
    running.feed(0..10).await;
    running.checkpoint(1).await;
    running.checkpoint(2).await;
    assert_eq!(kept.all().len(), 5);
    assert_eq!(stage.world.bodies(Q1).len(), 5);
    assert_eq!(running.sink.stats().consecutive_rejections, 0);
}
