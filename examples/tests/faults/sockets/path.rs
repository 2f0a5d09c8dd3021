//! A way to a server on which bytes can get stuck.

use std::net::SocketAddr;

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// While it is dark, connections are made and stay, and nothing is carried in either direction. What
/// was sent into the dark arrives afterwards, the farewells of connections included.
pub(super) struct Path {
    address: SocketAddr,
    light: watch::Sender<bool>,
}

impl Path {
    pub(super) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (light, lit) = watch::channel(true);
        drop(tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(server).await.unwrap();
                near.set_nodelay(true).unwrap();
                far.set_nodelay(true).unwrap();
                let (from_near, to_near) = near.into_split();
                let (from_far, to_far) = far.into_split();
                drop(tokio::spawn(carry(from_near, to_far, lit.clone())));
                drop(tokio::spawn(carry(from_far, to_near, lit.clone())));
            }
        }));
        Self { address, light }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn darken(&self) {
        self.light.send_replace(false);
    }

    pub(super) fn lighten(&self) {
        self.light.send_replace(true);
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut lit: watch::Receiver<bool>) {
    let mut bytes = BytesMut::new();
    loop {
        let read = from.read_buf(&mut bytes).await.unwrap_or(0);
        if lit.wait_for(|lit| *lit).await.is_err() {
            return;
        }
        // The end of what is written is told by dropping it.
        if read == 0 || to.write_all_buf(&mut bytes).await.is_err() {
            return;
        }
    }
}
