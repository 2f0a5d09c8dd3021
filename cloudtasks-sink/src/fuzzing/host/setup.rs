//! How a sink is set up, and what it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use connector_core::{Epoch, Limits, Restored};
use gcp_wire::QueueName;
use gcp_wire::proto::tasks::Task;

use super::{Host, Setup, Twice, clock};
use crate::Delivery;
use crate::builder::restored;
use crate::machine::{Batch, Create, Machine};
use crate::naming::Named;
use crate::options::Options;
use crate::request::Request;
use crate::state::{KeptReason, KeptTask, SinkState, StagedTask};

/// The newest epoch of what is restored.
const RESTORED: u64 = 3;

pub(super) fn queue(number: u8) -> QueueName {
    let name = format!("projects/demo/locations/l/queues/q-{}", number % 3);
    name.parse().expect("it is a queue's name")
}

pub(super) fn create(to: &QueueName, number: u32, size: u16, named: u8, staged: bool) -> Create {
    let named = match named % 3 {
        0 if !staged => Named::ByService,
        0 | 1 => Named::Minted,
        _ => Named::ByKey,
    };
    // Records of one key are many, and have one name.
    let name = match named {
        Named::ByService => String::new(),
        Named::Minted => format!("{to}/tasks/{number}"),
        Named::ByKey => format!("{to}/tasks/key-{}", number % 5),
    };
    let task = Task {
        name,
        dispatch_count: size.into(),
        ..Task::default()
    };
    Create {
        queue: to.clone(),
        request: Request::new(to, &task),
        named,
    }
}

fn options(setup: Setup) -> Options {
    let tight = |few, many| if setup.tight { few } else { many };
    let day = Duration::from_secs(86_400);
    Options {
        delivery: if setup.staged {
            Delivery::Staged {
                name_retention: day,
            }
        } else {
            Delivery::Flush
        },
        batch: setup.batch.map(|tasks| {
            let batch = Batch::up_to(1 + usize::from(tasks % 100));
            if setup.tight { batch.bytes(200) } else { batch }
        }),
        queue_check: setup.looks,
        queue_rate: setup.paced.then_some(5.0),
        stage: tight(Limits::new(4, 1_000), Limits::new(1_000, 1 << 20)),
        quarantine: tight(Limits::new(2, 300), Limits::new(1_000, 1 << 20)),
        max_consecutive_rejections: NonZeroU32::new(5),
        destination_stats: 2,
        progress_timeout: Duration::from_secs(120),
        ..Options::default()
    }
}

fn restored_state(setup: Setup, wall: SystemTime) -> Option<Restored<SinkState>> {
    if setup.restored == 0 && setup.kept == 0 {
        return None;
    }
    let task = |number: u8| {
        let create = create(&queue(number), 1_000 + u32::from(number), 0, number, true);
        StagedTask {
            queue: create.queue,
            task: create.request.task(),
            named: create.named,
            // Some of them a while ago, and some too long ago.
            since: wall - Duration::from_secs(8 * 3_600 * u64::from(number % 4)),
            released: number.is_multiple_of(2),
        }
    };
    let tasks = (0..setup.restored % 8).map(task).collect();
    let kept = (8..8 + setup.kept % 4).map(|number| KeptTask {
        task: task(number),
        why: if number.is_multiple_of(2) {
            KeptReason::Refused
        } else {
            KeptReason::Expired
        },
        cause: None,
    });
    let state = SinkState::staged("0", tasks, kept.collect());
    Some(Restored::new(Epoch::new(RESTORED), state))
}

impl Host {
    pub(super) fn new(setup: Setup, mistake: Option<Twice>) -> Self {
        let options = options(setup);
        let now = clock::now();
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_000_000);
        let state = restored_state(setup, wall).filter(|_| setup.staged);
        let newest = state.as_ref().map(|state| state.epoch);
        let mut settings = options.machine();
        if setup.tight {
            settings.streams = 2;
        }
        let mut machine = Machine::new(settings, newest);
        if let Some(batch) = options.batch {
            machine = machine.batching(batch, "fuzzed".to_owned());
        }
        let mut commit = None;
        if let Some(settings) = options.staged() {
            let states = state.into_iter().collect();
            let tasks = restored::tasks(states, now, wall, settings.window, true);
            let tasks = tasks.expect("expired tasks may be kept aside");
            (machine, commit) = machine.staging(now, wall, settings, newest, tasks);
        }
        machine.check_invariants();
        Self {
            mistake,
            held: machine.held(),
            machine,
            now,
            wall,
            names: 0,
            records: Vec::new(),
            calls: Vec::new(),
            reads: Vec::new(),
            sizes: BTreeMap::new(),
            looks: Vec::new(),
            handling: Vec::new(),
            flushing: Vec::new(),
            submitted: BTreeSet::new(),
            snapshots: BTreeSet::new(),
            commits: commit.into_iter().collect(),
            epoch: newest.map(Epoch::get),
            ended: false,
        }
    }
}
