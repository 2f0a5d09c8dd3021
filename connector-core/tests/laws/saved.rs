//! The envelope around a state keeps it, in any format, for ever.

use bytes::Bytes;
use connector_core::{
    Checkpoint, Committed, Epoch, Erased, Receipt, Restored, SavedState, SavedStates, StateError,
    Versioned, serde_through_envelope,
};
use proptest::prelude::*;

/// A state in two versions: the second one may hold nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ids {
    instance: String,
    ids: Vec<u8>,
}

impl Versioned for Ids {
    const CONNECTOR: &'static str = "law-source";
    const VERSION: u32 = 1;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        let count = u8::try_from(self.ids.len()).expect("the tests hold few ids");
        std::iter::once(count)
            .chain(self.ids.iter().copied())
            .collect()
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        if version != Self::VERSION {
            return Err(StateError::UnknownVersion {
                connector: Self::CONNECTOR,
                found: version,
                newest: Self::VERSION,
            });
        }
        match body.split_first() {
            Some((count, ids)) if usize::from(*count) == ids.len() => Ok(Self {
                instance: instance.to_owned(),
                ids: ids.to_vec(),
            }),
            _ => Err(StateError::Damaged {
                connector: Self::CONNECTOR,
                version,
                problem: "the count of ids does not match them",
            }),
        }
    }
}

serde_through_envelope!(Ids);

#[derive(Debug)]
struct Other;

impl Versioned for Other {
    const CONNECTOR: &'static str = "law-sink";
    const VERSION: u32 = 3;

    fn instance(&self) -> &'static str {
        ""
    }

    fn encode_body(&self) -> Bytes {
        Bytes::new()
    }

    fn decode_body(_: u32, _: &str, _: Bytes) -> Result<Self, StateError> {
        Ok(Self)
    }
}

fn golden() -> Ids {
    Ids {
        instance: "orders".to_owned(),
        ids: vec![1, 2, 250],
    }
}

#[test]
fn the_first_released_envelope_decodes_for_ever() {
    let json = include_bytes!("../data/saved-state-v1.json");
    let postcard = include_bytes!("../data/saved-state-v1.postcard");
    assert_eq!(serde_json::from_slice::<Ids>(json).unwrap(), golden());
    assert_eq!(postcard::from_bytes::<Ids>(postcard).unwrap(), golden());
    assert_eq!(serde_json::to_vec(&golden()).unwrap(), json);
    assert_eq!(postcard::to_stdvec(&golden()).unwrap(), postcard);
}

fn named(instance: &str) -> SavedState {
    SavedState::of(&Ids {
        instance: instance.to_owned(),
        ids: vec![7],
    })
}

#[test]
fn two_connectors_of_one_name_are_refused_before_a_checkpoint_is_saved() {
    let mut states = SavedStates::new();
    states.add(named("orders")).unwrap();
    states.add(named("returns")).unwrap();
    // Another kind may have the same name.
    let mut json = serde_json::to_value(named("orders")).unwrap();
    json["connector"] = "law-sink".into();
    states.add(serde_json::from_value(json).unwrap()).unwrap();
    let error = states.add(named("orders")).unwrap_err();
    assert!(
        matches!(&error, StateError::SameName { connector, instance }
            if connector == "law-source" && instance == "orders"),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains("nothing of this checkpoint was saved"),
        "{text}"
    );
    assert_eq!(states.len(), 3, "the first one stays");
}

#[test]
fn a_checkpoint_with_two_states_of_one_name_is_not_read() {
    let twice = serde_json::to_string(&[named("orders"), named("orders")]).unwrap();
    let error = serde_json::from_str::<SavedStates>(&twice).unwrap_err();
    assert!(error.to_string().contains("law-source"), "{error}");
    let bytes = postcard::to_stdvec(&[named("orders"), named("orders")]).unwrap();
    // A sequence of unknown length, as a list is written.
    let bytes = [&[2], &bytes[..]].concat();
    assert!(postcard::from_bytes::<SavedStates>(&bytes).is_err());
}

#[test]
fn a_state_is_taken_once_by_its_kind_and_name_with_the_marks_of_its_checkpoint() {
    let mut states = SavedStates::new();
    states.add(SavedState::of(&golden())).unwrap();
    let restored = Restored::new(Epoch::new(7), states);
    let mut restored = restored.settled(true).committing(false);
    assert!(restored.take::<Other>("orders").unwrap().is_none());
    assert!(restored.take::<Ids>("returns").unwrap().is_none());
    let ids = restored.take::<Ids>("orders").unwrap().unwrap();
    assert_eq!(ids.state, golden());
    assert_eq!(
        (ids.epoch, ids.settled, ids.committing),
        (Epoch::new(7), true, false)
    );
    assert!(restored.take::<Ids>("orders").unwrap().is_none());
    assert!(restored.state.finish().is_ok());
}

#[test]
fn a_state_that_nobody_takes_is_named() {
    let mut states = SavedStates::new();
    states.add(named("orders")).unwrap();
    states.add(named("returns")).unwrap();
    assert_eq!(states.take::<Ids>("orders").unwrap().unwrap().ids, [7]);
    let text = states.finish().unwrap_err().to_string();
    assert!(text.contains("law-source \"returns\""), "{text}");
}

proptest! {
    #[test]
    fn states_that_are_saved_as_one_come_back_in_any_format(
        names in prop::collection::btree_set("[a-z]{0,3}", 0..6),
    ) {
        let mut states = SavedStates::new();
        for name in names.iter().rev() {
            states.add(named(name)).unwrap();
        }
        prop_assert_eq!(states.len(), names.len());
        prop_assert_eq!(states.is_empty(), names.is_empty());
        let json = serde_json::to_vec(&states).unwrap();
        prop_assert_eq!(&serde_json::from_slice::<SavedStates>(&json).unwrap(), &states);
        let postcard = postcard::to_stdvec(&states).unwrap();
        let mut back: SavedStates = postcard::from_bytes(&postcard).unwrap();
        prop_assert_eq!(&back, &states);
        for name in &names {
            prop_assert_eq!(&back.take::<Ids>(name).unwrap().unwrap().instance, name);
        }
        prop_assert_eq!(back.finish(), Ok(()));
    }

    #[test]
    fn an_envelope_comes_back_out_of_any_format(
        instance in ".{0,20}",
        ids in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let state = Ids { instance, ids };
        let json = serde_json::to_vec(&state).unwrap();
        prop_assert_eq!(&serde_json::from_slice::<Ids>(&json).unwrap(), &state);
        let postcard = postcard::to_stdvec(&state).unwrap();
        prop_assert_eq!(&postcard::from_bytes::<Ids>(&postcard).unwrap(), &state);
        let saved = SavedState::of(&state);
        prop_assert_eq!(saved.connector(), "law-source");
        prop_assert_eq!(saved.instance(), state.instance());
        prop_assert_eq!(saved.version(), 1);
        prop_assert_eq!(saved.body(), &state.encode_body());
        prop_assert_eq!(saved.open::<Ids>().unwrap(), state);
    }

    #[test]
    fn bytes_that_are_no_envelope_are_an_error(bytes in any::<Vec<u8>>()) {
        // Reading must not panic; what it makes of random bytes is an error or a valid state.
        if let Ok(state) = postcard::from_bytes::<Ids>(&bytes) {
            prop_assert_eq!(postcard::from_bytes::<Ids>(&postcard::to_stdvec(&state).unwrap()).unwrap(), state);
        }
    }
}

#[test]
fn a_state_of_another_connector_is_refused_with_both_names() {
    let error = SavedState::of(&golden()).open::<Other>().unwrap_err();
    assert_eq!(
        error,
        StateError::OtherConnector {
            found: "law-source".to_owned(),
            expected: "law-sink",
        }
    );
    let text = error.to_string();
    assert!(
        text.contains("law-source") && text.contains("law-sink"),
        "{text}"
    );
    assert!(
        text.contains("nothing was restored or acknowledged"),
        "{text}"
    );
}

#[test]
fn a_state_of_another_instance_names_both() {
    let text = StateError::OtherInstance {
        connector: "law-source",
        found: "orders".to_owned(),
        expected: "returns".to_owned(),
    }
    .to_string();
    assert!(
        text.contains("orders") && text.contains("returns"),
        "{text}"
    );
}

#[test]
fn a_newer_version_is_refused_with_both_numbers() {
    let json = String::from_utf8(serde_json::to_vec(&golden()).unwrap()).unwrap();
    let newer = json.replace("\"version\":1", "\"version\":7");
    let text = serde_json::from_str::<Ids>(&newer).unwrap_err().to_string();
    assert!(
        text.contains("version 7") && text.contains("up to 1"),
        "{text}"
    );
}

#[test]
fn a_damaged_body_is_refused_and_says_what_restoring_nothing_would_mean() {
    let json = String::from_utf8(serde_json::to_vec(&golden()).unwrap()).unwrap();
    let damaged = json.replace("[3,", "[9,");
    let text = serde_json::from_str::<Ids>(&damaged)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("damaged") && text.contains("deliver again"),
        "{text}"
    );
}

#[test]
fn a_log_shows_the_size_of_a_state_and_not_its_bytes() {
    let text = format!("{:?}", SavedState::of(&golden()));
    assert!(
        text.contains("body_bytes: 4") && !text.contains("250"),
        "{text}"
    );
}

struct Source(Option<Epoch>);

impl Checkpoint for Source {
    type State = Ids;

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<Ids> {
        self.0 = Some(epoch);
        Receipt::ready(golden())
    }

    fn commit(&mut self, _: Epoch) -> Receipt<Committed> {
        Receipt::ready(Committed::default())
    }

    fn abort(&mut self, _: Epoch) {
        self.0 = None;
    }
}

#[test]
fn connectors_of_several_kinds_stand_in_one_list() {
    let mut connectors: Vec<Box<dyn Checkpoint<State = SavedState>>> = vec![
        Box::new(Erased::new(Source(None))),
        Box::new(Erased::new(Source(None))),
    ];
    for connector in &mut connectors {
        // Through `&mut`, `Box` and `Erased`: each forwards every call.
        let mut connector = connector;
        let mut receipt = Checkpoint::snapshot(&mut connector, Epoch::new(1));
        let saved = receipt.try_now().unwrap().unwrap();
        assert_eq!(saved.open::<Ids>().unwrap(), golden());
        let mut receipt = Checkpoint::commit(&mut connector, Epoch::new(1));
        assert!(matches!(receipt.try_now(), Some(Ok(_))));
        Checkpoint::abort(&mut connector, Epoch::new(1));
    }
    let mut erased = Erased::new(Source(None));
    drop(erased.snapshot(Epoch::new(3)));
    assert_eq!(erased.get_mut().0, Some(Epoch::new(3)));
    erased.abort(Epoch::new(3));
    assert_eq!(erased.into_inner().0, None);
}

#[test]
fn a_restored_structure_is_taken_apart_and_keeps_its_epoch_and_mark() {
    let restored = Restored::new(Epoch::new(7), (golden(), 5)).settled(true);
    let ids = restored.clone().map(|(ids, _)| ids);
    assert_eq!((ids.epoch, ids.settled), (Epoch::new(7), true));
    let saved = restored.map(|(ids, _)| SavedState::of(&ids));
    assert_eq!(saved.clone().try_map(SavedState::open::<Ids>).unwrap(), ids);
    assert!(saved.try_map(SavedState::open::<Other>).is_err());
    let (left, right) = Restored::new(Epoch::new(7), (1, 2)).settled(true).unzip();
    assert_eq!(
        (left.state, left.epoch, left.settled),
        (1, Epoch::new(7), true)
    );
    assert_eq!(
        (right.state, right.epoch, right.settled),
        (2, Epoch::new(7), true)
    );
}

#[test]
fn a_commit_may_have_been_called_unless_the_host_knows_that_none_was() {
    let plain = Restored::new(Epoch::new(7), (1, 2));
    assert!(plain.committing);
    let known = plain.committing(false).map(|(left, right)| (right, left));
    let known = known.try_map(Ok::<_, StateError>).unwrap();
    let (left, right) = known.unzip();
    assert!(!left.committing && !right.committing);
    // Kept by a host before there was such a mark.
    let old: Restored<u8> =
        serde_json::from_str(r#"{"epoch": 7, "state": 1, "settled": false}"#).unwrap();
    assert!(old.committing);
}
