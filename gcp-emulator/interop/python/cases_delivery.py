"""Unary pulls, acks, deadlines, redelivery and dead letters."""

import time

from google.protobuf import duration_pb2
from google.pubsub_v1 import types

CASES = []


def case(function):
    CASES.append((function.__name__.replace("_", " "), function))
    return function


def data(received):
    return [r.message.data for r in received]


@case
def pull_limits(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)

    def pull(step, count, **fields):
        request = types.PullRequest(subscription=subscription, max_messages=count, **fields)
        note.calling(
            step,
            lambda: scene.subscriber("pull", request, timeout=2),
            lambda answer: len(answer.received_messages),
        )

    pull("none waits", 1)
    pull("none at once", 1, return_immediately=True)
    pull("zero", 0)
    pull("minus one", -1)
    scene.publish(topic, [b"x"] * 250)
    pull("200 of 250", 200)
    pull("one", 1)


@case
def acks(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)
    other = scene.subscription(topic, "other")
    scene.publish(topic, [b"x"])
    [first] = scene.pull(subscription)
    [of_other] = scene.pull(other)
    note.calling("no ids", lambda: scene.acknowledge(subscription, []))
    note.calling("a malformed id", lambda: scene.acknowledge(subscription, ["nonsense"]))
    note.calling(
        "an id of another subscription", lambda: scene.acknowledge(subscription, [of_other.ack_id])
    )
    note.calling("an id", lambda: scene.acknowledge(subscription, [first.ack_id]))
    note.calling("the same id again", lambda: scene.acknowledge(subscription, [first.ack_id]))
    note.calling("no subscription", lambda: scene.acknowledge("", [first.ack_id]))
    many = [of_other.ack_id] * 3000
    note.calling("more than 512 KiB of ids", lambda: scene.acknowledge(other, many * 2))
    note("nothing is left", len(scene.pull(subscription)))


@case
def deadlines(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)
    scene.publish(topic, [b"x"])
    [first] = scene.pull(subscription)
    for number in (-1, 600, 601):
        note.calling(f"{number} s", lambda: scene.modify(subscription, [first.ack_id], number))
    note.calling("no ids", lambda: scene.modify(subscription, [], 10))
    note.calling("a malformed id", lambda: scene.modify(subscription, ["nonsense"], 10))
    note.calling("to zero", lambda: scene.modify(subscription, [first.ack_id], 0))
    [second] = scene.pull(subscription)
    note("comes again", first.message.message_id == second.message.message_id)
    note("under another ack id", first.ack_id != second.ack_id)
    note.calling(
        "the old id, extended", lambda: scene.modify(subscription, [first.ack_id], 60)
    )
    note.calling("the old id, acknowledged", lambda: scene.acknowledge(subscription, [first.ack_id]))
    scene.modify(subscription, [second.ack_id], 0)
    note("still there after it", len(scene.pull(subscription)))


@case
def expiry(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic, ack_deadline_seconds=10)
    scene.publish(topic, [b"x"])
    [first] = scene.pull(subscription)
    begun = time.monotonic()
    [second] = scene.pull(subscription, seconds=20)
    took = time.monotonic() - begun
    note("comes again after its deadline", 9.5 < took < 11.5)
    note("under another ack id", first.ack_id != second.ack_id)
    scene.modify(subscription, [second.ack_id], 1)
    begun = time.monotonic()
    [third] = scene.pull(subscription, seconds=20)
    note("a shorter deadline holds", 0.5 < time.monotonic() - begun < 2.5)
    scene.acknowledge(subscription, [third.ack_id])
    note("acknowledged", len(scene.pull(subscription, seconds=12)))


@case
def expired_ack(scene, note):
    """An ack after the deadline and before the redelivery."""
    topic = scene.topic()
    subscription = scene.subscription(topic)
    scene.publish(topic, [b"x"])
    [first] = scene.pull(subscription)
    scene.modify(subscription, [first.ack_id], 1)
    time.sleep(2)
    note.calling("answer", lambda: scene.acknowledge(subscription, [first.ack_id]))
    note("deliveries afterwards", len(scene.pull(subscription)))


@case
def exactly_once(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic, enable_exactly_once_delivery=True)
    scene.publish(topic, [b"a"])
    [first] = scene.pull(subscription)
    note.calling("ack", lambda: scene.acknowledge(subscription, [first.ack_id]))
    note.calling("ack again", lambda: scene.acknowledge(subscription, [first.ack_id]))
    note.calling("extend afterwards", lambda: scene.modify(subscription, [first.ack_id], 20))
    scene.publish(topic, [b"b", b"c"])
    received = scene.pull_all(subscription, 2)
    lost, kept = received
    scene.modify(subscription, [lost.ack_id], 0)
    [again] = scene.pull(subscription)
    note.calling(
        "ack of a mixture",
        lambda: scene.acknowledge(subscription, [lost.ack_id, kept.ack_id]),
    )
    note.calling("the good one of it again", lambda: scene.acknowledge(subscription, [kept.ack_id]))
    note.calling("a malformed id", lambda: scene.acknowledge(subscription, ["nonsense"]))
    scene.acknowledge(subscription, [again.ack_id])
    scene.publish(topic, [b"d"])
    [late] = scene.pull(subscription)
    scene.modify(subscription, [late.ack_id], 1)
    time.sleep(2)
    note.calling(
        "ack after the deadline, before redelivery",
        lambda: scene.acknowledge(subscription, [late.ack_id]),
    )


@case
def dead_letters(scene, note):
    graveyard = scene.topic("graveyard")
    buried = scene.subscription(graveyard, "buried")
    topic = scene.topic()
    policy = types.DeadLetterPolicy(dead_letter_topic=graveyard, max_delivery_attempts=5)
    subscription = scene.subscription(topic, dead_letter_policy=policy)
    [identity] = scene.publish(topic, [b"x"], attributes={"a": "b"}, ordering_key="key")
    attempts = []
    while received := scene.pull(subscription):
        attempts.append(received[0].delivery_attempt)
        scene.modify(subscription, [received[0].ack_id], 0)
    note("attempts", attempts)
    [letter] = scene.pull(buried)
    attributes = dict(letter.message.attributes)
    time_kept = attributes.pop("CloudPubSubDeadLetterSourceTopicPublishTime", None)
    note("letter", (letter.message.data, letter.message.ordering_key, sorted(attributes.items())))
    note("publish time kept", time_kept is not None)
    note("a new id", letter.message.message_id != identity)


@case
def dead_letters_ordered(scene, note):
    graveyard = scene.topic("graveyard")
    buried = scene.subscription(graveyard, "buried")
    topic = scene.topic()
    policy = types.DeadLetterPolicy(dead_letter_topic=graveyard, max_delivery_attempts=5)
    subscription = scene.subscription(
        topic, dead_letter_policy=policy, enable_message_ordering=True
    )
    scene.publish(topic, [b"poison"], ordering_key="key")
    attempts = []
    while received := scene.pull(subscription):
        attempts.append(received[0].delivery_attempt)
        scene.modify(subscription, [received[0].ack_id], 0)
    note("attempts", attempts)
    note("letters", data(scene.pull(buried)))
    scene.publish(topic, [b"next"], ordering_key="key")
    note("the key goes on", data(scene.pull(subscription)))


@case
def retry_policy(scene, note):
    topic = scene.topic()
    policy = types.RetryPolicy(
        minimum_backoff=duration_pb2.Duration(seconds=3),
        maximum_backoff=duration_pb2.Duration(seconds=10),
    )
    subscription = scene.subscription(topic, retry_policy=policy)
    scene.publish(topic, [b"x"])
    for attempt in ("first", "second"):
        [received] = scene.pull(subscription, seconds=20)
        scene.modify(subscription, [received.ack_id], 0)
        begun = time.monotonic()
        again = scene.pull(subscription, seconds=20)
        waited = time.monotonic() - begun
        note(f"{attempt} wait is at least the minimum", waited > 2.8)
        scene.modify(subscription, [again[0].ack_id], 0)


@case
def filters(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic, filter='attributes.a = "b"')
    scene.publish(topic, [b"yes"], attributes={"a": "b"})
    scene.publish(topic, [b"no"], attributes={"a": "c"})
    note("delivered", sorted(data(scene.pull_all(subscription, 2))))


@case
def ordered_pull(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic, enable_message_ordering=True)
    scene.publish(topic, [b"0", b"1", b"2"], ordering_key="key")
    first = scene.pull(subscription, count=1)
    note("first", data(first))
    note("nothing more while it is out", data(scene.pull(subscription)))
    scene.acknowledge(subscription, [r.ack_id for r in first])
    rest = scene.pull_all(subscription, 2)
    note("then the rest", data(rest))
    scene.acknowledge(subscription, [r.ack_id for r in rest])
    note("and no more", data(scene.pull(subscription)))
