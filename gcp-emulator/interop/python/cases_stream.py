"""Streaming pulls: what a request may say, and what comes when."""

import time

from google.pubsub_v1 import types

CASES = []


def case(function):
    CASES.append((function.__name__.replace("_", " "), function))
    return function


def first(subscription, deadline=10, **fields):
    return types.StreamingPullRequest(
        subscription=subscription, stream_ack_deadline_seconds=deadline, **fields
    )


def data(messages):
    return [message.message.data for _, message in messages]


@case
def stream_requests(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)

    def opened(step, request):
        stream = scene.stream(request)
        note.ending(step, stream, 1.5)
        stream.cancel()

    opened("no subscription", first(""))
    opened("a bad name", first("nonsense"))
    opened("a missing subscription", first(subscription + "-missing"))
    for deadline in (0, 9, 10, 600, 601):
        opened(f"a deadline of {deadline} s", first(subscription, deadline))
    opened("ack ids of nothing", first(subscription, ack_ids=["nonsense"]))
    opened(
        "lists of unequal length",
        first(subscription, modify_deadline_ack_ids=["a"], modify_deadline_seconds=[1, 2]),
    )
    opened("negative limits", first(subscription, max_outstanding_messages=-1))

    def later(step, **fields):
        stream = scene.stream(first(subscription))
        stream.send(**fields)
        note.ending(step, stream, 1.5)
        stream.cancel()

    later("later: nothing")
    later("later: the subscription", subscription=subscription)
    later("later: a client id", client_id="x")
    later("later: limits", max_outstanding_messages=5)
    later("later: another deadline", stream_ack_deadline_seconds=20)
    later("later: a deadline of 5 s", stream_ack_deadline_seconds=5)
    later("later: a malformed ack id", ack_ids=["nonsense"])
    later(
        "later: lists of unequal length", modify_deadline_ack_ids=["a"], modify_deadline_seconds=[]
    )


@case
def stream_deadlines(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic, ack_deadline_seconds=60)
    scene.publish(topic, [b"x"])
    stream = scene.stream(first(subscription, 10))
    messages = stream.wait(2, seconds=15)
    note("the stream's deadline counts", 9.5 < messages[1][0] - messages[0][0] < 11.5)
    note("another ack id", messages[0][1].ack_id != messages[1][1].ack_id)
    stream.send(modify_deadline_ack_ids=[messages[1][1].ack_id], modify_deadline_seconds=[1])
    sent = time.monotonic()
    messages = stream.wait(3, seconds=5)
    note("a shorter one by the stream", 0.5 < messages[2][0] - sent < 2.5)
    stream.send(modify_deadline_ack_ids=[messages[2][1].ack_id], modify_deadline_seconds=[0])
    sent = time.monotonic()
    messages = stream.wait(4, seconds=5)
    note("a nack by the stream", messages[3][0] - sent < 1)
    stream.send(ack_ids=[messages[3][1].ack_id])
    note("an ack by the stream", len(stream.wait(5, seconds=12)))
    stream.cancel()
    for seconds in (-1, 601):
        scene.publish(topic, [b"y"])
        fresh = scene.stream(first(subscription, 10))
        [(_, message), *_] = fresh.wait(1)
        fresh.send(
            modify_deadline_ack_ids=[message.ack_id], modify_deadline_seconds=[seconds]
        )
        note.ending(f"a deadline of {seconds} s", fresh, 1.5)
        fresh.cancel()


@case
def stream_ends(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)
    stream = scene.stream(first(subscription))
    scene.publish(topic, [b"x"])
    [(_, message)] = stream.wait(1)
    stream.send(ack_ids=[message.ack_id])
    stream.half_close()
    note.ending("half-closed", stream, 3)
    stream = scene.stream(first(subscription))
    scene.publish(topic, [b"y"])
    stream.wait(1)
    stream.cancel()
    other = scene.stream(first(subscription))
    begun = time.monotonic()
    again = other.wait(1, seconds=15)
    note("after a cancel its messages come", len(again))
    note("at their deadline", 8 < time.monotonic() - begun < 12)
    other.send(ack_ids=[again[0][1].ack_id])
    delete = types.DeleteSubscriptionRequest(subscription=subscription)
    scene.subscriber("delete_subscription", delete)
    # Google's emulator says it now in one text, now in another.
    note("subscription deleted", other.end().code().name)


@case
def stream_properties(scene, note):
    topic = scene.topic()
    for what, settings in {
        "plain": {},
        "ordered": {"enable_message_ordering": True},
        "exactly once": {"enable_exactly_once_delivery": True},
    }.items():
        subscription = scene.subscription(topic, what.replace(" ", "-"), **settings)
        stream = scene.stream(first(subscription))
        scene.publish(topic, [b"x"])
        stream.wait(1)
        _, response = stream.responses[-1]
        properties = response.subscription_properties
        note(
            what,
            (properties.message_ordering_enabled, properties.exactly_once_delivery_enabled),
        )
        stream.cancel()


@case
def stream_limits(scene, note):
    topic = scene.topic()
    for what, limits in {
        "five messages": {"max_outstanding_messages": 5},
        "2500 bytes": {"max_outstanding_bytes": 2500},
    }.items():
        subscription = scene.subscription(topic, what.replace(" ", "-"))
        scene.publish(topic, [b"x" * 1000] * 20)
        stream = scene.stream(first(subscription, 60, **limits))
        stream.wait(20, seconds=2)
        time.sleep(1)
        note(f"{what}: sent without an ack", len(stream.messages()))
        acked = 0
        for _ in range(20):
            messages = stream.messages()
            ack_ids = [message.ack_id for _, message in messages[acked:]]
            if not ack_ids:
                break
            acked += len(ack_ids)
            stream.send(ack_ids=ack_ids)
            stream.wait(acked + 1, seconds=1)
        note(f"{what}: sent with acks", len(stream.messages()))
        stream.cancel()


@case
def stream_confirmations(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic, enable_exactly_once_delivery=True)
    scene.publish(topic, [b"x"])
    stream = scene.stream(first(subscription, 60, protocol_version=1))
    [(_, message)] = stream.wait(1)
    stream.send(modify_deadline_ack_ids=[message.ack_id], modify_deadline_seconds=[30])
    stream.send(ack_ids=[message.ack_id])
    stream.send(ack_ids=[message.ack_id])
    time.sleep(1.5)
    responses = [response for _, response in stream.responses]

    def confirmed(field, kind):
        return sum(len(getattr(getattr(r, field), kind)) for r in responses)

    note("acks confirmed", confirmed("acknowledge_confirmation", "ack_ids"))
    note("acks refused", confirmed("acknowledge_confirmation", "invalid_ack_ids"))
    note(
        "extensions confirmed", confirmed("modify_ack_deadline_confirmation", "ack_ids")
    )
    stream.cancel()


@case
def stream_keepalive(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)
    stream = scene.stream(first(subscription, protocol_version=1))
    for _ in range(3):
        time.sleep(0.5)
        stream.send()
    time.sleep(1)
    note("an empty request is answered", bool(stream.responses))
    note.ending("the stream", stream, 0.1)
    stream.cancel()


@case
def stream_order(scene, note):
    topic = scene.topic()
    numbers = [str(number).encode() for number in range(5)]

    expiring = scene.subscription(topic, "expiring", enable_message_ordering=True)
    nacking = scene.subscription(topic, "nacking", enable_message_ordering=True)
    scene.publish(topic, numbers, ordering_key="key")

    stream = scene.stream(first(expiring, 60))
    messages = stream.wait(5)
    note("in order", data(messages))
    ids = [message.ack_id for _, message in messages]
    stream.send(ack_ids=ids[1:3])
    stream.send(modify_deadline_ack_ids=ids[:1], modify_deadline_seconds=[1])
    stream.wait(10, seconds=5)
    time.sleep(0.5)
    note("again after the first one's deadline, two acknowledged", data(stream.messages()[5:]))
    stream.cancel()

    stream = scene.stream(first(nacking, 60))
    messages = stream.wait(5)
    ids = [message.ack_id for _, message in messages]
    stream.send(modify_deadline_ack_ids=ids[1:2], modify_deadline_seconds=[0])
    stream.wait(10, seconds=2)
    time.sleep(0.5)
    note("again after a nack of the second", data(stream.messages()[5:]))
    stream.cancel()


@case
def stream_batches(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)
    scene.publish(topic, [b"x"] * 500)
    stream = scene.stream(first(subscription, 60))
    note("messages", len(stream.wait(500, seconds=10)))
    largest = max(len(response.received_messages) for _, response in stream.responses)
    note("more than 100 in a response", largest > 100)
    stream.cancel()
