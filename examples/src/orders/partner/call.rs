//! One call as the partner checks it.

use std::time::{Duration, SystemTime};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Uri, request::Parts};

use super::super::order::EnrichedOrder;
use super::super::routes::Routes;

/// How far the dispatcher's clock may be ahead of the partner's.
const SKEW: Duration = Duration::from_secs(1);

/// A call that was made as agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) event_id: String,
    pub(super) task: TaskLabel,
}

/// A task as the dispatcher names it to the partner: the last parts of its queue's and its own name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TaskLabel {
    queue: String,
    task: String,
}

impl TaskLabel {
    pub(crate) fn new(queue: &str, task: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            task: task.to_owned(),
        }
    }
}

/// Why a call was refused; nothing of it was written down.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("orders are sent by POST, not by {0}")]
    Method(Method),
    #[error("header {0} is missing or no text")]
    Header(&'static str),
    #[error("orders are application/json, not {0}")]
    ContentType(String),
    #[error("the body is no order")]
    Body(#[from] serde_json::Error),
    #[error("customer {0} has no contract here")]
    Customer(String),
    #[error("order {order} was sent to {found}, its place is {expected}")]
    Path {
        order: String,
        found: String,
        expected: String,
    },
    #[error("order {order} was not to come before {}", humantime::format_rfc3339_millis(*at))]
    Early { order: String, at: SystemTime },
    #[error("tenant {found} does not serve customer {customer}")]
    Tenant { customer: String, found: String },
}

impl Call {
    /// Checks a call that arrives at `now` against the routes table: the path, the headers, the
    /// body, and that it does not come before its time.
    pub(super) fn read(
        head: &Parts,
        body: &[u8],
        routes: &Routes,
        now: SystemTime,
    ) -> Result<Self, Refusal> {
        if head.method != Method::POST {
            return Err(Refusal::Method(head.method.clone()));
        }
        let content_type = header(&head.headers, CONTENT_TYPE.as_str(), "Content-Type")?;
        if content_type != "application/json" {
            return Err(Refusal::ContentType(content_type.to_owned()));
        }
        let EnrichedOrder { order, .. } = serde_json::from_slice(body)?;
        let route = routes
            .of(&order.customer)
            .ok_or_else(|| Refusal::Customer(order.customer.clone()))?;

        let expected = format!("{}/orders/{}", route.endpoint, order.order_id);
        // A request line names the path alone; the origin is where the connection was made to.
        let place = expected.parse::<Uri>();
        if !place.is_ok_and(|place| place.path() == head.uri.path()) {
            let found = head.uri.path().to_owned();
            return Err(Refusal::Path {
                order: order.order_id,
                found,
                expected,
            });
        }
        let tenant = header(&head.headers, "x-tenant", "X-Tenant")?;
        if tenant != route.tenant {
            let found = tenant.to_owned();
            return Err(Refusal::Tenant {
                customer: order.customer,
                found,
            });
        }
        if let Some(at) = order.dispatch_at
            && now + SKEW < at
        {
            let order = order.order_id;
            return Err(Refusal::Early { order, at });
        }
        let queue = header(
            &head.headers,
            "x-cloudtasks-queuename",
            "X-CloudTasks-QueueName",
        )?;
        let name = header(
            &head.headers,
            "x-cloudtasks-taskname",
            "X-CloudTasks-TaskName",
        )?;
        Ok(Self {
            event_id: order.event_id,
            task: TaskLabel::new(queue, name),
        })
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str, shown: &'static str) -> Result<&'a str, Refusal> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .ok_or(Refusal::Header(shown))
}
