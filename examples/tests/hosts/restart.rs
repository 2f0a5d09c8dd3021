//! How a host begins: from what the store says.

use std::collections::BTreeMap;

use checkpoint_store::{CheckpointStore, DiskFault, FileStore, Progress, StoreError};
use connector_core::{Budget, Epoch, Limits, Restored, settle};
use futures::stream::{FuturesOrdered, FuturesUnordered};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use crate::{
    bugs::Bug,
    checkpoints::States,
    connectors,
    host::{Ended, Host},
    world::World,
};

impl<'w> Host<'w> {
    pub(crate) async fn start(world: &'w World) -> Result<Self, Ended> {
        let mut store = open(world)?;
        let (restored, progress) = read(world, &store).await?;
        let epoch = restored
            .as_ref()
            .map_or_else(Epoch::default, |restored| restored.epoch);
        let cut = restored.as_ref().map(|restored| restored.state.0);
        world.look();
        let settled = restored.as_ref().is_some_and(|restored| restored.settled);
        let failed = world.truth().restore(cut, settled);
        if failed {
            world.count("a save failed though it was durable");
        }
        count(world, restored.as_ref());
        if world.plan.marks && progress == Some(Progress::Saved) {
            // The connectors commit by themselves what they restore.
            store.committing(epoch).await.map_err(|_| Ended::GaveUp)?;
        }
        let budgets = [world.plan.buffer, world.plan.room, world.plan.room]
            .map(|items| Budget::new(Limits::items(items)));
        let of = |forgets| restored.clone().filter(|_| world.bug != Some(forgets));
        let (mut source, driver) = connectors::source(
            world,
            &budgets[0],
            of(Bug::SourceForgotten).map(|restored| restored.map(|states| states.1)),
        );
        let mut drivers = JoinSet::new();
        drivers.spawn(driver);
        let (mut publish, driver) = connectors::publish(
            world,
            &budgets[1],
            of(Bug::PublishForgotten).map(|restored| restored.map(|states| states.2)),
        );
        drivers.spawn(driver);
        let (mut tasks, driver) = connectors::tasks(
            world,
            &budgets[2],
            of(Bug::TasksForgotten).map(|restored| restored.map(|states| states.3)),
        );
        drivers.spawn(driver);
        let commits = FuturesUnordered::new();
        if restored.is_some() {
            commits.push(settle(
                epoch,
                [source.restored(), publish.restored(), tasks.restored()],
            ));
        }
        let mut tick = interval(world.plan.interval);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            world,
            store,
            source,
            publish,
            tasks,
            drivers,
            budgets,
            epoch,
            saved: epoch,
            cuts: cut
                .map(|cut| (epoch, cut))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            sealing: FuturesOrdered::new(),
            commits,
            tick,
            careful: false,
            held: None,
            stale: None,
        })
    }
}

/// Opens the store. What keeps it closed is told, and never worked around.
fn open(world: &World) -> Result<FileStore, Ended> {
    if world.chance().strikes(|rates| rates.rot) {
        rot(world);
    }
    if world.chance().strikes(|rates| rates.disk) {
        let mut chance = world.chance();
        let fault = chance.pick(&[DiskFault::Refused, DiskFault::Unreported, DiskFault::Full]);
        let steps = chance.random().usize(..30);
        world.disk.fail_after(steps, fault);
    }
    let opened = world.disk.open();
    world.disk.heal();
    opened.map_err(|error| {
        assert!(
            matches!(error, StoreError::Unreadable { .. }),
            "the store does not open: {error}"
        );
        world.count("a store could not be opened");
        // Its process ends, and its locks with it.
        world.disk.end_processes();
        Ended::GaveUp
    })
}

/// A bit of the newest state rots; the store refuses to open, and the operator has a copy.
fn rot(world: &World) {
    let names = world.disk.names();
    let is_state = |name: &&String| name.starts_with("checkpoint-") && !name.ends_with(".temp");
    let Some(newest) = names.iter().rfind(is_state) else {
        return;
    };
    let place = world.chance().random().usize(..);
    assert!(world.disk.damage(newest, place));
    world.count("a bit of the newest state rotted");
    if world.bug == Some(Bug::DamagedDropped) {
        world.disk.remove(newest);
        for mark in names.iter().filter(|name| name.starts_with("mark-")) {
            world.disk.remove(mark);
        }
        return;
    }
    let opened = world.disk.open();
    let told = matches!(
        opened,
        Err(StoreError::Damaged { .. }
            | StoreError::Foreign { .. }
            | StoreError::NewerVersion { .. })
    );
    assert!(told, "a damaged state is not told: {opened:?}");
    assert!(world.disk.damage(newest, place));
}

async fn read(
    world: &World,
    store: &FileStore,
) -> Result<(Option<Restored<States>>, Option<Progress>), Ended> {
    let progress = store.progress().await.map_err(|_| Ended::GaveUp)?;
    let newest = store.newest().await.map_err(|_| Ended::GaveUp)?;
    let progress = progress.map(|(_, progress)| progress);
    let untouched = world.plan.knows_untouched() && progress == Some(Progress::Saved)
        || world.bug == Some(Bug::NeverCommitted);
    let restored = newest.map(|newest| {
        newest
            .map(|bytes| postcard::from_bytes::<States>(&bytes).unwrap())
            .committing(!untouched)
    });
    Ok((restored, progress))
}

fn count(world: &World, restored: Option<&Restored<States>>) {
    world.count(match restored {
        None => "a restart found nothing",
        Some(restored) if restored.settled => "a restart found a settled state",
        Some(restored) if !restored.committing => "a restart found an untouched state",
        Some(_) => "a restart found a state that may have been committed in part",
    });
    if let Some(restored) = restored {
        world.tell(format_args!(
            "host: restores {} covering {:?}",
            restored.epoch,
            world.truth().cover(restored.state.0)
        ));
    }
}
