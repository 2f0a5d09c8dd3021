//! A clock for sockets.

use std::{sync::mpsc, thread, time::Duration};

use tokio::{task::spawn_blocking, time::advance};

/// What a tick is by the clock on the wall, and what it is here: 90 s of silence pass in two.
const WALL: Duration = Duration::from_millis(1);
const HERE: Duration = Duration::from_millis(50);

/// Lets time pass faster than it does, until what is returned is dropped.
///
/// A paused clock skips to the next timer whenever no task can go on. Bytes in the kernel are no
/// task: every deadline would be over before its answer is read. So it is kept from that, which a
/// blocking task does as long as it runs, and goes by ticks of the wall instead.
pub(super) fn begin() -> mpsc::Sender<()> {
    let (held, dropped) = mpsc::channel::<()>();
    drop(spawn_blocking(move || dropped.recv()));
    drop(tokio::spawn(async {
        while spawn_blocking(|| thread::sleep(WALL)).await.is_ok() {
            advance(HERE).await;
        }
    }));
    held
}
