//! Faults of connections, as a client meets them.

use std::time::Duration;

use gcp_emulator::pubsub::proto::PubsubMessage;
use gcp_emulator::{Emulator, Fault, Method, Rule};
use h2::Reason;
use tokio::time::timeout;

use crate::client::{Client, TOPIC, http2_error};
use crate::faults::{published, with};

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
