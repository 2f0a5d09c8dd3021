//! An HTTP/2 server written frame by frame, for what no library server would do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gcp_wire::Endpoint;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::server::spawn;

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// The server's end of one connection.
pub(crate) struct Peer {
    stream: DuplexStream,
}

impl Peer {
    async fn begin(mut stream: DuplexStream) -> Self {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut peer = Self { stream };
        peer.write(SETTINGS, 0, 0, &[]).await;
        peer
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![len[1], len[2], len[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.stream.write_all(&frame).await.unwrap();
    }

    /// The stream of the next request, once its headers are here; `None` when the client is gone.
    pub(crate) async fn request(&mut self) -> Option<u32> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let [a, b, c, kind, flags, s1, s2, s3, s4] = head;
            let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
            self.stream.read_exact(&mut payload).await.ok()?;
            match kind {
                SETTINGS if flags == 0 => self.write(SETTINGS, 1, 0, &[]).await,
                HEADERS => return Some(u32::from_be_bytes([s1, s2, s3, s4])),
                _ => {}
            }
        }
    }

    pub(crate) async fn reset(&mut self, stream: u32, reason: u32) {
        self.write(RST_STREAM, 0, stream, &reason.to_be_bytes())
            .await;
    }

    pub(crate) async fn go_away(&mut self, last: u32, reason: u32) {
        let payload = [last.to_be_bytes(), reason.to_be_bytes()].concat();
        self.write(GOAWAY, 0, 0, &payload).await;
    }

    /// `:status: 200` and `content-type: application/grpc`, in HPACK's plainest form.
    pub(crate) async fn answer_begins(&mut self, stream: u32) {
        let kind = b"application/grpc";
        let mut block = vec![0x88, 0x0f, 0x10, u8::try_from(kind.len()).unwrap()];
        block.extend(kind);
        self.write(HEADERS, 4, stream, &block).await;
    }

    pub(crate) async fn data(&mut self, stream: u32, bytes: &[u8]) {
        self.write(DATA, 0, stream, bytes).await;
    }

    /// `grpc-status: 0`, and the end of the stream.
    pub(crate) async fn answer_ends(&mut self, stream: u32) {
        let mut block = vec![0x00, 11];
        block.extend(b"grpc-status");
        block.extend([1, b'0']);
        self.write(HEADERS, 4 | 1, stream, &block).await;
    }

    pub(crate) async fn answer(&mut self, stream: u32, message: &[u8]) {
        self.answer_begins(stream).await;
        self.data(stream, &crate::server::framed(message)).await;
        self.answer_ends(stream).await;
    }

    /// Waits until the client is gone.
    pub(crate) async fn linger(mut self) {
        while self.request().await.is_some() {}
    }
}

/// An endpoint where `script` speaks for the server; it is told the number of the connection.
pub(crate) fn scripted<F, A>(script: F) -> (Endpoint, Arc<AtomicUsize>)
where
    F: Fn(Peer, usize) -> A + Send + Sync + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let count = Arc::new(AtomicUsize::new(0));
    let connections = Arc::clone(&count);
    let script = Arc::new(script);
    let endpoint = Endpoint::in_memory(move || {
        let number = connections.fetch_add(1, Ordering::SeqCst);
        let (client, server) = tokio::io::duplex(1 << 16);
        let script = Arc::clone(&script);
        drop(spawn(async move {
            script(Peer::begin(server).await, number).await
        }));
        Ok(client)
    });
    (endpoint, count)
}
