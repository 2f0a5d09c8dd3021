//! What extensions of leases do, and what nobody extends.

use super::*;
use crate::delivery::{DeliveryId, Disposition};

/// Message 1 is out, and its lease is being extended.
fn extending() -> (Bench, Sent) {
    let mut bench = Bench::new(settings());
    bench.deliver("", &[(1, "a1")]);
    assert_eq!(bench.read(), [1]);
    let due = bench.machine.leases.next_due().unwrap();
    bench.wait(due - bench.now);
    let extension = bench.sent.remove(0);
    assert_eq!(extension.method, CallMethod::ModifyAckDeadline);
    (bench, extension)
}

#[test]
fn an_extension_of_what_is_given_back_meanwhile_prolongs_no_lease() {
    let (mut bench, extension) = extending();
    let ends = bench.machine.leases.ends(0);
    let delivery = DeliveryId::new(0, 0);
    bench.machine.settle(delivery, Disposition::Nack).unwrap();
    bench.work();
    bench.answer(&extension, Answer::Done);
    assert_eq!(bench.machine.leases.ends(0), ends);
    assert_eq!(bench.machine.stats(bench.now).extended, 0);

    let (mut bench, extension) = extending();
    let ends = bench.machine.leases.ends(0);
    bench.answer(&extension, Answer::Done);
    assert!(bench.machine.leases.ends(0) > ends);
    assert_eq!(bench.machine.stats(bench.now).extended, 1);
}

/// With exactly-once delivery.
#[test]
fn a_lease_that_is_confirmed_at_its_end_lets_nothing_out() {
    for (early, read) in [(Duration::ZERO, &[][..]), (SECOND, &[1][..])] {
        let mut bench = Bench::new(settings());
        bench.exactly_once = true;
        bench.deliver("", &[(1, "a1")]);
        let extension = bench.sent.remove(0);
        let length = Duration::from_secs(u64::try_from(extension.seconds).unwrap());
        bench.now += length - early;
        bench.answer(&extension, Answer::Done);
        assert_eq!(bench.read(), read, "{early:?} before its end");
    }
}
