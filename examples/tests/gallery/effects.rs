//! Effects in a database.

use connector_core::{Checkpoint, Epoch};
use examples::exactly_once_effects::{self, Books, Effect};
use examples::shop::{SUBSCRIPTION, Shop};
use futures::StreamExt;
use pubsub_source::PubsubSource;

use super::of;

#[tokio::test]
async fn effects_are_applied_once_though_no_acknowledgement_arrived_before_the_crash() {
    let figures = exactly_once_effects::run().await.unwrap();
    assert_eq!(
        of(&figures, ["applied", "not acknowledged"]),
        [600, 0],
        "{figures}"
    );
    let [sold, booked] = of(&figures, ["cents sold", "cents in the books"]);
    assert_eq!(sold, booked, "{figures}");
    let [before, deliveries] = of(&figures, ["applied before the crash", "deliveries"]);
    assert!(before > 0, "{figures}");
    assert!(
        deliveries >= 600 + before,
        "what was applied came again: {figures}"
    );
}

#[tokio::test]
async fn the_key_catches_what_the_source_forgot_and_an_owner_that_was_replaced_saves_nothing() {
    let (shop, place) = (Shop::open().unwrap(), tempfile::tempdir().unwrap());
    shop.sell(0..1).unwrap();
    let source = PubsubSource::builder(SUBSCRIPTION.parse().unwrap());
    let mut source = source.endpoint(shop.endpoint()).build().unwrap();
    let effect = Effect::of(&source.next().await.unwrap().unwrap()).unwrap();
    let state = source.snapshot(Epoch::new(1)).await.unwrap();
    let effects = [effect];

    let path = place.path().join("books.sqlite");
    let mut books = Books::open(&path).unwrap();
    assert_eq!(books.save(Epoch::new(1), &state, &effects).unwrap(), 1);
    assert_eq!(books.save(Epoch::new(2), &state, &effects).unwrap(), 0);
    let (applied, cents) = books.totals().unwrap();
    assert_eq!((applied, cents), (1, effects[0].cents));

    let successor = Books::open(&path).unwrap();
    assert!(books.save(Epoch::new(3), &state, &effects).is_err());
    assert_eq!(successor.newest().unwrap().unwrap().epoch, Epoch::new(2));
}
