use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::workload;
use super::*;

fn routes(origin: &str) -> Arc<Routes> {
    Arc::new(Routes::spread(
        &workload::customers(),
        origin,
        "0".parse().unwrap(),
    ))
}

/// A request as text, changed by `edit`, and the status line that answers it.
async fn status(partner: &str, edit: impl FnOnce(String) -> String) -> String {
    let body = r#"{"event_id":"e1","order_id":"A-1","customer":"customer-007","region":"asia",
        "lines":[],"route":{"endpoint":"ignored","tenant":"ignored"}}"#;
    let request = edit(format!(
        "POST /cobalt/orders/A-1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\nx-tenant: shop-cobalt-1\r\n\
         x-cloudtasks-queuename: q\r\nx-cloudtasks-taskname: t\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    ));
    let mut stream = TcpStream::connect(partner.trim_start_matches("http://"))
        .await
        .unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// The request with the length of the body it has now.
fn resized(request: &str) -> String {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let (head, _length) = head.rsplit_once(' ').unwrap();
    format!("{head} {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_repeated_call_is_taken_and_counted_and_is_no_second_order() {
    let door = PartnerDoor::open().await.unwrap();
    let origin = door.origin();
    let partner = door.serve(routes(&origin));

    assert_eq!(
        status(&origin, |as_agreed| as_agreed).await,
        "HTTP/1.1 200 OK"
    );
    assert_eq!(
        status(&origin, |as_agreed| as_agreed).await,
        "HTTP/1.1 200 OK"
    );
    let by_another_task = status(&origin, |as_agreed| {
        as_agreed.replace("taskname: t", "taskname: u")
    });
    assert_eq!(by_another_task.await, "HTTP/1.1 200 OK");

    assert_eq!(
        partner.tally(),
        PartnerTally {
            calls: 3,
            refused: 0,
            orders: 1,
            tasks: 2
        }
    );
    assert!(partner.read(|book| book.knows("e1") && !book.knows("e2")));
}

#[tokio::test]
async fn a_call_that_is_not_as_agreed_is_refused_and_not_written_down() {
    let door = PartnerDoor::open().await.unwrap();
    let origin = door.origin();
    let partner = door.serve(routes(&origin));

    let wrong = [
        ("POST", "PUT"),
        ("/cobalt/", "/acme/"),
        ("/orders/A-1", "/orders/A-2"),
        ("application/json", "text/plain"),
        ("shop-cobalt-1", "shop-cobalt-2"),
        ("x-tenant", "x-other"),
        ("x-cloudtasks-taskname", "x-other"),
        ("customer-007", "customer-999"),
        ("event_id", "event_no"),
        (
            r#""lines":[]"#,
            r#""dispatch_at":"2999-01-01T00:00:00Z","lines":[]"#,
        ),
    ];
    for (agreed, sent) in wrong {
        let status = status(&origin, |request| resized(&request.replace(agreed, sent))).await;
        assert_eq!(
            status, "HTTP/1.1 422 Unprocessable Entity",
            "{sent} for {agreed}"
        );
    }
    let refused = wrong.len() as u64;
    assert_eq!(
        partner.tally(),
        PartnerTally {
            refused,
            ..PartnerTally::default()
        }
    );
}
