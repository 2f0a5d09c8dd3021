use bytes::Bytes;
use http_body_util::Empty;
use tokio::io::AsyncWriteExt as _;

use super::*;
use crate::endpoint::Service;

fn connector(endpoint: Endpoint) -> Connector {
    Connector::new(endpoint, &ConnectionOptions::default(), Windows::unary(100))
}

/// The end of a connection on which the server says GOAWAY for this reason, while it is idle.
async fn ended(reason: u8) -> hyper::Error {
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .handshake::<_, Empty<Bytes>>(TokioIo::new(client))
        .await
        .unwrap();
    // An empty SETTINGS frame, then GOAWAY with last stream 0.
    server
        .write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let go_away = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, reason];
    server.write_all(&go_away).await.unwrap();
    drop(server);
    let error = connection.await.unwrap_err();
    drop(sender);
    error
}

#[tokio::test]
async fn a_server_that_finds_pings_too_many_gets_half_as_many_from_then_on() {
    let connector = connector(Endpoint::production(Service::Pubsub));
    assert_eq!(connector.ping_interval(), Some(Duration::from_secs(60)));
    let too_many_pings = ended(11).await;
    for doubled in [120, 240, 480, 960, 1_920, 3_840, 3_840] {
        connector.handle_end(&too_many_pings);
        assert_eq!(
            connector.ping_interval(),
            Some(Duration::from_secs(doubled))
        );
    }
}

#[tokio::test]
async fn another_end_of_a_connection_leaves_the_pings_as_they_are() {
    let connector = connector(Endpoint::production(Service::Pubsub));
    connector.handle_end(&ended(2).await);
    assert_eq!(connector.ping_interval(), Some(Duration::from_secs(60)));
}

#[test]
fn emulators_get_no_pings() {
    let memory = Endpoint::in_memory(|| Ok(tokio::io::duplex(1).0));
    for endpoint in [Endpoint::emulator("localhost:8085").unwrap(), memory] {
        assert_eq!(connector(endpoint).ping_interval(), None);
    }
}
