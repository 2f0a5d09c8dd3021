//! Task creation over HTTP/1.1 with JSON, which is what Google's own client for Rust speaks.

use std::io;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// More than a head or a task ever takes; what is longer ends the connection.
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_BODY: usize = 8 << 20;

const CREATED: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 68\r\n\r\n\
{\"name\":\"projects/p/locations/l/queues/q/tasks/1234567890123456789\"}";
const UNKNOWN: &[u8] = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

/// Whether a connection that begins so is HTTP/2; every request of HTTP/1.1 served here is a POST.
pub(super) fn is_http2(first: &[u8]) -> bool {
    !first.starts_with(b"PO")
}

/// Answers one request after the other until the client has no more; `created` is awaited for each
/// task.
pub(super) async fn rest<S, F>(mut stream: S, mut created: impl FnMut() -> F) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = ()>,
{
    let mut buffer = BytesMut::with_capacity(16 << 10);
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if buffer.len() > LONGEST_HEAD || stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let Some(length) = content_length(&buffer[..head]) else {
            return Ok(());
        };
        let is_task = buffer[..head]
            .split(|byte| *byte == b'\r')
            .next()
            .is_some_and(|line| contains(line, b"/tasks ") || contains(line, b"/tasks?"));
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        buffer.advance(head + length);
        if is_task {
            created().await;
            stream.write_all(CREATED).await?;
        } else {
            stream.write_all(UNKNOWN).await?;
        }
    }
}

/// The length of the body, 0 where there is none; `None` where it is too long or no number.
fn content_length(head: &[u8]) -> Option<usize> {
    let name = b"content-length:";
    let line = head.split(|byte| *byte == b'\n').find(|line| {
        let start = line.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    });
    let Some(line) = line else {
        return Some(0);
    };
    let value = std::str::from_utf8(&line[name.len()..]).ok()?;
    let length = value.trim().parse().ok()?;
    (length <= LONGEST_BODY).then_some(length)
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// What the server says to these bytes, and how many tasks it counted.
    async fn answers(requests: &[u8]) -> (String, usize) {
        let (mut client, server) = tokio::io::duplex(64);
        let tasks = AtomicUsize::new(0);
        let count = || async {
            tasks.fetch_add(1, Ordering::Relaxed);
        };
        let talk = async {
            let (mut answers, mut requests_out) = tokio::io::split(&mut client);
            let mut said = String::new();
            let write = async {
                requests_out.write_all(requests).await.unwrap();
                requests_out.shutdown().await.unwrap();
            };
            tokio::join!(write, async {
                answers.read_to_string(&mut said).await.unwrap();
            });
            said
        };
        let (served, said) = tokio::join!(rest(server, count), talk);
        served.unwrap();
        (said, tasks.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn every_task_is_answered_with_a_whole_body_however_the_bytes_come() {
        let request = "POST /v2/projects/p/locations/l/queues/q/tasks HTTP/1.1\r\n\
                       Content-Length: 200\r\n\r\n";
        let request = format!("{request}{}", "x".repeat(200)).repeat(3);
        let (said, tasks) = answers(request.as_bytes()).await;
        assert_eq!(tasks, 3);
        assert_eq!(said, String::from_utf8_lossy(CREATED).repeat(3));
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        let body = body.split("HTTP/1.1").next().unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
    }

    #[tokio::test]
    async fn what_creates_no_task_is_unknown_and_what_is_too_long_ends_the_connection() {
        let other = b"POST /v2/projects/p/locations/l/queues/q:pause HTTP/1.1\r\n\r\n";
        assert_eq!(
            answers(other).await,
            (String::from_utf8_lossy(UNKNOWN).into_owned(), 0)
        );
        let long = b"POST /tasks HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n";
        assert_eq!(answers(long).await, (String::new(), 0));
    }

    #[test]
    fn the_two_versions_are_told_apart() {
        assert!(is_http2(b"PRI * HTTP/2.0"));
        assert!(!is_http2(b"POST /v2/projects"));
    }
}
