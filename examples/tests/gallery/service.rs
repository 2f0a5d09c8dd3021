//! The web service.

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Parser;
use examples::axum_service::{self, Options, order, serve};
use examples::shop::{ORDERS, Order, Shop};
use gcp_emulator::{Code, Fault, FaultPlan, Method, Rule};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::of;

#[tokio::test]
async fn what_was_answered_with_created_is_in_the_topic_and_callers_share_requests() {
    let options = Options::try_parse_from(["axum_service"]).unwrap();
    let figures = axum_service::run(&options).await.unwrap();
    let names = [
        "answered 201",
        "of these in the topic",
        "messages in the topic",
    ];
    assert_eq!(of(&figures, names), [200, 200, 200], "{figures}");
    let [requests] = of(&figures, ["publish requests"]);
    assert!(requests < 200, "{figures}");
}

/// The answers of a service over a server with these faults, and how the service ended.
async fn answers(plan: FaultPlan, orders: u32) -> (Vec<(u16, axum_service::Answer)>, bool, u64) {
    let shop = Shop::open_with(plan, false).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (ask, asked) = oneshot::channel::<()>();
    let serving = serve(listener, shop.endpoint(), async { drop(asked.await) });
    let calling = async {
        let mut answers = Vec::new();
        for id in 0..orders {
            answers.push(order(address, Order::numbered(id)).await.unwrap());
        }
        drop(ask);
        answers
    };
    let limit = Duration::from_secs(60);
    let both = tokio::time::timeout(limit, futures::future::join(serving, calling));
    let (served, answers) = both.await.unwrap();
    let stored = shop.emulator().observe().topic(ORDERS).published;
    (answers, served.is_ok(), stored)
}

#[tokio::test]
async fn an_outage_delays_the_answer_and_a_refusal_is_the_callers() {
    let outage = Fault::answer(Code::Unavailable, "try again");
    let refusal = Fault::answer(Code::InvalidArgument, "not this one");
    let plan = FaultPlan::new()
        .rule(Rule::on(Method::Publish).once().then(outage))
        .rule(Rule::on(Method::Publish).skip(1).once().then(refusal));
    let (answers, served, stored) = answers(plan, 3).await;
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [201, 422, 201], "{answers:?}");
    assert!(
        answers[1]
            .1
            .problem
            .as_ref()
            .unwrap()
            .contains("not this one")
    );
    assert!(served, "one refused order must not end the service");
    assert_eq!(stored, 2);
}

#[tokio::test]
async fn a_sink_that_ended_ends_the_service_after_its_callers_were_told() {
    let denied = Fault::answer(Code::PermissionDenied, "not you");
    let plan = FaultPlan::new().rule(Rule::on(Method::Publish).then(denied));
    let (answers, served, stored) = answers(plan, 1).await;
    assert_eq!(answers[0].0, 504, "{answers:?}");
    assert!(!served, "the service names the error and ends");
    assert_eq!(stored, 0);
}
