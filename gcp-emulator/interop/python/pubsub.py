"""Google's Python client for Pub/Sub, used as anyone would use it, against the emulator.

    python pubsub.py HOST:PORT
"""

import collections
import concurrent.futures
import datetime
import os
import sys
import threading
import time
import uuid

from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.cloud.pubsub_v1.subscriber.exceptions import AcknowledgeStatus
from google.protobuf import duration_pb2, timestamp_pb2
from google.pubsub_v1 import types as pubsub_types

from checks import Inbox, check, equal, raises, run


class Context:
    """Clients, and names that no other check uses."""

    project = "interop"

    def __init__(self):
        self.publisher = pubsub_v1.PublisherClient()
        self.subscriber = pubsub_v1.SubscriberClient()

    def topic(self, **settings):
        name = self.publisher.topic_path(self.project, f"topic-{uuid.uuid4().hex}")
        self.publisher.create_topic(request={"name": name, **settings})
        return name

    def subscription(self, topic, **settings):
        name = self.subscriber.subscription_path(self.project, f"subscription-{uuid.uuid4().hex}")
        self.subscriber.create_subscription(request={"name": name, "topic": topic, **settings})
        return name

    def publish(self, topic, payloads, **attributes):
        futures = [self.publisher.publish(topic, payload, **attributes) for payload in payloads]
        return [future.result(30) for future in futures]

    def pull(self, subscription, count=100, seconds=5):
        """What one unary pull gives; nothing when nothing comes."""
        try:
            answer = self.subscriber.pull(
                request={"subscription": subscription, "max_messages": count},
                timeout=seconds,
                retry=None,
            )
        except exceptions.DeadlineExceeded:
            return []
        return list(answer.received_messages)


class Pulling:
    """A streaming pull that ends with its block."""

    def __init__(self, context, subscription, callback, **settings):
        self._future = context.subscriber.subscribe(subscription, callback=callback, **settings)

    def __enter__(self):
        return self._future

    def __exit__(self, *_):
        self._future.cancel()
        try:
            self._future.result(30)
        except (concurrent.futures.CancelledError, exceptions.GoogleAPICallError):
            pass


@check("a topic is created once, read, listed and deleted")
def topics(context):
    name = context.topic(labels={"team": "orders"})
    raises(
        exceptions.AlreadyExists,
        lambda: context.publisher.create_topic(request={"name": name}),
    )
    equal(dict(context.publisher.get_topic(request={"topic": name}).labels), {"team": "orders"})
    listed = context.publisher.list_topics(request={"project": "projects/interop"})
    equal([topic.name for topic in listed].count(name), 1)
    context.publisher.delete_topic(request={"topic": name})
    raises(exceptions.NotFound, lambda: context.publisher.get_topic(request={"topic": name}))


@check("lists come in pages of the asked size and are complete")
def pages(context):
    project = f"pages-{uuid.uuid4().hex[:8]}"
    names = {f"projects/{project}/topics/topic-{number}" for number in range(7)}
    for name in names:
        context.publisher.create_topic(request={"name": name})
    pager = context.publisher.list_topics(
        request={"project": f"projects/{project}", "page_size": 3}
    )
    sizes, seen = [], set()
    for page in pager.pages:
        sizes.append(len(page.topics))
        seen |= {topic.name for topic in page.topics}
    equal(seen, names)
    equal(sizes, [3, 3, 1])


@check("a subscription is created, read, updated and deleted")
def subscriptions(context):
    topic = context.topic()
    name = context.subscription(topic, ack_deadline_seconds=17)
    found = context.subscriber.get_subscription(request={"subscription": name})
    equal((found.topic, found.ack_deadline_seconds), (topic, 17))
    context.subscriber.update_subscription(
        request={
            "subscription": {"name": name, "ack_deadline_seconds": 42},
            "update_mask": {"paths": ["ack_deadline_seconds"]},
        }
    )
    found = context.subscriber.get_subscription(request={"subscription": name})
    equal(found.ack_deadline_seconds, 42)
    listed = context.publisher.list_topic_subscriptions(request={"topic": topic})
    equal(list(listed), [name])
    context.subscriber.delete_subscription(request={"subscription": name})
    raises(
        exceptions.NotFound,
        lambda: context.subscriber.get_subscription(request={"subscription": name}),
    )


@check("batched messages arrive by streaming pull once each, with attributes and ids")
def streaming_pull(context):
    topic = context.topic()
    subscription = context.subscription(topic)
    publisher = pubsub_v1.PublisherClient(
        pubsub_v1.types.BatchSettings(max_messages=100, max_latency=0.05)
    )
    sent = {}
    futures = []
    for number in range(1000):
        payload = f"message {number}".encode()
        future = publisher.publish(topic, payload, number=str(number), kind="order")
        futures.append((payload, future))
    for payload, future in futures:
        sent[future.result(30)] = payload
    equal(len(sent), 1000)
    inbox = Inbox()

    def take(message):
        message.ack()
        inbox.put(message)

    with Pulling(context, subscription, take):
        inbox.wait_for(lambda messages: len({m.message_id for m in messages}) == 1000)
        # Long enough for a copy under way to arrive.
        time.sleep(1)
        received = inbox.wait(1000)
    equal(len(received), 1000)
    equal({message.message_id: message.data for message in received}, sent)
    for message in received:
        equal(message.data, f"message {message.attributes['number']}".encode())
        equal(message.attributes["kind"], "order")
        assert message.publish_time is not None
    equal(context.pull(subscription, seconds=2), [])


@check("two subscribers of one subscription share its messages, two subscriptions each get all")
def sharing(context):
    topic = context.topic()
    shared, other = context.subscription(topic), context.subscription(topic)
    inboxes = [Inbox(), Inbox(), Inbox()]

    def into(inbox):
        def take(message):
            message.ack()
            inbox.put(message.message_id)

        return take

    with (
        Pulling(context, shared, into(inboxes[0])),
        Pulling(context, shared, into(inboxes[1])),
        Pulling(context, other, into(inboxes[2])),
    ):
        ids = context.publish(topic, [b"x"] * 300)
        equal(sorted(inboxes[2].wait(300)), sorted(ids))
        deadline = time.monotonic() + 30
        while len(inboxes[0].wait(0)) + len(inboxes[1].wait(0)) < 300:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        equal(sorted(inboxes[0].wait(0) + inboxes[1].wait(0)), sorted(ids))


@check("a nacked message comes again with the same id")
def nack(context):
    topic = context.topic()
    subscription = context.subscription(topic)
    inbox = Inbox()

    def take(message):
        inbox.put(message.message_id)
        if len(inbox.wait(0)) < 3:
            message.nack()
        else:
            message.ack()

    with Pulling(context, subscription, take):
        [expected] = context.publish(topic, [b"again"])
        equal(inbox.wait(3), [expected] * 3)
    equal(context.pull(subscription, seconds=2), [])


@check("messages of one ordering key arrive in the order of publishing")
def ordering(context):
    topic = context.topic()
    subscription = context.subscription(topic, enable_message_ordering=True)
    publisher = pubsub_v1.PublisherClient(
        publisher_options=pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
    )
    futures = [
        publisher.publish(topic, f"{number}".encode(), ordering_key=f"key-{number % 7}")
        for number in range(350)
    ]
    for future in futures:
        future.result(30)
    inbox = Inbox()

    def take(message):
        inbox.put((message.ordering_key, int(message.data)))
        message.ack()

    with Pulling(context, subscription, take):
        received = inbox.wait(350)
    runs = collections.defaultdict(list)
    for key, number in received:
        runs[key].append(number)
    equal(len(runs), 7)
    for key, numbers in runs.items():
        equal(numbers, list(range(int(key[4:]), 350, 7)))


@check("a message held longer than its deadline is extended by the client and delivered once")
def extension(context):
    topic = context.topic()
    subscription = context.subscription(topic, ack_deadline_seconds=10)
    inbox = Inbox()

    def take(message):
        inbox.put(message.message_id)
        time.sleep(13)
        message.ack()

    with Pulling(context, subscription, take):
        ids = context.publish(topic, [b"slow"])
        inbox.wait(1)
        time.sleep(15)
        equal(inbox.wait(1), ids)
    equal(context.pull(subscription, seconds=2), [])


@check("an exactly-once subscription confirms acks and refuses one that came too late")
def exactly_once(context):
    topic = context.topic()
    subscription = context.subscription(topic, enable_exactly_once_delivery=True)
    answers = Inbox()

    def take(message):
        answers.put((message.message_id, message.ack_with_response().result(30)))

    # The answer to an ack is awaited outside the callback, which is what sends the acks.
    with (
        concurrent.futures.ThreadPoolExecutor(8) as pool,
        Pulling(context, subscription, lambda message: pool.submit(take, message)),
    ):
        ids = context.publish(topic, [f"{number}".encode() for number in range(50)])
        received = answers.wait(50)
    equal(sorted(identity for identity, _ in received), sorted(ids))
    equal({answer for _, answer in received}, {AcknowledgeStatus.SUCCESS})

    context.publish(topic, [b"late"])
    [first] = context.pull(subscription)
    context.subscriber.modify_ack_deadline(
        request={
            "subscription": subscription,
            "ack_ids": [first.ack_id],
            "ack_deadline_seconds": 0,
        }
    )
    [second] = context.pull(subscription)
    assert first.ack_id != second.ack_id
    late = raises(
        exceptions.InvalidArgument,
        lambda: context.subscriber.acknowledge(
            request={"subscription": subscription, "ack_ids": [first.ack_id]}
        ),
    )
    equal(late.reason, "EXACTLY_ONCE_ACKID_FAILURE")
    equal(dict(late.metadata), {first.ack_id: "PERMANENT_FAILURE_INVALID_ACK_ID"})
    context.subscriber.acknowledge(
        request={"subscription": subscription, "ack_ids": [second.ack_id]}
    )


@check("a message that is nacked five times goes to the dead-letter topic")
def dead_letter(context):
    graveyard = context.topic()
    buried = context.subscription(graveyard)
    topic = context.topic()
    subscription = context.subscription(
        topic,
        dead_letter_policy={"dead_letter_topic": graveyard, "max_delivery_attempts": 5},
    )
    attempts = Inbox()

    def take(message):
        attempts.put(message.delivery_attempt)
        message.nack()

    with Pulling(context, subscription, take):
        context.publish(topic, [b"poison"], kind="bad")
        inbox = Inbox()

        def bury(message):
            message.ack()
            inbox.put(message)

        with Pulling(context, buried, bury):
            [message] = inbox.wait(1)
    equal(attempts.wait(5), [1, 2, 3, 4, 5])
    equal((message.data, message.attributes["kind"]), (b"poison", "bad"))
    equal(message.attributes["CloudPubSubDeadLetterSourceDeliveryCount"], "5")
    equal(
        message.attributes["CloudPubSubDeadLetterSourceSubscription"],
        subscription.rsplit("/", 1)[-1],
    )


@check("unary pull, a longer deadline and an ack work")
def unary(context):
    topic = context.topic()
    subscription = context.subscription(topic, ack_deadline_seconds=10)
    context.publish(topic, [b"one", b"two"])
    received = []
    while len(received) < 2:
        more = context.pull(subscription)
        assert more, "both messages arrive"
        received += more
    equal({message.message.data for message in received}, {b"one", b"two"})
    ack_ids = [message.ack_id for message in received]
    context.subscriber.modify_ack_deadline(
        request={"subscription": subscription, "ack_ids": ack_ids, "ack_deadline_seconds": 60}
    )
    equal(context.pull(subscription, seconds=12), [])
    context.subscriber.acknowledge(request={"subscription": subscription, "ack_ids": ack_ids})


@check("a lapsed lease brings the message again under another ack id")
def lapse(context):
    topic = context.topic()
    subscription = context.subscription(topic, ack_deadline_seconds=10)
    context.publish(topic, [b"lapse"])
    [first] = context.pull(subscription)
    [second] = context.pull(subscription, seconds=20)
    equal(first.message.message_id, second.message.message_id)
    assert first.ack_id != second.ack_id
    context.subscriber.acknowledge(
        request={"subscription": subscription, "ack_ids": [second.ack_id]}
    )


@check("a filter lets only its messages through")
def filtering(context):
    topic = context.topic()
    subscription = context.subscription(
        topic, filter='attributes.region = "eu" AND NOT hasPrefix(attributes.kind, "test")'
    )
    context.publish(topic, [b"no"], region="us", kind="order")
    context.publish(topic, [b"no"], region="eu", kind="test-order")
    context.publish(topic, [b"yes"], region="eu", kind="order")
    equal([message.message.data for message in context.pull(subscription)], [b"yes"])


@check("seeking back in time brings acknowledged messages again, a snapshot those open then")
def seeking(context):
    topic = context.topic()
    subscription = context.subscription(topic, retain_acked_messages=True)
    start = datetime.datetime.now(datetime.timezone.utc)
    context.publish(topic, [b"before"])
    [before] = context.pull(subscription)
    context.subscriber.acknowledge(
        request={"subscription": subscription, "ack_ids": [before.ack_id]}
    )
    snapshot = f"projects/{context.project}/snapshots/snapshot-{uuid.uuid4().hex}"
    context.subscriber.create_snapshot(request={"name": snapshot, "subscription": subscription})
    context.publish(topic, [b"after"])
    [after] = context.pull(subscription)
    context.subscriber.acknowledge(
        request={"subscription": subscription, "ack_ids": [after.ack_id]}
    )
    context.subscriber.seek(request={"subscription": subscription, "snapshot": snapshot})
    [again] = context.pull(subscription)
    equal(again.message.data, b"after")
    context.subscriber.acknowledge(
        request={"subscription": subscription, "ack_ids": [again.ack_id]}
    )
    time_before = timestamp_pb2.Timestamp()
    time_before.FromDatetime(start - datetime.timedelta(seconds=1))
    context.subscriber.seek(request={"subscription": subscription, "time": time_before})
    received = set()
    while len(received) < 2:
        more = context.pull(subscription)
        assert more, "both messages come again"
        received |= {message.message.data for message in more}
    equal(received, {b"before", b"after"})


@check("a missing topic or subscription ends the call with NOT_FOUND")
def missing(context):
    topic = context.publisher.topic_path(context.project, "nowhere")
    raises(exceptions.NotFound, lambda: context.publisher.publish(topic, b"x").result(30))
    subscription = context.subscriber.subscription_path(context.project, "nowhere")
    future = context.subscriber.subscribe(subscription, callback=lambda message: None)
    raises(exceptions.NotFound, lambda: future.result(30))


@check("a subscription deleted under an open stream ends the stream with NOT_FOUND")
def deleted(context):
    topic = context.topic()
    subscription = context.subscription(topic)
    inbox = Inbox()

    def take(message):
        message.ack()
        inbox.put(message)

    future = context.subscriber.subscribe(subscription, callback=take)
    context.publish(topic, [b"open"])
    inbox.wait(1)
    context.subscriber.delete_subscription(request={"subscription": subscription})
    raises(exceptions.NotFound, lambda: future.result(30))


@check("a client limited to ten messages never holds more")
def flow_control(context):
    topic = context.topic()
    subscription = context.subscription(topic)
    held, most, lock, inbox = [0], [0], threading.Lock(), Inbox()

    def take(message):
        with lock:
            held[0] += 1
            most[0] = max(most[0], held[0])
        time.sleep(0.02)
        with lock:
            held[0] -= 1
        message.ack()
        inbox.put(message.message_id)

    ids = context.publish(topic, [b"x"] * 200)
    with Pulling(
        context, subscription, take, flow_control=pubsub_v1.types.FlowControl(max_messages=10)
    ):
        inbox.wait_for(lambda received: set(received) == set(ids))
    assert 1 <= most[0] <= 10, most


@check("a topic's retention and a subscription's policies are kept as given")
def settings(context):
    topic = context.topic(message_retention_duration=duration_pb2.Duration(seconds=3600))
    found = context.publisher.get_topic(request={"topic": topic})
    equal(found.message_retention_duration, datetime.timedelta(hours=1))
    name = context.subscription(
        topic,
        retry_policy=pubsub_types.RetryPolicy(
            minimum_backoff=duration_pb2.Duration(seconds=5),
            maximum_backoff=duration_pb2.Duration(seconds=50),
        ),
        message_retention_duration=duration_pb2.Duration(seconds=7200),
        retain_acked_messages=True,
    )
    found = context.subscriber.get_subscription(request={"subscription": name})
    equal(found.retry_policy.minimum_backoff, datetime.timedelta(seconds=5))
    equal(found.retry_policy.maximum_backoff, datetime.timedelta(seconds=50))
    equal(found.message_retention_duration, datetime.timedelta(hours=2))
    equal(found.retain_acked_messages, True)


if __name__ == "__main__":
    [_, address] = sys.argv
    os.environ["PUBSUB_EMULATOR_HOST"] = address
    sys.exit(run(Context()))
