//! The embedded server in a process of its own.

use gcp_emulator::{Emulator, pubsub::proto::PubsubMessage};

use super::role::{Process, say};

pub const TOPIC: &str = "projects/demo-project/topics/t11";
pub const SUBSCRIPTION: &str = "projects/demo-project/subscriptions/s11";

/// What the server has seen of the subscription.
#[derive(Debug)]
pub struct Seen {
    pub backlog: usize,
    pub lapses: u64,
}

/// A server in another process.
pub struct Server {
    process: Process,
    pub address: String,
}

impl Server {
    /// Starts one with so many messages.
    pub fn start(test: &str, messages: u64) -> Self {
        let mut process = Process::start(test, &format!("server {messages}"));
        let address = process.hear().expect("the server starts");
        Self { process, address }
    }

    pub fn seen(&mut self) -> Seen {
        self.process.tell("seen");
        let line = self.process.hear().expect("the server lives");
        let numbers: Vec<u64> = line.split(' ').map(|one| one.parse().unwrap()).collect();
        Seen {
            backlog: usize::try_from(numbers[0]).unwrap(),
            lapses: numbers[1],
        }
    }
}

/// The role of the server: serves until its input ends.
pub fn serve(messages: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let emulator = runtime.block_on(async {
        let listening = Emulator::builder().listen("127.0.0.1:0".parse().unwrap());
        listening.await.unwrap()
    });
    emulator.create_topic(TOPIC).unwrap();
    emulator
        .create_subscription(SUBSCRIPTION, TOPIC, |_| {})
        .unwrap();
    let numbers: Vec<u64> = (0..messages).collect();
    for request in numbers.chunks(1000) {
        let message = |number: &u64| PubsubMessage {
            data: number.to_string().into(),
            ..PubsubMessage::default()
        };
        let request = request.iter().map(message).collect();
        emulator.publish(TOPIC, request).unwrap();
    }
    say(&emulator.local_addr().unwrap().to_string());
    for line in std::io::stdin().lines() {
        if line.is_err() {
            break;
        }
        let record = emulator.observe().subscription(SUBSCRIPTION);
        say(&format!("{} {}", record.backlog, record.lapses));
    }
}
