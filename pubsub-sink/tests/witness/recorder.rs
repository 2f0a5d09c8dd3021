//! A proxy that keeps what a server answered OK.
//!
//! Between a client and a server that forgets everything when it is killed, nobody else can say
//! afterwards what it had stored.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use gcp_wire::proto::pubsub::{PublishRequest, Topic};
use h2::{
    Reason, RecvStream,
    client::{self, SendRequest},
    server::{self, SendResponse},
};
use http::{HeaderMap, Request, Response, Uri};
use prost::Message;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// The length of a gRPC message's prefix.
const PREFIX: usize = 5;

#[derive(Debug, Default)]
struct Kept {
    payloads: BTreeSet<String>,
    topics: Vec<String>,
}

pub(crate) struct Recorder {
    pub(crate) address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
    /// Ends when the recorder is dropped.
    _keeper: JoinSet<()>,
}

impl Recorder {
    /// A proxy to the server at a port, whoever listens there at the time.
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let kept = Arc::new(Mutex::new(Kept::default()));
        let mut keeper = JoinSet::new();
        keeper.spawn(keep(listener, port, Arc::clone(&kept)));
        Self {
            address,
            kept,
            _keeper: keeper,
        }
    }

    /// The payloads of messages whose publish request was answered OK.
    pub(crate) fn stored(&self) -> BTreeSet<String> {
        self.kept.lock().unwrap().payloads.clone()
    }

    /// The topics created since the last call, in order.
    pub(crate) fn take_created(&self) -> Vec<String> {
        std::mem::take(&mut self.kept.lock().unwrap().topics)
    }
}

async fn keep(listener: TcpListener, port: u16, kept: Arc<Mutex<Kept>>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        while connections.try_join_next().is_some() {}
        connections.spawn(connection(client, port, Arc::clone(&kept)));
    }
}

/// One client's connection, with one of its own to the server. Either end's death is the other's.
async fn connection(client: TcpStream, port: u16, kept: Arc<Mutex<Kept>>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    let builder = |window| {
        let mut builder = server::Builder::new();
        builder
            .initial_window_size(window)
            .initial_connection_window_size(window);
        builder
    };
    let Ok(mut incoming) = builder(16 << 20).handshake::<_, Bytes>(client).await else {
        return;
    };
    let Ok((outgoing, driver)) = client::handshake(server).await else {
        return;
    };
    let mut calls = JoinSet::new();
    let mut driver = std::pin::pin!(driver);
    loop {
        let accepted = tokio::select! {
            accepted = incoming.accept() => accepted,
            // The server's end is gone, whether it said so or not.
            _ = &mut driver => return,
        };
        let Some(Ok((request, respond))) = accepted else {
            return;
        };
        calls.spawn(call(
            request,
            respond,
            outgoing.clone(),
            port,
            Arc::clone(&kept),
        ));
    }
}

async fn call(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    outgoing: SendRequest<Bytes>,
    port: u16,
    kept: Arc<Mutex<Kept>>,
) {
    if forward(request, &mut respond, outgoing, port, &kept)
        .await
        .is_err()
    {
        respond.send_reset(Reason::CANCEL);
    }
}

async fn forward(
    request: Request<RecvStream>,
    respond: &mut SendResponse<Bytes>,
    outgoing: SendRequest<Bytes>,
    port: u16,
    kept: &Mutex<Kept>,
) -> Result<(), h2::Error> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let (sent, _) = whole(body).await?;
    head.uri = Uri::try_from(format!("http://127.0.0.1:{port}{path}")).unwrap();
    let mut outgoing = outgoing.ready().await?;
    let (answer, mut stream) = outgoing.send_request(Request::from_parts(head, ()), false)?;
    stream.send_data(sent.clone(), true)?;
    let (answer, body) = answer.await?.into_parts();
    let only_trailers = answer.headers.contains_key("grpc-status");
    let (data, trailers) = whole(body).await?;
    let status = if only_trailers {
        &answer.headers
    } else {
        &trailers
    };
    if status
        .get("grpc-status")
        .is_some_and(|status| status == "0")
    {
        record(&path, &sent, kept);
    }
    let mut stream = respond.send_response(Response::from_parts(answer, ()), only_trailers)?;
    if !only_trailers {
        stream.send_data(data, false)?;
        stream.send_trailers(trailers)?;
    }
    Ok(())
}

/// Everything of a body.
async fn whole(mut body: RecvStream) -> Result<(Bytes, HeaderMap), h2::Error> {
    let mut data = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        data.extend_from_slice(&chunk);
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    Ok((data.into(), trailers))
}

fn record(path: &str, sent: &Bytes, kept: &Mutex<Kept>) {
    let message = sent.slice(PREFIX.min(sent.len())..);
    let mut kept = kept.lock().unwrap();
    if path.ends_with("/Publish") {
        let request = PublishRequest::decode(message).unwrap();
        let payloads = request.messages.iter();
        kept.payloads
            .extend(payloads.map(|message| String::from_utf8(message.data.to_vec()).unwrap()));
    } else if path.ends_with("/CreateTopic") {
        kept.topics.push(Topic::decode(message).unwrap().name);
    }
}
