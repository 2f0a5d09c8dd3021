//! Over TCP, and as a program of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gcp_emulator::pubsub::proto::{Subscription, Topic};
use gcp_emulator::{Emulator, Fault, Method, Rule};
use tonic::transport::Endpoint;

use crate::client::{Client, SUB, TOPIC, texts};

const ANY_PORT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn client(address: SocketAddr) -> Client {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    Client::over(endpoint.connect_lazy())
}

#[tokio::test]
async fn a_server_is_reachable_over_tcp_and_in_memory_at_once() {
    let emulator = Emulator::builder().listen(ANY_PORT).await.unwrap();
    emulator.create_topic(TOPIC).unwrap();
    emulator.create_subscription(SUB, TOPIC, |_| ()).unwrap();
    let address = emulator.local_addr().unwrap();
    assert_ne!(address.port(), 0);
    client(address).publish(&["a"]).await.unwrap();
    let got = Client::of(&emulator).open(|_| ()).messages().await;
    assert_eq!(texts(&got), ["a"]);
}

#[tokio::test]
async fn a_taken_address_is_an_error() {
    let first = Emulator::builder().listen(ANY_PORT).await.unwrap();
    let taken = Emulator::builder()
        .listen(first.local_addr().unwrap())
        .await;
    assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn refusing_closes_the_port_and_opens_the_same_one_again() {
    let emulator = Emulator::builder().listen(ANY_PORT).await.unwrap();
    emulator.create_topic(TOPIC).unwrap();
    let address = emulator.local_addr().unwrap();
    let mut client = client(address);
    client.publish(&["a"]).await.unwrap();
    emulator.refuse_connections(true).await.unwrap();
    emulator.drop_connections();
    let refused = std::net::TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    client.publish(&["b"]).await.unwrap_err();
    emulator.refuse_connections(false).await.unwrap();
    client.publish(&["c"]).await.unwrap();
    assert_eq!(emulator.observe().topic(TOPIC).published, 2);
}

#[tokio::test]
async fn a_cut_line_is_a_reset_to_its_peer() {
    use tokio::io::AsyncReadExt;
    let emulator = Emulator::builder().listen(ANY_PORT).await.unwrap();
    let address = emulator.local_addr().unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let connected = |seen: &gcp_emulator::Observation| seen.connections == 1;
    assert!(
        emulator
            .wait_until(connected, Duration::from_secs(30))
            .await
    );
    emulator.drop_connections();
    let mut rest = Vec::new();
    let cut = socket.read_to_end(&mut rest).await.unwrap_err();
    assert_eq!(cut.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_goaway_arrives_before_the_connection_ends() {
    let emulator = Emulator::builder().listen(ANY_PORT).await.unwrap();
    emulator.create_topic(TOPIC).unwrap();
    emulator.faults().add(
        Rule::on(Method::Publish)
            .once()
            .then(Fault::GoAwayUnseen(11)),
    );
    let mut client = client(emulator.local_addr().unwrap());
    let status = client.publish(&["a"]).await.unwrap_err();
    let error = crate::client::http2_error(&status).unwrap();
    assert!(error.is_go_away(), "{error:?}");
    client.publish(&["b"]).await.unwrap();
}

/// The program, ended with the test.
struct Program {
    child: Child,
    address: SocketAddr,
}

impl Program {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gcp-emulator"))
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .parse()
            .unwrap();
        Self { child, address }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &id])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test]
async fn the_program_serves_any_client_until_it_is_told_to_end() {
    for signal in ["-TERM", "-INT"] {
        let mut program = Program::start(&["--queue", crate::client::QUEUE]);
        let mut client = client(program.address);
        let topic = Topic {
            name: TOPIC.to_owned(),
            ..Topic::default()
        };
        client.publisher.create_topic(topic).await.unwrap();
        let subscription = Subscription {
            name: SUB.to_owned(),
            topic: TOPIC.to_owned(),
            ..Subscription::default()
        };
        client
            .subscriber
            .create_subscription(subscription)
            .await
            .unwrap();
        client.publish(&["a"]).await.unwrap();
        let got = client.open(|_| ()).messages().await;
        client.ack(&got).await.unwrap();
        program.signal(signal);
        assert!(program.child.wait().unwrap().success(), "{signal}");
    }
}

#[tokio::test]
async fn what_the_command_line_names_exists_from_the_start() {
    let subscription = format!("{SUB}={TOPIC}");
    // The order of the flags does not matter: topics come first.
    let program = Program::start(&["--subscription", &subscription, "--topic", TOPIC]);
    let mut client = client(program.address);
    client.publish(&["a"]).await.unwrap();
    let got = client.pull(1).await.unwrap();
    assert_eq!(texts(&got), ["a"]);
}

#[tokio::test]
async fn a_flood_is_served_without_a_topic_until_the_program_is_told_to_end() {
    let flags = ["--flood", "--payload-bytes", "7", "--per-response", "3"];
    let mut program = Program::start(&flags);
    let mut client = client(program.address);
    let mut pulling = client.open(|first| first.max_outstanding_messages = 3);
    let got = pulling.messages().await;
    assert_eq!(got.len(), 3);
    for received in &got {
        assert_eq!(received.message.as_ref().unwrap().data.len(), 7);
    }
    client.ack(&got).await.unwrap();
    client.publish(&["a"]).await.unwrap();
    let created = client.publisher.create_topic(Topic::default()).await;
    assert_eq!(created.unwrap_err().code(), tonic::Code::Unimplemented);
    program.signal("-TERM");
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn names_that_cannot_be_served_end_the_program_with_their_reason() {
    let subscription = format!("{SUB}={TOPIC}");
    let cases: [(&[&str], &str); 3] = [
        (&["--subscription", &subscription], "Resource not found"),
        (&["--subscription", SUB], "a subscription and its topic"),
        (
            &["--topic", "orders"],
            "topic \"orders\" was refused, nothing is served",
        ),
    ];
    for (arguments, told) in cases {
        let program = Command::new(env!("CARGO_BIN_EXE_gcp-emulator"))
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(!program.status.success(), "{arguments:?}");
        let text = String::from_utf8(program.stderr).unwrap();
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn the_program_says_why_it_does_not_start() {
    let program = Program::start(&[]);
    let second = Command::new(env!("CARGO_BIN_EXE_gcp-emulator"))
        .args(["--listen", &program.address.to_string()])
        .output()
        .unwrap();
    assert!(!second.status.success());
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(text.contains("Address already in use"), "{text}");
}
