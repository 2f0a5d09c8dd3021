//! What happens to bytes on their way: refused, reset, told to go away, a stream reset, half-open, black-holed.
//!
//! A host reads a subscription and publishes what it reads, over TCP. Its connectors are never
//! rebuilt. Every test asserts that nothing is lost, that nothing is settled early, and that all is
//! done within the time that the cells of the matrix have, too, after the trouble is over.

mod host;
mod pace;
mod path;

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeSet,
    io::ErrorKind,
    net::SocketAddr,
    ops::Range,
    time::Duration,
};

use gcp_emulator::{Emulator, Fault, Method, Rule, RuleId, pubsub::proto::PubsubMessage};
use tokio::time::{Instant, sleep, timeout};

use self::{host::Host, path::Path};
use crate::{
    expected::RECOVERY,
    trouble::{LASTS, LONG},
};

const IN: &str = "projects/demo/topics/orders";
const SUBSCRIPTION: &str = "projects/demo/subscriptions/orders";
const OUT: &str = "projects/demo/topics/packed";

/// Messages before the trouble, and as many during it.
const HALF: usize = 20;

/// By then a pull stream has had an answer to a ping: it has one every 30 s, and what falls silent
/// before the first is waited for longer.
const ESTABLISHED: Duration = Duration::from_secs(40);

/// After which the service ends a stream that sends nothing: 75 to 90 s. Until then it leases messages
/// to a client that is gone.
const IDLE: Duration = Duration::from_secs(75);

/// Longer than a source waits for what fell silent, so that it connects anew into the dark.
const DARK: Duration = Duration::from_secs(90);

/// Error codes of HTTP/2 (RFC 9113, section 7).
const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

struct Site {
    emulator: Emulator,
    rules: RefCell<Vec<RuleId>>,
}

impl Site {
    async fn listen() -> Self {
        let emulator = Emulator::builder()
            .require_routing_header(true)
            .idle_stream_limit(IDLE)
            .listen(([127, 0, 0, 1], 0).into())
            .await
            .unwrap();
        emulator.create_topic(IN).unwrap();
        emulator.create_topic(OUT).unwrap();
        emulator
            .create_subscription(SUBSCRIPTION, IN, |settings| {
                settings.ack_deadline_seconds = 10
            })
            .unwrap();
        Self {
            emulator,
            rules: RefCell::default(),
        }
    }

    fn address(&self) -> SocketAddr {
        self.emulator.local_addr().unwrap()
    }

    fn publish(&self, numbers: Range<usize>) {
        let messages = numbers.map(|number| PubsubMessage {
            data: number.to_string().into(),
            ..PubsubMessage::default()
        });
        self.emulator.publish(IN, messages.collect()).unwrap();
    }

    /// Messages one by one, so that there are calls all along.
    async fn publish_slowly(&self) {
        for number in HALF..2 * HALF {
            self.publish(number..number + 1);
            sleep(LASTS / 20).await;
        }
    }

    /// The records that were published by the host.
    fn stored(&self) -> BTreeSet<usize> {
        let seen = self.emulator.observe().topic(OUT);
        let numbers = seen.payloads().map(std::str::from_utf8);
        numbers.map(|text| text.unwrap().parse().unwrap()).collect()
    }

    fn acked(&self) -> BTreeSet<String> {
        let record = self.emulator.observe().subscription(SUBSCRIPTION);
        record.acked_ids().into_iter().map(str::to_owned).collect()
    }

    fn check_nothing_came_through(&self) {
        assert_eq!(self.stored(), (0..HALF).collect());
        assert_eq!(self.acked().len(), HALF);
    }

    /// Has the next calls meet these faults, one each.
    fn break_each(&self, rule: fn() -> Rule, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            let rule = self.emulator.faults().add(rule().times(1).then(fault));
            self.rules.borrow_mut().push(rule);
        }
    }

    async fn all_have_struck(&self) {
        let rules = self.rules.take();
        while rules
            .iter()
            .any(|rule| self.emulator.faults().fired(*rule) == 0)
        {
            sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Has a host live through the trouble, reached at `address`.
async fn goes_on(site: &Site, address: SocketAddr, trouble: impl Future<Output = ()>) {
    let mut host = Host::new(site, address);
    let begun = Instant::now();
    site.publish(0..HALF);
    let established = host.run(HALF, || begun.elapsed() > ESTABLISHED);
    timeout(LONG, established).await.expect("it moves");

    let over = OnceCell::new();
    let trouble = async {
        trouble.await;
        over.set(Instant::now()).unwrap();
    };
    let run = host.run(2 * HALF, || over.get().is_some());
    let both = async { tokio::join!(trouble, run) };
    timeout(LONG, both).await.expect("it moves");
    let took = over.get().unwrap().elapsed();
    assert!(took <= RECOVERY, "only after {took:?}");

    assert_eq!(site.stored(), (0..2 * HALF).collect(), "nothing is lost");
    timeout(LONG, host.close()).await.expect("it ends");
}

fn publish() -> Rule {
    Rule::on(Method::Publish)
}

fn acknowledge() -> Rule {
    Rule::on(Method::Acknowledge)
}

#[tokio::test(start_paused = true)]
async fn refused() {
    let _clock = pace::begin();
    let site = Site::listen().await;
    let trouble = async {
        site.emulator.refuse_connections(true).await.unwrap();
        site.emulator.drop_connections();
        site.publish(HALF..2 * HALF);
        sleep(LASTS).await;
        let refused = tokio::net::TcpStream::connect(site.address()).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        site.check_nothing_came_through();
        site.emulator.refuse_connections(false).await.unwrap();
    };
    goes_on(&site, site.address(), trouble).await;
}

#[tokio::test(start_paused = true)]
async fn reset() {
    let _clock = pace::begin();
    let site = Site::listen().await;
    let cut = || Fault::DropConnection;
    let faults = || [cut(), cut().after_effect(), cut()];
    let trouble = async {
        site.break_each(publish, faults());
        site.break_each(acknowledge, faults());
        let before = site.emulator.observe().connections_opened;
        for _ in 0..3 {
            site.emulator.drop_connections();
            sleep(LASTS / 20).await;
        }
        site.publish_slowly().await;
        site.all_have_struck().await;
        let opened = site.emulator.observe().connections_opened - before;
        assert!(opened > 3, "only {opened} connections were made anew");
    };
    goes_on(&site, site.address(), trouble).await;
}

#[tokio::test(start_paused = true)]
async fn goaway() {
    let _clock = pace::begin();
    let site = Site::listen().await;
    let seen = Fault::GoAway;
    let faults = || {
        [
            seen(NO_ERROR),
            Fault::GoAwayUnseen(NO_ERROR),
            seen(NO_ERROR).after_effect(),
            seen(ENHANCE_YOUR_CALM),
        ]
    };
    let trouble = async {
        site.break_each(publish, faults());
        site.break_each(acknowledge, faults());
        site.break_each(
            Rule::on_stream_request,
            [seen(NO_ERROR), seen(INTERNAL_ERROR)],
        );
        // Calls under way may finish, also streams, which never do.
        site.emulator.retire_connections();
        site.publish_slowly().await;
        site.all_have_struck().await;
    };
    goes_on(&site, site.address(), trouble).await;
}

#[tokio::test(start_paused = true)]
async fn rst_stream() {
    let _clock = pace::begin();
    let site = Site::listen().await;
    let reset = Fault::ResetStream;
    let faults = || {
        [
            reset(REFUSED_STREAM),
            reset(CANCEL),
            reset(INTERNAL_ERROR),
            reset(NO_ERROR),
            reset(INTERNAL_ERROR).after_effect(),
        ]
    };
    let opens = || Rule::on(Method::StreamingPull);
    let trouble = async {
        site.break_each(publish, faults());
        site.break_each(acknowledge, faults());
        site.break_each(
            opens,
            [reset(REFUSED_STREAM), reset(CANCEL).after_responses(1)],
        );
        site.break_each(Rule::on_stream_request, [reset(INTERNAL_ERROR)]);
        site.publish_slowly().await;
        site.all_have_struck().await;
    };
    goes_on(&site, site.address(), trouble).await;
}

#[tokio::test(start_paused = true)]
async fn half_open() {
    let _clock = pace::begin();
    let site = Site::listen().await;
    let before = Cell::new(0);
    let opened = || site.emulator.observe().connections_opened;
    let trouble = async {
        before.set(opened());
        site.emulator.silence_connections();
        site.publish(HALF..2 * HALF);
    };
    goes_on(&site, site.address(), trouble).await;
    // One to pull on, one to acknowledge on, and one to publish on.
    assert!(opened() >= before.get() + 3, "it was not noticed");
}

#[tokio::test(start_paused = true)]
async fn black_holed() {
    let _clock = pace::begin();
    let site = Site::listen().await;
    let path = Path::to(site.address()).await;
    let trouble = async {
        path.darken();
        site.publish(HALF..2 * HALF);
        sleep(DARK).await;
        site.check_nothing_came_through();
        path.lighten();
    };
    goes_on(&site, path.address(), trouble).await;
}
