//! Committed tasks that were kept aside and that no durable state names.

use super::stage::{Sent, Stage};
use super::*;

const LIMIT: Duration = Duration::from_secs(600);

/// Longer than a parked task waits for its second attempt, and shorter than the failure handler has
/// for its flush, which nobody answers here.
const RETRIED: Duration = Duration::from_secs(60);

impl Stage {
    /// The service refuses a task that was sent, and the failure handler does not take it.
    fn refuse_for_good(&mut self, record: RecordId) {
        let refused = failed(Code::InvalidArgument);
        self.script.answer(record, refused);
        let (job, _) = self.script.handled().remove(0);
        self.script.verdict(job, Ok(Verdict::Fail));
        assert_eq!(self.script.stats().kept, 1);
    }

    fn sent_alone(&mut self) -> RecordId {
        match self.sent().as_slice() {
            [(Sent::One(record), _)] => *record,
            other => panic!("{other:?}"),
        }
    }

    /// How the commits resolved that did: whether they were confirmed.
    fn resolved(&mut self) -> Vec<bool> {
        let effects = self.script.effects().into_iter();
        effects
            .filter_map(|effect| match effect {
                Effect::Committed { .. } => Some(true),
                Effect::Unconfirmed { .. } => Some(false),
                _ => None,
            })
            .collect()
    }

    fn resolve(&mut self, resolution: crate::Resolution) {
        let name = self.script.machine.kept()[0].name();
        let (machine, now) = (&mut self.script.machine, self.script.now);
        machine.resolve(now, &name, resolution).unwrap();
        machine.check_invariants();
    }

    fn commit_alone(&mut self, epoch: u64) {
        self.script.machine.commit(Epoch::new(epoch)).unwrap();
        self.script.machine.check_invariants();
    }

    /// The names of the tasks that a state of now names.
    fn named(&self) -> Vec<String> {
        let (tasks, kept) = self.script.machine.saved_tasks().unwrap();
        assert!(kept.is_empty());
        tasks.iter().map(|task| task.name()).collect()
    }

    /// Epoch 1 commits a task. Epoch 2 is sealed and names it as on its way; then it is refused and
    /// kept aside, and the save of epoch 2 takes so long that its commit is given up.
    fn given_up() -> Self {
        let mut stage = Self::new(false);
        stage.commit(1, &["refused"]);
        let record = stage.sent_alone();
        stage.script.snapshot(2).unwrap();
        stage.refuse_for_good(record);
        stage.pass(LIMIT);
        stage.script.advance(Duration::ZERO);
        assert_eq!(stage.resolved(), [false], "the commit of epoch 1");
        stage
    }
}

/// Were epoch 2 marked as settled while memory alone knows of the task, a crash would lose it.
#[test]
fn a_task_that_is_forced_before_a_durable_state_names_it_keeps_commits_unconfirmed_until_one_does()
{
    let mut stage = Stage::given_up();
    stage.resolve(crate::Resolution::Force);
    let record = stage.sent_alone();
    stage.script.answer(record, failed(Code::Unavailable));
    assert_eq!(stage.script.stats().parked, 1);
    assert!(stage.script.machine.wants_checkpoint(), "to name it");
    stage.commit_alone(2);
    assert_eq!(stage.resolved(), [false]);

    stage.script.snapshot(3).unwrap();
    assert_eq!(stage.named(), ["refused"]);
    assert_eq!(
        stage.resolved(),
        Vec::<bool>::new(),
        "sealed is not durable"
    );
    stage.commit_alone(3);
    stage.script.advance(RETRIED);
    let record = stage.sent_alone();
    stage.script.answer(record, created("refused"));
    assert_eq!(stage.resolved(), [true]);
}

#[test]
fn an_epoch_that_was_aborted_does_not_name_what_was_forced() {
    let mut stage = Stage::given_up();
    stage.resolve(crate::Resolution::Force);
    let record = stage.sent_alone();
    stage.script.snapshot(3).unwrap();
    stage.script.machine.abort(Epoch::new(3));
    assert!(stage.script.machine.wants_checkpoint(), "once more");
    stage.commit_alone(2);
    assert_eq!(stage.resolved(), [false]);
    stage.script.answer(record, created("refused"));
    stage.script.snapshot(4).unwrap();
    stage.commit_alone(4);
    assert_eq!(stage.resolved(), [true]);
}

#[test]
fn what_a_sealed_epoch_names_as_kept_aside_is_confirmed_with_it_although_it_was_forced_since() {
    let mut stage = Stage::given_up();
    stage.script.snapshot(3).unwrap();
    stage.resolve(crate::Resolution::Force);
    assert!(!stage.script.machine.wants_checkpoint());
    stage.commit_alone(2);
    assert_eq!(stage.resolved(), [false]);
    stage.commit_alone(3);
    assert_eq!(stage.resolved(), [true]);
}

#[test]
fn nothing_is_owed_for_what_the_operator_dismissed() {
    for resolution in [crate::Resolution::Discard, crate::Resolution::MarkCommitted] {
        let mut stage = Stage::given_up();
        stage.resolve(resolution);
        assert!(!stage.script.machine.wants_checkpoint());
        stage.commit_alone(2);
        assert_eq!(stage.resolved(), [true]);
    }
}

#[test]
fn a_task_that_is_forced_in_time_takes_its_verdict_along() {
    let mut stage = Stage::new(false);
    stage.commit(1, &["refused"]);
    let record = stage.sent_alone();
    stage.refuse_for_good(record);
    assert!(stage.script.machine.wants_checkpoint());
    stage.resolve(crate::Resolution::Force);
    stage.pass(LIMIT);
    stage.script.advance(Duration::ZERO);
    assert_eq!(stage.resolved(), Vec::<bool>::new(), "nothing is given up");
}
