//! Records that are refused for a reason of their own.

use std::time::{Duration, SystemTime};

use cloudtasks_sink::{CloudTasksSink, HttpTask, SinkError, Submitted, TaskError};
use connector_core::{BoxError, Checkpoint, Epoch, RejectedReason, Resolution};
use futures::SinkExt;
use gcp_emulator::{Body, Code, Fault, Method, Rule};

use crate::world::{Kept, Order, Q1, Silent, World, chain, order, orders, queue, send};

const HOUR: Duration = Duration::from_secs(3_600);

fn task() -> HttpTask {
    HttpTask::post("https://partner.example/").unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_record_scheduled_too_far_ahead_is_rejected_and_the_others_are_created() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = world.tasks().on_rejected(kept.clone()).build().unwrap();
    let now = SystemTime::now();
    let year_9999 = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    let year_1 = SystemTime::UNIX_EPOCH - Duration::from_secs(62_135_596_800);
    let times = [
        now + 719 * HOUR,
        now + 721 * HOUR,
        now - HOUR,
        year_1,
        year_9999,
    ];
    let mut tasks: Vec<HttpTask> = times.map(|at| task().schedule_at(at)).to_vec();
    tasks.extend((0..6).map(|_| task()));
    send(&mut sink, tasks).await.unwrap();
    let rejected = kept.all();
    assert_eq!(rejected.len(), 2);
    for one in rejected {
        assert_eq!(one.reason, RejectedReason::Limit);
        assert!(one.payload.is_some());
        let text = one.source.unwrap().to_string();
        assert!(text.contains("720 h"), "{text}");
    }
    assert_eq!(sink.stats().created, 9);
    assert_eq!(
        world.creates(),
        9,
        "what is known to be refused is never sent"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_too_large_is_rejected_with_its_size_and_100_kb_are_not_guessed() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = world.tasks().on_rejected(kept.clone()).build().unwrap();
    let sizes = [99_000, 101_000, 1_040_000, 1_100_000];
    send(&mut sink, sizes.map(|size| task().body(vec![b'a'; size])))
        .await
        .unwrap();
    assert_eq!(sink.stats().created, 3);
    let rejected = kept.all();
    assert_eq!(rejected.len(), 1);
    let text = rejected[0].source.as_ref().unwrap().to_string();
    assert!(text.contains("1100"), "{text}");
    assert!(text.contains("1048571"), "{text}");
    assert_eq!(world.creates(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_size_that_only_the_service_knows_to_be_too_large_is_its_refusal_of_one_record() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = world.tasks().on_rejected(kept.clone()).build().unwrap();
    send(
        &mut sink,
        [task().body(vec![b'a'; 1_048_000]), task().body("small")],
    )
    .await
    .unwrap();
    let rejected = kept.all();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0].reason, RejectedReason::Refused);
    let text = rejected[0].source.as_ref().unwrap().to_string();
    assert!(text.to_lowercase().contains("too large"), "{text}");
    assert_eq!(sink.stats().created, 1);
    assert_eq!(sink.stats().retries, 0);
}

#[tokio::test(start_paused = true)]
async fn conflicting_authorization_and_bad_headers_are_rejections_and_nothing_is_dropped() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = world.tasks().on_rejected(kept.clone()).build().unwrap();
    let account = "caller@demo.iam.gserviceaccount.com";
    let tasks = [
        task()
            .oidc(account, None)
            .header("authorization", "Bearer x"),
        task().header("Authorization", "Bearer x"),
        task().header("X-Line", "a\nb"),
        task().header("X-UPPER", "fine"),
        task().header("Host", "other.example"),
        HttpTask::get("https://h/").unwrap().body("x"),
    ];
    send(&mut sink, tasks).await.unwrap();
    let reasons: Vec<String> = kept
        .all()
        .into_iter()
        .map(|one| one.source.unwrap().to_string())
        .collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    for (reason, word) in reasons
        .iter()
        .zip(["Authorization", "X-Line", "Host", "GET"])
    {
        assert!(reason.contains(word), "{reason}");
        assert!(!reason.contains("Bearer"), "{reason}");
    }
    assert_eq!(sink.stats().created, 2);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_not_on_the_list_is_a_rejection_of_that_record() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = world
        .tasks()
        .allow_hosts(["partner.example"])
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    let metadata = HttpTask::get("http://169.254.169.254/computeMetadata").unwrap();
    send(&mut sink, [task(), metadata]).await.unwrap();
    assert_eq!(sink.stats().created, 1);
    let rejected = kept.all().remove(0);
    assert_eq!(rejected.reason, RejectedReason::Destination);
    assert!(
        rejected
            .source
            .unwrap()
            .to_string()
            .contains("169.254.169.254")
    );
}

#[tokio::test(start_paused = true)]
async fn a_record_that_does_not_encode_goes_to_the_handler_without_a_payload() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = CloudTasksSink::builder(|url: &String| Ok(Some(HttpTask::post(url.as_str())?)))
        .queue(queue(Q1))
        .endpoint(world.endpoint())
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    send(&mut sink, ["https://h/".to_owned(), "nonsense".to_owned()])
        .await
        .unwrap();
    let rejected = kept.all().remove(0);
    assert_eq!(rejected.reason, RejectedReason::Encoding);
    assert_eq!(
        (rejected.payload, rejected.destination.as_str()),
        (None, Q1)
    );
    assert!(rejected.source.unwrap().to_string().contains("nonsense"));
    assert_eq!(sink.stats().created, 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_cannot_be_read_goes_to_the_handler_with_the_unnamed_task() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = world
        .sink()
        .task_id(|order: &Order| {
            if order.id == "bad" {
                Err(BoxError::from("no key in it"))
            } else {
                Ok(order.id.clone())
            }
        })
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    send(&mut sink, [order("bad"), order("good")])
        .await
        .unwrap();
    let rejected = kept.all().remove(0);
    assert_eq!(rejected.source.unwrap().to_string(), "no key in it");
    let payload = rejected.payload.unwrap();
    assert!(
        payload.windows(3).any(|bytes| bytes == b"bad"),
        "the body is in it"
    );
    assert!(
        !payload.windows(5).any(|bytes| bytes == b"tasks"),
        "a name is not"
    );
    assert_eq!(world.bodies(Q1), ["good"]);
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_does_not_parse_is_the_records_own_failure() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = CloudTasksSink::builder(|_: &String| Ok(Some(HttpTask::post("https://h/")?)))
        .resolve(|name: &String| name.parse::<cloudtasks_sink::QueueName>())
        .endpoint(world.endpoint())
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    send(&mut sink, [Q1.to_owned(), "a/b".to_owned()])
        .await
        .unwrap();
    let rejected = kept.all().remove(0);
    assert_eq!(rejected.reason, RejectedReason::Destination);
    assert!(rejected.source.unwrap().to_string().contains("a/b"));
    assert_eq!(sink.stats().created, 1);
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_names_no_queue_ends_the_sink_and_the_handler_sees_nothing() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = CloudTasksSink::builder(|_: &u32| Ok(Some(HttpTask::post("https://h/")?)))
        .resolve(|_: &u32| Resolution::Nothing)
        .endpoint(world.endpoint())
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    let error = send(&mut sink, [1]).await.unwrap_err();
    assert!(matches!(error, SinkError::NoDestination), "{error}");
    assert!(kept.all().is_empty());
    assert_eq!(world.creates(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_service_reaches_the_handler_once_and_the_rest_goes_on() {
    let world = World::new();
    let refusal = Fault::answer(Code::InvalidArgument, "this one is wrong");
    world.emulator.faults().add(
        Rule::on(Method::CreateTask)
            .when(|call| match &call.body {
                Body::CreateTask(request) => format!("{request:?}").contains("body: b\"5\""),
                _ => false,
            })
            .then(refusal),
    );
    let kept = Kept::default();
    let mut sink = world.sink().on_rejected(kept.clone()).build().unwrap();
    send(&mut sink, orders(0..10)).await.unwrap();
    let rejected = kept.all();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0].connector, "cloudtasks-sink");
    assert_eq!(rejected[0].destination, Q1);
    assert_eq!(rejected[0].reason, RejectedReason::Refused);
    assert!(
        rejected[0]
            .source
            .as_ref()
            .unwrap()
            .to_string()
            .contains("this one is wrong")
    );
    assert_eq!(sink.stats().created, 9);
    assert_eq!(world.creates(), 10, "a refusal is not tried again");
}

#[tokio::test(start_paused = true)]
async fn by_default_the_first_rejected_record_ends_the_sink() {
    let world = World::new();
    let mut sink = world.tasks().build().unwrap();
    let error = send(&mut sink, [task().header("Host", "x")])
        .await
        .unwrap_err();
    match &error {
        SinkError::Rejected {
            reason: RejectedReason::Limit,
            source: Some(source),
            ..
        } => {
            let why = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(why, source.to_string());
        }
        other => panic!("{other:?}"),
    }
    let text = chain(&error);
    assert!(text.contains(Q1) && text.contains("Host"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_submitted_record_that_is_rejected_says_why() {
    let world = World::new();
    let mut sink = world.tasks().on_rejected(Kept::default()).build().unwrap();
    sink.ready().await.unwrap();
    match sink.submit(task().segment("..")).await.unwrap() {
        Submitted::Rejected { reason, cause, .. } => {
            assert_eq!(reason, RejectedReason::Limit);
            let cause = cause.unwrap();
            let error = cause.get().downcast_ref::<TaskError>();
            assert!(matches!(error, Some(TaskError::Segment { .. })), "{cause}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_answers_ends_the_sink_after_the_progress_timeout() {
    let world = World::new();
    let mut sink = world
        .tasks()
        .on_rejected(Silent)
        .progress_timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    sink.feed(task().header("Host", "x")).await.unwrap();
    let before = tokio::time::Instant::now();
    let receipt = sink.snapshot(Epoch::new(1));
    let failed = receipt.await.unwrap_err();
    assert!(
        chain(&failed).contains("failure handler did not answer within 60s"),
        "{failed}"
    );
    assert_eq!(before.elapsed().as_secs(), 60);
    assert!(matches!(
        sink.flush().await,
        Err(SinkError::HandlerStalled { pending: 1, .. })
    ));
}
