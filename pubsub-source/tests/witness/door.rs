//! A way to a server that can be shut: what goes through it breaks, and nothing new comes through.

use std::net::SocketAddr;

use pubsub_source::Endpoint;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

pub(crate) struct Door {
    address: SocketAddr,
    leads_to: watch::Sender<Option<String>>,
    /// Ends when the door is dropped.
    _keeper: JoinSet<()>,
}

impl Door {
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (leads_to, target) = watch::channel(Some(server.to_owned()));
        let mut keeper = JoinSet::new();
        keeper.spawn(keep(listener, target));
        Self {
            address,
            leads_to,
            _keeper: keeper,
        }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::emulator(&self.address.to_string()).unwrap()
    }

    pub(crate) fn shut(&self) {
        self.leads_to.send_replace(None);
    }

    pub(crate) fn open(&self, server: &str) {
        self.leads_to.send_replace(Some(server.to_owned()));
    }
}

async fn keep(listener: TcpListener, target: watch::Receiver<Option<String>>) {
    let mut passing = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        while passing.try_join_next().is_some() {}
        let mut target = target.clone();
        let server = target.borrow_and_update().clone();
        // A shut door takes the connection and drops it.
        if let Some(server) = server {
            passing.spawn(pass(client, server, target));
        }
    }
}

async fn pass(mut client: TcpStream, server: String, mut target: watch::Receiver<Option<String>>) {
    let Ok(mut upstream) = TcpStream::connect(server).await else {
        return;
    };
    // Reset and not closed in good order: the way it looks when a machine is gone.
    client.set_zero_linger().unwrap();
    upstream.set_zero_linger().unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut upstream) => {}
        // The door was shut or leads elsewhere, or is no more.
        _ = target.changed() => {}
    }
}
