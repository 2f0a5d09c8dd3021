//! A bad way to a server: connections on it break, or go silent for a while and then break.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// Everything passes. Each number is another peace: a connection outlives only its own.
    Peace(u64),
    /// Nothing passes, and no connection hears of it.
    Silence,
}

/// A way that leads to a server, as long as the value lives.
pub(crate) struct Way {
    pub(crate) address: SocketAddr,
    _keepers: JoinSet<()>,
}

impl Way {
    /// Bad for `span`, good afterwards.
    pub(crate) async fn to(server: &str, span: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mood, moods) = watch::channel(Mood::Peace(0));
        let mut keepers = JoinSet::new();
        keepers.spawn(keep(listener, server.to_owned(), moods));
        keepers.spawn(trouble(mood, span));
        Self {
            address,
            _keepers: keepers,
        }
    }
}

/// Changes the mood: a break every few seconds, every third of them after a silence of up to 12 s.
async fn trouble(mood: watch::Sender<Mood>, span: Duration) {
    let over = tokio::time::sleep(span);
    tokio::pin!(over);
    for peace in 1.. {
        let calm = Duration::from_millis(fastrand::u64(3_000..8_000));
        tokio::select! {
            () = &mut over => break,
            () = tokio::time::sleep(calm) => {}
        }
        if fastrand::u8(..3) == 0 {
            mood.send_replace(Mood::Silence);
            tokio::time::sleep(Duration::from_millis(fastrand::u64(2_000..12_000))).await;
        }
        mood.send_replace(Mood::Peace(peace));
    }
    // The last peace lasts.
    mood.closed().await;
}

async fn keep(listener: TcpListener, server: String, moods: watch::Receiver<Mood>) {
    let mut passing = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        while passing.try_join_next().is_some() {}
        passing.spawn(pass(client, server.clone(), moods.clone()));
    }
}

async fn pass(mut client: TcpStream, server: String, mut moods: watch::Receiver<Mood>) {
    let Ok(mut upstream) = TcpStream::connect(server).await else {
        return;
    };
    // Reset and not closed in good order: the way it looks when a machine is gone.
    client.set_zero_linger().unwrap();
    upstream.set_zero_linger().unwrap();
    let mut mood = *moods.borrow_and_update();
    if let Mood::Peace(_) = mood {
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut upstream) => return,
            changed = moods.changed() => if changed.is_err() { return },
        }
        mood = *moods.borrow_and_update();
    }
    // In silence both ends stay open and hear nothing; afterwards they break.
    while mood == Mood::Silence && moods.changed().await.is_ok() {
        mood = *moods.borrow_and_update();
    }
}
