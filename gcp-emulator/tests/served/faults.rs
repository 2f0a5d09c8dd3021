//! Every kind of fault, as a client meets it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gcp_emulator::pubsub::proto::{PubsubMessage, SeekRequest, seek_request::Target};
use gcp_emulator::{Answer, Body, Code, Emulator, Fault, FaultPlan, Method, Rule};
use h2::Reason;
use tokio::time::timeout;

use crate::client::{Client, SOON, SUB, TOPIC, http2_error, started, texts};

fn with(rule: Rule) -> Emulator {
    started(Emulator::builder().faults(FaultPlan::new().rule(rule)))
}

fn published(emulator: &Emulator) -> u64 {
    emulator.observe().topic(TOPIC).published
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_is_served_late() {
    let emulator = with(Rule::on(Method::Publish).then(Fault::Delay(Duration::from_secs(5))));
    let mut client = Client::of(&emulator);
    let before = emulator.now();
    client.publish(&["a"]).await.unwrap();
    assert_eq!(emulator.now().since(before), Duration::from_secs(5));
    assert_eq!(published(&emulator), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_is_served_though_its_client_gave_up() {
    let emulator = with(Rule::on(Method::Publish).then(Fault::Delay(Duration::from_secs(5))));
    let mut client = Client::of(&emulator);
    assert!(
        timeout(Duration::from_secs(1), client.publish(&["a"]))
            .await
            .is_err()
    );
    assert_eq!(published(&emulator), 0);
    assert!(
        emulator
            .wait_until(|seen| seen.topic(TOPIC).published == 1, SOON)
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_delayed_answer_comes_after_the_effect() {
    let late = Fault::Delay(Duration::from_secs(5)).after_effect();
    let emulator = with(Rule::on(Method::Publish).then(late));
    let mut client = Client::of(&emulator);
    assert!(
        timeout(Duration::from_secs(1), client.publish(&["a"]))
            .await
            .is_err()
    );
    assert_eq!(published(&emulator), 1);
    assert_eq!(client.publish(&["b"]).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_has_no_effect_and_its_status_is_what_was_asked_for() {
    let answer = Answer::new(Code::PermissionDenied, "not you").details(&b"\x08\x07"[..]);
    let emulator = with(Rule::on(Method::Publish).then(Fault::Answer(answer)));
    let mut client = Client::of(&emulator);
    let status = client.publish(&["a"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::PermissionDenied);
    assert_eq!(status.message(), "not you");
    assert_eq!(status.details(), b"\x08\x07");
    assert_eq!(published(&emulator), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_made_from_the_call() {
    let rule = Rule::on(Method::Acknowledge)
        .once()
        .then(Fault::answer_with(|call| {
            let Body::Acknowledge(request) = &call.body else {
                panic!("{call:?}")
            };
            Answer::ack_ids([
                (
                    request.ack_ids[1].as_str(),
                    "PERMANENT_FAILURE_INVALID_ACK_ID",
                ),
                (request.ack_ids[2].as_str(), "TRANSIENT_FAILURE_OTHER"),
            ])
        }));
    let emulator = with(rule);
    let mut client = Client::of(&emulator);
    client.publish(&["a", "b", "c"]).await.unwrap();
    let got = client.pull(3).await.unwrap();
    let status = client.ack(&got).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    let details = String::from_utf8_lossy(status.details()).into_owned();
    assert!(details.contains(&got[1].ack_id) && details.contains(&got[2].ack_id));
    assert!(!details.contains(&got[0].ack_id));
    client.ack(&got).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_answered_has_no_effect() {
    let emulator = with(Rule::on(Method::Publish).once().then(Fault::Never));
    let mut client = Client::of(&emulator);
    assert!(
        timeout(Duration::from_secs(3600), client.publish(&["a"]))
            .await
            .is_err()
    );
    assert_eq!(published(&emulator), 0);
    client.publish(&["b"]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_failure_is_stored_before_it_is_answered() {
    let lost = Fault::answer(Code::Unavailable, "try again").after_effect();
    let emulator = with(Rule::on(Method::Publish).once().then(lost));
    let mut client = Client::of(&emulator);
    let status = client.publish(&["a"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert_eq!(published(&emulator), 1);
    client.publish(&["a"]).await.unwrap();
    assert_eq!(published(&emulator), 2, "the retry is a second message");
}

#[tokio::test(start_paused = true)]
async fn every_transport_fault_can_follow_the_effect() {
    for fault in [
        Fault::Never,
        Fault::ResetStream(2),
        Fault::GoAway(0),
        Fault::DropConnection,
    ] {
        let name = format!("{fault:?}");
        let emulator = with(Rule::on(Method::Publish).once().then(fault.after_effect()));
        let mut client = Client::of(&emulator);
        let answer = timeout(Duration::from_secs(60), client.publish(&["a"])).await;
        assert!(answer.is_err() || answer.unwrap().is_err(), "{name}");
        assert_eq!(published(&emulator), 1, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_carries_its_code() {
    for code in [2, 7, 8, 11] {
        let emulator = with(
            Rule::on(Method::Publish)
                .once()
                .then(Fault::ResetStream(code)),
        );
        let mut client = Client::of(&emulator);
        let status = client.publish(&["a"]).await.unwrap_err();
        let error = http2_error(&status).unwrap();
        assert_eq!(error.reason(), Some(Reason::from(code)));
        assert!(error.is_reset() && error.is_remote());
        assert_eq!(published(&emulator), 0);
        client.publish(&["b"]).await.unwrap();
        assert_eq!(
            emulator.observe().connections_opened,
            1,
            "the connection lives on"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_goaway_below_a_call_tells_it_why_and_ends_the_connection() {
    for code in [0, 11] {
        let emulator = with(
            Rule::on(Method::Publish)
                .once()
                .then(Fault::GoAwayUnseen(code)),
        );
        let mut client = Client::of(&emulator);
        let status = client.publish(&["a"]).await.unwrap_err();
        let error = http2_error(&status).unwrap();
        assert!(error.is_go_away() && error.is_remote(), "{error:?}");
        assert_eq!(error.reason(), Some(Reason::from(code)));
        assert_eq!(published(&emulator), 0);
        client.publish(&["b"]).await.unwrap();
        assert_eq!(emulator.observe().connections_opened, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn to_a_call_that_a_goaway_includes_the_connection_just_ends() {
    for code in [0, 11] {
        let emulator = with(Rule::on(Method::Publish).once().then(Fault::GoAway(code)));
        let mut client = Client::of(&emulator);
        let status = client.publish(&["a"]).await.unwrap_err();
        assert!(http2_error(&status).is_none(), "{status:?}");
        client.publish(&["b"]).await.unwrap();
        assert_eq!(
            (published(&emulator), emulator.observe().connections_opened),
            (1, 2)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_goaway_says_whether_the_call_may_have_been_seen() {
    use bytes::Bytes;
    for (fault, expected) in [
        (Fault::GoAway(0), (1, 0)),
        (Fault::GoAway(11), (1, 11)),
        (Fault::GoAwayUnseen(0), (0, 0)),
        (Fault::GoAwayUnseen(11), (0, 11)),
    ] {
        let emulator = with(Rule::on(Method::Publish).once().then(fault));
        let mut frames = Frames::open(&emulator).await;
        let request = gcp_emulator::pubsub::proto::PublishRequest {
            topic: TOPIC.to_owned(),
            messages: vec![PubsubMessage {
                data: "a".into(),
                ..PubsubMessage::default()
            }],
        };
        let body = Bytes::from(prost::Message::encode_to_vec(&request));
        frames.call(Method::Publish, &body).await;
        assert_eq!(frames.goaway().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connection_is_replaced() {
    let emulator = with(Rule::on(Method::Publish).once().then(Fault::DropConnection));
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap_err();
    assert_eq!(published(&emulator), 0);
    client.publish(&["b"]).await.unwrap();
    assert_eq!(emulator.observe().connections_opened, 2);
}

#[tokio::test(start_paused = true)]
async fn a_silenced_connection_stays_open_and_carries_nothing() {
    let emulator = with(Rule::on(Method::Publish).once().then(Fault::Silence));
    let mut client = Client::of(&emulator);
    assert!(
        timeout(Duration::from_secs(60), client.publish(&["a"]))
            .await
            .is_err()
    );
    assert!(
        timeout(Duration::from_secs(60), client.publish(&["b"]))
            .await
            .is_err()
    );
    assert_eq!(emulator.observe().connections, 1);
    assert_eq!(published(&emulator), 0);
    Client::of(&emulator).publish(&["c"]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_answered_ok_may_have_had_no_effect() {
    let emulator = with(
        Rule::on(Method::Acknowledge)
            .once()
            .then(Fault::OkWithoutEffect),
    );
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let mut stream = client.open(|_| ());
    let got = stream.messages().await;
    client.ack(&got).await.unwrap();
    let again = stream.messages().await;
    assert_eq!(texts(&again), ["a"]);
    client.ack(&again).await.unwrap();
    assert_eq!(emulator.observe().subscription(SUB).acks, 1);
}

#[tokio::test(start_paused = true)]
async fn a_publish_can_be_answered_with_no_ids() {
    let emulator = with(Rule::on(Method::Publish).then(Fault::OkWithoutEffect));
    assert!(
        Client::of(&emulator)
            .publish(&["a"])
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn rules_count_what_they_match() {
    let unavailable = || Fault::answer(Code::Unavailable, "");
    let emulator = started(Emulator::builder());
    let second_and_third = emulator.faults().add(
        Rule::on(Method::Publish)
            .when(
                |call| matches!(&call.body, Body::Publish(request) if request.messages.len() == 1),
            )
            .skip(1)
            .times(2)
            .then(unavailable()),
    );
    let mut client = Client::of(&emulator);
    let mut fates = Vec::new();
    for _ in 0..5 {
        client.publish(&["a", "pair"]).await.unwrap();
        fates.push(client.publish(&["a"]).await.is_ok());
    }
    assert_eq!(fates, [true, false, false, true, true]);
    assert_eq!(emulator.faults().fired(second_and_third), 2);

    let always = emulator.faults().add(Rule::on_any().then(unavailable()));
    client.publish(&["a"]).await.unwrap_err();
    assert!(emulator.faults().remove(always));
    assert!(!emulator.faults().remove(always));
    assert_eq!(emulator.faults().fired(always), 1, "counted beyond its end");
    client.publish(&["a"]).await.unwrap();
    emulator.faults().add(Rule::on_any().then(unavailable()));
    emulator.faults().clear();
    client.publish(&["a"]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_rule_that_matches_decides() {
    let plan = FaultPlan::new()
        .rule(Rule::on(Method::Publish).once().then(Fault::Pass))
        .rule(Rule::on_any().then(Fault::answer(Code::Aborted, "")));
    let emulator = started(Emulator::builder().faults(plan));
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let status = client.publish(&["a"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_rule_may_depend_on_what_a_test_knows() {
    let broken = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&broken);
    let rule = Rule::on(Method::Seek)
        .when(move |_| switch.load(Ordering::Relaxed))
        .then(Fault::answer(Code::Unauthenticated, "no permission"));
    let emulator = with(rule);
    let mut client = Client::of(&emulator);
    let target = Some(Target::Time(emulator.now().to_timestamp()));
    let request = SeekRequest {
        subscription: SUB.to_owned(),
        target,
    };
    client.subscriber.seek(request.clone()).await.unwrap();
    broken.store(true, Ordering::Relaxed);
    let status = client.subscriber.seek(request).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unauthenticated);
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_makes_no_sense_for_a_call_says_so() {
    let emulator = with(Rule::on(Method::Publish).then(Fault::Redeliver(Duration::ZERO)));
    let status = Client::of(&emulator).publish(&["a"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Internal);
    assert!(
        status.message().contains("Redeliver"),
        "{}",
        status.message()
    );
}

/// HTTP/2 by hand, to see the frames themselves.
struct Frames {
    io: tokio::io::DuplexStream,
}

impl Frames {
    async fn open(emulator: &Emulator) -> Self {
        use tokio::io::AsyncWriteExt;
        let mut io = emulator.dialer()().unwrap();
        io.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        io.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        Self { io }
    }

    /// Sends a call on stream 1.
    async fn call(&mut self, method: Method, message: &[u8]) {
        use tokio::io::AsyncWriteExt;
        let mut block = vec![0x83, 0x86];
        for (name, value) in [
            (":path", method.path()),
            (":authority", "emulator"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ] {
            // Literal without indexing, new name, no Huffman coding (RFC 7541, section 6.2.2).
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).unwrap());
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.frame(1, 4, &block).await;
        let mut data = vec![0];
        data.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        data.extend_from_slice(message);
        self.frame(0, 1, &data).await;
        self.io.flush().await.unwrap();
    }

    async fn frame(&mut self, kind: u8, flags: u8, payload: &[u8]) {
        use tokio::io::AsyncWriteExt;
        let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [len[1], len[2], len[3], kind, flags, 0, 0, 0, 1];
        self.io.write_all(&head).await.unwrap();
        self.io.write_all(payload).await.unwrap();
    }

    /// Last stream id and code of the GOAWAY frame, after which the connection ends.
    async fn goaway(&mut self) -> (u32, u32) {
        use tokio::io::AsyncReadExt;
        loop {
            let mut head = [0; 9];
            self.io.read_exact(&mut head).await.unwrap();
            let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; len];
            self.io.read_exact(&mut payload).await.unwrap();
            if head[3] == 7 {
                let mut rest = Vec::new();
                self.io.read_to_end(&mut rest).await.unwrap();
                let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
                return (number(&payload[..4]), number(&payload[4..8]));
            }
        }
    }
}
