//! Two owners at once: each call is interrupted before every one of its steps by a whole call of
//! the other, as a process that is stopped there and woken later would be.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use connector_core::{Epoch, Restored};

use super::{
    claim::{Mode, claim},
    scripted_disk::ScriptedDisk,
    tenure::Tenure,
};
use crate::{Progress, StoreError};

type Seen = Option<Restored<Bytes>>;

fn state(epoch: u64) -> Bytes {
    Bytes::from(format!("state {epoch}"))
}

fn save(tenure: &mut Tenure, epoch: u64) -> Result<(), StoreError> {
    tenure.save(Epoch::new(epoch), &state(epoch))
}

fn take_over(directory: &Path) -> Tenure {
    claim(ScriptedDisk::new(directory).handle(), Mode::TakeOver, 0).unwrap()
}

fn take_over_and_look(directory: &Path) -> Seen {
    take_over(directory).newest().unwrap()
}

fn epoch_of(seen: &Seen) -> u64 {
    seen.as_ref().map_or(0, |seen| seen.epoch.get())
}

/// A call of the first owner, interrupted at every step.
///
/// `call` makes it; `interrupting` is what the second owner does meanwhile.
fn interrupt_everywhere<T: Send + 'static>(
    call: impl Fn(&mut Tenure) -> Result<(), StoreError>,
    interrupting: impl Fn(&Path) -> T + Clone + Send + Sync + 'static,
    check: impl Fn(usize, Result<(), StoreError>, T, &Path),
) {
    for at in 0.. {
        let place = tempfile::tempdir().unwrap();
        let disk = ScriptedDisk::new(place.path());
        let mut first = claim(disk.handle(), Mode::Open, 0).unwrap();
        save(&mut first, 7).unwrap();
        let outcome = Arc::new(Mutex::new(None));
        let (keep, path) = (Arc::clone(&outcome), place.path().to_owned());
        let interrupting = interrupting.clone();
        disk.interrupt(at, move || {
            *keep.lock().unwrap() = Some(interrupting(&path))
        });
        let answer = call(&mut first);
        let Some(outcome) = outcome.lock().unwrap().take() else {
            assert!(at > 4, "the call has its steps");
            return;
        };
        assert!(
            save(&mut first, 20).unwrap_err().is_not_owner(),
            "step {at}"
        );
        assert!(first.newest().unwrap_err().is_not_owner(), "step {at}");
        check(at, answer, outcome, place.path());
    }
}

#[test]
fn a_save_that_meets_a_successor_is_seen_by_it_or_fails_and_is_never_seen_later() {
    interrupt_everywhere(
        |first| save(first, 8),
        take_over_and_look,
        |at, answer, seen, directory| {
            match answer {
                Ok(()) => assert_eq!(epoch_of(&seen), 8, "step {at}"),
                Err(error) => assert!(error.is_not_owner(), "step {at}: {error}"),
            }
            assert!([7, 8].contains(&epoch_of(&seen)), "step {at}");
            assert_eq!(take_over_and_look(directory), seen, "step {at}");
        },
    );
}

#[test]
fn a_save_that_meets_a_successor_which_saves_does_not_disturb_it() {
    interrupt_everywhere(
        |first| save(first, 9),
        |directory| {
            let mut second = take_over(directory);
            // The first owner may have been just done.
            let epoch = epoch_of(&second.newest().unwrap()) + 1;
            save(&mut second, epoch).unwrap();
            (second, epoch)
        },
        |at, _, (mut second, epoch), directory| {
            assert_eq!(epoch_of(&second.newest().unwrap()), epoch, "step {at}");
            second.mark(Epoch::new(epoch), Progress::Settled).unwrap();
            save(&mut second, epoch + 1).unwrap();
            drop(second);
            assert_eq!(
                epoch_of(&take_over_and_look(directory)),
                epoch + 1,
                "step {at}"
            );
        },
    );
}

#[test]
fn a_mark_that_meets_a_successor_is_seen_by_it_or_fails_and_is_never_seen_later() {
    interrupt_everywhere(
        |first| first.mark(Epoch::new(7), Progress::Settled),
        take_over_and_look,
        |at, answer, seen, directory| {
            let settled = seen.as_ref().unwrap().settled;
            match answer {
                Ok(()) => assert!(settled, "step {at}"),
                Err(error) => assert!(error.is_not_owner(), "step {at}: {error}"),
            }
            assert_eq!(take_over_and_look(directory), seen, "step {at}");
        },
    );
}

/// A successor's claim, interrupted at every step by the first owner.
fn interrupt_a_claim_everywhere(
    call: impl Fn(&mut Tenure) -> Result<(), StoreError> + Clone + Send + 'static,
    check: impl Fn(usize, Result<(), StoreError>, &Seen),
) {
    for at in 0.. {
        let place = tempfile::tempdir().unwrap();
        let mut first = claim(ScriptedDisk::new(place.path()).handle(), Mode::Open, 0).unwrap();
        save(&mut first, 7).unwrap();
        let first = Arc::new(Mutex::new(first));
        let answer = Arc::new(Mutex::new(None));
        let disk = ScriptedDisk::new(place.path());
        let (keep, caller, call) = (Arc::clone(&answer), Arc::clone(&first), call.clone());
        disk.interrupt(at, move || {
            *keep.lock().unwrap() = Some(call(&mut caller.lock().unwrap()));
        });
        let mut second = claim(disk.handle(), Mode::TakeOver, 0).unwrap();
        let Some(answer) = answer.lock().unwrap().take() else {
            assert!(at > 12, "a claim has its steps");
            return;
        };
        disk.heal();
        let seen = second.newest().unwrap();
        check(at, answer, &seen);
        let mut first = first.lock().unwrap();
        assert!(
            save(&mut first, 20).unwrap_err().is_not_owner(),
            "step {at}"
        );
        drop(second);
        assert_eq!(take_over_and_look(place.path()), seen, "step {at}");
    }
}

#[test]
fn a_successor_that_meets_a_save_sees_it_or_makes_it_fail() {
    interrupt_a_claim_everywhere(
        |first| save(first, 8),
        |at, answer, seen| match answer {
            Ok(()) => assert_eq!(epoch_of(seen), 8, "step {at}"),
            Err(error) => {
                assert!(error.is_not_owner(), "step {at}: {error}");
                assert_eq!(epoch_of(seen), 7, "step {at}");
            }
        },
    );
}

#[test]
fn a_successor_that_meets_a_mark_sees_it_or_makes_it_fail() {
    interrupt_a_claim_everywhere(
        |first| first.mark(Epoch::new(7), Progress::Settled),
        |at, answer, seen| {
            let settled = seen.as_ref().unwrap().settled;
            assert_eq!(settled, answer.is_ok(), "step {at}");
        },
    );
}

#[test]
fn of_two_claims_at_once_exactly_one_succeeds() {
    for mode in [Mode::Open, Mode::TakeOver] {
        let mut replaced_at_once = 0;
        for at in 0.. {
            let place = tempfile::tempdir().unwrap();
            let mut before = take_over(place.path());
            save(&mut before, 7).unwrap();
            drop(before);
            let other = Arc::new(Mutex::new(None));
            let (keep, path) = (Arc::clone(&other), place.path().to_owned());
            let disk = ScriptedDisk::new(place.path());
            disk.interrupt(at, move || {
                let claimed = claim(ScriptedDisk::new(&path).handle(), mode, 0);
                *keep.lock().unwrap() = Some(claimed);
            });
            let one = claim(disk.handle(), mode, 0);
            let Some(other) = other.lock().unwrap().take() else {
                assert!(at > 12, "a claim has its steps");
                break;
            };
            disk.heal();
            let mut owners = 0;
            for (tenure, interrupted) in [(one, true), (other, false)] {
                match tenure {
                    Ok(mut tenure) => match save(&mut tenure, 8) {
                        Ok(()) => owners += 1,
                        Err(error) => {
                            assert!(error.is_not_owner(), "step {at}: {error}");
                            assert_eq!(mode, Mode::TakeOver, "step {at}");
                            replaced_at_once += u32::from(interrupted);
                        }
                    },
                    Err(StoreError::InUse { .. }) if mode == Mode::Open => {}
                    Err(StoreError::NotOwner { .. }) if mode == Mode::TakeOver => {}
                    Err(error) => panic!("step {at}, {mode:?}: {error}"),
                }
            }
            assert_eq!(owners, 1, "step {at}, {mode:?}");
            assert_eq!(epoch_of(&take_over_and_look(place.path())), 8, "step {at}");
        }
        // Only while it clears its predecessor's record away is a claim made and can be replaced.
        assert!(replaced_at_once <= 1, "{mode:?}");
    }
}
