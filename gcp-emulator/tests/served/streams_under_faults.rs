//! Faults on pull streams.

use std::time::Duration;

use gcp_emulator::{Code, Emulator, Fault, FaultPlan, Method, Observation, Rule};
use h2::Reason;
use tokio::time::timeout;

use crate::client::{Client, SOON, SUB, http2_error, started, texts};

fn with(rule: Rule) -> Emulator {
    started(
        Emulator::builder()
            .response_messages(1)
            .faults(FaultPlan::new().rule(rule)),
    )
}

fn no_stream(seen: &Observation) -> bool {
    seen.subscription(SUB).streams.is_empty()
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_be_refused_when_it_opens() {
    let refused = Fault::answer(Code::ResourceExhausted, "too many streams");
    let emulator = with(Rule::on(Method::StreamingPull).times(2).then(refused));
    let client = Client::of(&emulator);
    for _ in 0..2 {
        let status = client.open(|_| ()).end().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
    }
    assert_eq!(emulator.observe().subscription(SUB).streams_opened, 0);
    client.clone().publish(&["a"]).await.unwrap();
    assert_eq!(client.open(|_| ()).messages().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_after_so_many_responses_in_every_way_there_is() {
    let ends = [
        Fault::answer(Code::Unavailable, "closing"),
        Fault::EndStream,
        Fault::ResetStream(2),
        Fault::GoAway(0),
        Fault::GoAwayUnseen(0),
        Fault::DropConnection,
    ];
    for end in ends {
        let name = format!("{end:?}");
        let rule = Rule::on(Method::StreamingPull)
            .once()
            .then(end.after_responses(2));
        let emulator = with(rule);
        let mut client = Client::of(&emulator);
        client.publish(&["a", "b", "c"]).await.unwrap();
        let mut stream = client.open(|_| ());
        assert_eq!(texts(&stream.messages().await), ["a"], "{name}");
        assert_eq!(texts(&stream.messages().await), ["b"], "{name}");
        let ended = stream.end().await;
        assert_eq!(ended.is_ok(), name == "EndStream", "{name} {ended:?}");
        match name.as_str() {
            "ResetStream(2)" => {
                let status = ended.unwrap_err();
                let reason = http2_error(&status).and_then(h2::Error::reason);
                assert_eq!(reason, Some(Reason::INTERNAL_ERROR));
            }
            "EndStream" | "GoAway(0)" | "GoAwayUnseen(0)" | "DropConnection" => {}
            _ => assert_eq!(
                ended.unwrap_err().code(),
                tonic::Code::Unavailable,
                "{name}"
            ),
        }
        assert!(emulator.wait_until(no_stream, SOON).await, "{name}");
        assert_eq!(
            emulator.observe().subscription(SUB).outstanding,
            2,
            "{name}"
        );
        let mut next = client.open(|_| ());
        assert_eq!(texts(&next.messages().await), ["c"], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_stream_leases_in_a_response_that_is_lost_comes_again_when_the_lease_ends() {
    for end in [
        Fault::answer(Code::Unavailable, "lost"),
        Fault::DropConnection,
    ] {
        let name = format!("{end:?}");
        let rule = Rule::on(Method::StreamingPull).once();
        let emulator = with(rule.then(end.after_effect()));
        let mut client = Client::of(&emulator);
        let mut stream = client.open(|_| ());
        client.publish(&["a"]).await.unwrap();
        assert!(stream.end().await.is_err(), "{name}");
        assert!(emulator.wait_until(no_stream, SOON).await, "{name}");
        assert_eq!(
            emulator.observe().subscription(SUB).outstanding,
            1,
            "{name}"
        );
        let mut next = client.open(|_| ());
        let mut messages = std::pin::pin!(next.messages());
        let early = timeout(Duration::from_secs(9), &mut messages).await;
        assert!(early.is_err(), "{name} {early:?}");
        assert_eq!(texts(&messages.await), ["a"], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_fall_silent() {
    let rule = Rule::on(Method::StreamingPull)
        .once()
        .then(Fault::Never.after_responses(1));
    let emulator = with(rule);
    let mut client = Client::of(&emulator);
    client.publish(&["a", "b"]).await.unwrap();
    let mut stream = client.open(|first| first.protocol_version = 1);
    assert_eq!(texts(&stream.messages().await), ["a"]);
    stream.send(|_| ());
    assert!(
        timeout(Duration::from_secs(3600), stream.next())
            .await
            .is_err()
    );
    assert_eq!(emulator.observe().subscription(SUB).streams.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fifty_streams_in_a_row_may_be_closed_the_routine_way() {
    let closing = Fault::answer(Code::Unavailable, "closing").after_responses(3);
    let emulator = with(Rule::on(Method::StreamingPull).then(closing));
    let mut client = Client::of(&emulator);
    let texts: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    client
        .publish(&texts.iter().map(String::as_str).collect::<Vec<_>>())
        .await
        .unwrap();
    let mut got = 0;
    for _ in 0..50 {
        let mut stream = client.open(|_| ());
        for _ in 0..3 {
            got += stream.messages().await.len();
        }
        let status = stream.end().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
    }
    assert_eq!(got, 150);
    assert_eq!(emulator.observe().subscription(SUB).delivered, 150);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_stops_reading_goes_on_sending() {
    let builder = Emulator::builder().stream_window(4096);
    let plan = FaultPlan::new().rule(Rule::on(Method::StreamingPull).then(Fault::StopReading(2)));
    let emulator = started(builder.faults(plan));
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let mut stream = client.open(|_| ());
    let got = stream.messages().await;
    stream.send(|request| request.stream_ack_deadline_seconds = 60);
    let heard = |seen: &Observation| {
        seen.subscription(SUB)
            .streams
            .values()
            .any(|stream| stream.requests == 1)
    };
    assert!(emulator.wait_until(heard, SOON).await);
    // Far more than the window holds: the client's requests pile up on its own side.
    for _ in 0..900 {
        stream.send(|request| request.ack_ids = vec![got[0].ack_id.clone()]);
    }
    client.publish(&["b"]).await.unwrap();
    assert_eq!(texts(&stream.messages().await), ["b"]);
    let seen = emulator.observe().subscription(SUB);
    assert_eq!(
        (seen.acks, seen.streams.values().next().unwrap().requests),
        (0, 1)
    );
    let room = stream.requests.capacity();
    assert!(room < stream.requests.max_capacity(), "nothing piles up");
}

#[tokio::test(start_paused = true)]
async fn a_later_request_can_end_its_stream_or_be_ignored() {
    let plan = FaultPlan::new()
        .rule(
            Rule::on_stream_request()
                .once()
                .then(Fault::OkWithoutEffect),
        )
        .rule(
            Rule::on_stream_request()
                .skip(1)
                .then(Fault::answer(Code::Aborted, "enough")),
        );
    let emulator = started(Emulator::builder().faults(plan));
    let mut client = Client::of(&emulator);
    client.publish(&["a", "b"]).await.unwrap();
    let mut stream = client.open(|_| ());
    let got = stream.messages().await;
    stream.send(|request| request.ack_ids = vec![got[0].ack_id.clone()]);
    stream.send(|request| request.ack_ids = vec![got[1].ack_id.clone()]);
    stream.send(|_| ());
    assert_eq!(stream.end().await.unwrap_err().code(), tonic::Code::Aborted);
    let seen = emulator.observe().subscription(SUB);
    let acked: Vec<&str> = seen.acked_ids().into_iter().collect();
    assert_eq!(
        acked,
        [got[1].message.as_ref().unwrap().message_id.as_str()]
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_can_be_delivered_twice_in_a_row() {
    let rule = Rule::on_delivery()
        .when_delivered(|subscription, got| {
            subscription == SUB && got.message.as_ref().is_some_and(|m| m.data == "b")
        })
        .once()
        .then(Fault::Redeliver(Duration::ZERO));
    let emulator = started(Emulator::builder().faults(FaultPlan::new().rule(rule)));
    let mut client = Client::of(&emulator);
    client.publish(&["a", "b"]).await.unwrap();
    let mut stream = client.open(|_| ());
    let first = stream.messages().await;
    let before = emulator.now();
    let second = stream.messages().await;
    assert_eq!(emulator.now(), before, "under a live lease");
    assert_eq!(
        (texts(&first), texts(&second)),
        (vec!["a".into(), "b".into()], vec!["b".into()])
    );
    assert_ne!(first[1].ack_id, second[0].ack_id);
    client
        .ack(&[first[0].clone(), second[0].clone()])
        .await
        .unwrap();
    assert_eq!(emulator.observe().subscription(SUB).backlog, 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_can_come_again_early() {
    let rule = Rule::on_delivery()
        .once()
        .then(Fault::Redeliver(Duration::from_secs(3)));
    let emulator = started(Emulator::builder().faults(FaultPlan::new().rule(rule)));
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let mut stream = client.open(|_| ());
    stream.messages().await;
    let before = emulator.now();
    assert_eq!(texts(&stream.messages().await), ["a"]);
    assert_eq!(emulator.now().since(before), Duration::from_secs(3));
    assert_eq!(emulator.observe().subscription(SUB).lapses, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_be_opened_late() {
    let late = Fault::Delay(Duration::from_secs(7));
    let emulator = with(Rule::on(Method::StreamingPull).then(late));
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let before = emulator.now();
    client.open(|_| ()).messages().await;
    assert_eq!(emulator.now().since(before), Duration::from_secs(7));
}
