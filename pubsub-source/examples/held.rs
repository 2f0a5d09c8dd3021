//! Holds very many deliveries for a while, and says what that costs: CPU, memory, leases lost,
//! extensions. The server runs in a process of its own, so that none of its cost counts.
//!
//! ```text
//! cargo run --release -p pubsub-source --example held -- [MESSAGES] [SECONDS] [LONGEST LEASE, SECONDS]
//! ```
//!
//! Without arguments: 400,000 deliveries for 60 s, with leases of 60 s. Nothing is committed, so
//! every lease has to be extended for as long as it runs.

#![expect(
    clippy::disallowed_methods,
    reason = "a program that measures reads clocks"
)]

use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use futures::StreamExt;
use gcp_emulator::{Emulator, pubsub::proto::PubsubMessage};
use pubsub_source::{Endpoint, PubsubSource};
use tokio::time::Instant;

const TOPIC: &str = "projects/demo-project/topics/held";
const SUBSCRIPTION: &str = "projects/demo-project/subscriptions/held";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("serve") => number(&arguments, 1, 0).and_then(serve),
        _ => hold(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("held: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number(arguments: &[String], at: usize, default: u64) -> Outcome<u64> {
    let given = arguments.get(at);
    Ok(given.map_or(Ok(default), |text| text.parse())?)
}

fn hold(arguments: &[String]) -> Outcome<()> {
    let messages = number(arguments, 0, 400_000)?;
    let seconds = number(arguments, 1, 60)?;
    let longest = number(arguments, 2, 60)?;
    let mut server = Server::start(messages)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let held = usize::try_from(messages)?;
        let mut source = PubsubSource::builder(SUBSCRIPTION.parse()?)
            .endpoint(Endpoint::emulator(&server.address)?)
            .streams(4)
            .outstanding(held)
            .first_outstanding(held)
            .max_extension(Duration::from_secs(longest))
            .build()?;
        let empty = Usage::now();
        let started = Instant::now();
        for _ in 0..held {
            let message = source.next().await.ok_or("the stream goes on")??;
            drop(message);
        }
        let received = started.elapsed();
        println!(
            "{held} messages were received and handed out in {:.1} s.",
            received.as_secs_f64()
        );
        let (full, begun) = (Usage::now(), Instant::now());
        let before = source.stats();
        // The host polls as hosts do, and nothing comes.
        let wait = tokio::time::timeout(Duration::from_secs(seconds), source.next());
        if let Ok(Some(message)) = wait.await {
            return Err(format!("{:?} came although everything is held", message?).into());
        }
        let (end, stats) = (Usage::now(), source.stats());
        let elapsed = begun.elapsed().as_secs_f64();
        let extended = stats.extended - before.extended;
        println!(
            "They were held for {elapsed:.1} s with leases of {} s.",
            stats.lease_seconds
        );
        println!("leased at the end      {}", stats.leased);
        println!(
            "lapsed at the source   {}",
            stats.lapsed + stats.lapsed_in_buffer
        );
        println!("lapsed at the server   {}", server.lapses()?);
        println!("came again             {}", stats.redelivered);
        println!(
            "extension ids          {} in all, {extended} while holding",
            stats.extended
        );
        println!(
            "CPU while holding      {:.2} s, {:.1} % of one core",
            end.cpu - full.cpu,
            (end.cpu - full.cpu) * 100.0 / elapsed
        );
        println!("CPU while receiving    {:.2} s", full.cpu - empty.cpu);
        println!(
            "resident memory        {:.1} MB empty, {:.1} MB full, {:.1} MB at the end",
            empty.resident / 1e6,
            full.resident / 1e6,
            end.resident / 1e6
        );
        let grown = end.resident - empty.resident;
        println!(
            "for each delivery      {:.0} bytes",
            grown / messages.max(1) as f64
        );
        source.close().await?;
        Ok(())
    })
}

/// The server in another process.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(messages: u64) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", &messages.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let address = line(&mut child)?;
        Ok(Self { child, address })
    }

    fn lapses(&mut self) -> Outcome<String> {
        let input = self.child.stdin.as_mut().ok_or("the server listens")?;
        writeln!(input, "lapses")?;
        line(&mut self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn line(child: &mut Child) -> Outcome<String> {
    let output = child.stdout.as_mut().ok_or("the server speaks")?;
    let mut line = String::new();
    // One byte at a time: what is read too much would be lost with the reader.
    BufReader::with_capacity(1, output).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

fn serve(messages: u64) -> Outcome<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let emulator = runtime.block_on(Emulator::builder().listen("127.0.0.1:0".parse()?))?;
    emulator.create_topic(TOPIC)?;
    emulator.create_subscription(SUBSCRIPTION, TOPIC, |_| {})?;
    let numbers: Vec<u64> = (0..messages).collect();
    for request in numbers.chunks(1000) {
        let message = |number: &u64| PubsubMessage {
            data: number.to_string().into(),
            ..PubsubMessage::default()
        };
        emulator.publish(TOPIC, request.iter().map(message).collect())?;
    }
    println!("{}", emulator.local_addr().ok_or("the server listens")?);
    for line in std::io::stdin().lines() {
        line?;
        println!("{}", emulator.observe().subscription(SUBSCRIPTION).lapses);
    }
    Ok(())
}

/// What this process has used, where the system says so.
#[derive(Clone, Copy, Default)]
struct Usage {
    /// Seconds on any core.
    cpu: f64,
    /// Bytes.
    resident: f64,
}

impl Usage {
    fn now() -> Self {
        Self::of_linux().unwrap_or_default()
    }

    fn of_linux() -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let resident: f64 = resident.trim().strip_suffix(" kB")?.parse().ok()?;
        // Nanoseconds on the core, of each thread.
        let mut cpu = 0.0;
        for task in std::fs::read_dir("/proc/self/task").ok()? {
            let path = task.ok()?.path().join("schedstat");
            let schedule = std::fs::read_to_string(path).ok()?;
            cpu += schedule.split(' ').next()?.parse::<f64>().ok()? / 1e9;
        }
        Some(Self {
            cpu,
            resident: resident * 1024.0,
        })
    }
}
