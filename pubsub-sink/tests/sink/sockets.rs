//! Real sockets and real time.

use std::time::Duration;

use futures::SinkExt;
use gcp_emulator::Emulator;
use pubsub_sink::{Endpoint, PublishMessage, PubsubSink};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_arrive_over_tcp() {
    let emulator = Emulator::builder()
        .listen(([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    emulator
        .create_topic("projects/demo/topics/events")
        .unwrap();
    let address = emulator.local_addr().unwrap().to_string();
    let mut sink = PubsubSink::builder(|n: &u32| Ok(Some(PublishMessage::json(n)?)))
        .topic("projects/demo/topics/events".parse().unwrap())
        .endpoint(Endpoint::emulator(&address).unwrap())
        .build()
        .unwrap();
    let run = async {
        for n in 0..20_000 {
            sink.feed(n).await.unwrap();
        }
        sink.close().await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(60), run)
        .await
        .unwrap();
    let seen = emulator.observe().topic("projects/demo/topics/events");
    assert_eq!(seen.published, 20_000);
}

#[tokio::test]
async fn an_endpoint_where_nobody_listens_is_one_clear_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut sink = PubsubSink::builder(|n: &u32| Ok(Some(PublishMessage::json(n)?)))
        .topic("projects/demo/topics/events".parse().unwrap())
        .endpoint(Endpoint::emulator(&address).unwrap())
        .retry_for(Duration::from_millis(500))
        .build()
        .unwrap();
    sink.feed(1).await.unwrap();
    let error = sink.flush().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("projects/demo/topics/events"), "{text}");
    assert!(text.contains("comes again after a rebuild"), "{text}");
    assert_eq!(error.code(), Some(pubsub_sink::Code::Unavailable));
}
