//! How a host ends: in order, or not.

use std::time::Duration;

use checkpoint_store::CheckpointStore;
use connector_core::{Limits, host::checkpoint_wanted};
use futures::StreamExt;
use tokio::time::{Instant, timeout};

use crate::{
    host::{Ended, Host, connector},
    world::World,
};

/// Every close is over within its own budget, 30 s at most, and a moment.
const CLOSED: Duration = Duration::from_secs(31);

impl Host<'_> {
    /// Dies, or begins to close, in the middle of everything.
    pub(crate) async fn end(mut self, ended: Ended) {
        let world = self.world;
        match &ended {
            Ended::Died => {}
            Ended::GaveUp => {
                if world.chance().one_in(2) {
                    world.count("an orderly close in the middle");
                    self.close().await.ok();
                    world.look();
                }
            }
            Ended::Connector(_) => world.count("a connector ended, and the host began anew"),
        }
        self.die_now().await;
        world.after_death(ended).await;
    }

    /// Nothing of this process does anything any more.
    async fn die_now(mut self) {
        let world = self.world;
        world.truth().connections_suffered();
        world.disk.heal();
        self.drivers.abort_all();
        while let Some(ended) = self.drivers.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        if world.chance().one_in(3) && !world.is_calm() {
            world.count("a loss of power");
            let mut chance = world.chance();
            world.disk.lose_power(|most| chance.random().usize(..=most));
        } else {
            world.disk.end_processes();
        }
        let budgets = self.budgets.clone();
        drop(self);
        // As the kernel closes the sockets of a process that is gone.
        world.emulator.drop_connections();
        check_given_back(world, &budgets);
    }

    async fn close(&mut self) -> Result<(), Ended> {
        let began = Instant::now();
        let publish = self.publish.close().await.map_err(connector);
        assert!(
            began.elapsed() < CLOSED,
            "the sink for topics closes too late"
        );
        let began = Instant::now();
        let tasks = self.tasks.close().await.map_err(connector);
        assert!(
            began.elapsed() < CLOSED,
            "the sink for tasks closes too late"
        );
        let began = Instant::now();
        let source = self.source.close().await.map_err(connector);
        assert!(began.elapsed() < CLOSED, "the source closes too late");
        self.world.tell(format_args!("host: closed"));
        publish.and(tasks).and(source)
    }

    /// The last checkpoint, and an end in order.
    pub(crate) async fn finish(mut self) {
        self.careful = true;
        let limit = Duration::from_secs(600);
        let finished = timeout(limit, self.last_checkpoint()).await;
        finished.expect("the end comes").unwrap();
        let (epoch, disk) = (self.saved, self.world.disk.clone());
        self.end_in_order().await;
        let store = disk.open().unwrap();
        let newest = store.newest().await.unwrap().unwrap();
        assert_eq!(
            (newest.epoch, newest.settled),
            (epoch, true),
            "the last mark"
        );
    }

    /// There is nothing to do: for a while nothing is done.
    pub(crate) async fn idle(mut self) {
        self.careful = true;
        let world = self.world;
        let outputs = world.truth().outputs();
        let living = timeout(Duration::from_secs(30), self.live()).await;
        if let Ok(ended) = living {
            ended.unwrap();
        }
        world.look();
        assert_eq!(
            world.truth().outputs(),
            outputs,
            "done again after the last mark"
        );
        self.end_in_order().await;
    }

    async fn last_checkpoint(&mut self) -> Result<(), Ended> {
        let mut again = true;
        while again {
            again = false;
            self.cut();
            while let Some(sealed) = self.sealing.next().await {
                self.keep(sealed).await?;
            }
            while !self.commits.is_empty() && !again {
                tokio::select! { biased;
                    Some(done) = self.commits.next() => self.settle(done).await?,
                    wanted = checkpoint_wanted((&mut self.publish, &mut self.tasks)) => {
                        wanted.map_err(connector)?;
                        again = true;
                    }
                }
            }
        }
        Ok(())
    }

    async fn end_in_order(mut self) {
        let world = self.world;
        self.close().await.unwrap();
        let ended = timeout(Duration::from_secs(5), async {
            while let Some(ended) = self.drivers.join_next().await {
                ended.unwrap();
            }
        });
        ended.await.expect("the drivers end with their connectors");
        let budgets = self.budgets.clone();
        self.store.close().await;
        drop((self.source, self.publish, self.tasks));
        check_given_back(world, &budgets);
    }
}

fn check_given_back(world: &World, budgets: &[connector_core::Budget; 3]) {
    world.look();
    for budget in budgets {
        assert_eq!(
            budget.held(),
            Limits::new(0, 0),
            "a budget is not given back"
        );
    }
}
