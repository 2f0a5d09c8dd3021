"""Seeking by time and by snapshot."""

import datetime
import time

from google.pubsub_v1 import types

CASES = []


def case(function):
    CASES.append((function.__name__.replace("_", " "), function))
    return function


def data(received):
    return sorted(r.message.data for r in received)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def seek(scene, subscription, **target):
    return scene.subscriber("seek", types.SeekRequest(subscription=subscription, **target))


def drain(scene, subscription, count):
    received = scene.pull_all(subscription, count)
    scene.acknowledge(subscription, [r.ack_id for r in received])
    return received


@case
def seek_time(scene, note):
    topic = scene.topic()
    keeping = scene.subscription(topic, "keeping", retain_acked_messages=True)
    plain = scene.subscription(topic, "plain")
    start = now() - datetime.timedelta(seconds=1)
    scene.publish(topic, [b"a", b"b"])
    for name in (keeping, plain):
        drain(scene, name, 2)
    for what, name in {"acknowledged ones kept": keeping, "not kept": plain}.items():
        note.calling(f"back, {what}", lambda: seek(scene, name, time=start))
        note(f"then, {what}", data(scene.pull_all(name, 2)))
    note.calling(
        "outstanding ones, back", lambda: seek(scene, keeping, time=start)
    )
    note("come at once", data(scene.pull_all(keeping, 2)))
    note.calling(
        "forward", lambda: seek(scene, keeping, time=now() + datetime.timedelta(hours=1))
    )
    note("nothing is left", data(scene.pull(keeping)))
    scene.publish(topic, [b"c"])
    note("published afterwards", data(scene.pull(keeping)))
    note.calling("no target", lambda: seek(scene, keeping))
    note.calling(
        "of nothing", lambda: seek(scene, keeping + "-missing", time=start)
    )


@case
def seek_middle(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic, retain_acked_messages=True)
    scene.publish(topic, [b"a"])
    time.sleep(0.2)
    middle = now()
    time.sleep(0.2)
    scene.publish(topic, [b"b"])
    note("first", data(drain(scene, subscription, 2)))
    seek(scene, subscription, time=middle)
    note("after a seek between them", data(scene.pull(subscription)))


@case
def seek_snapshot(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)
    other_topic = scene.topic("other")
    other = scene.subscription(other_topic, "other")
    scene.publish(topic, [b"acknowledged"])
    drain(scene, subscription, 1)
    scene.publish(topic, [b"open"])
    snapshot = scene.name("snapshots")
    scene.subscriber(
        "create_snapshot", types.CreateSnapshotRequest(name=snapshot, subscription=subscription)
    )
    scene.publish(topic, [b"later"])
    drain(scene, subscription, 2)
    note.calling("seek", lambda: seek(scene, subscription, snapshot=snapshot))
    note("then", data(scene.pull_all(subscription, 2)))
    note.calling("another topic's", lambda: seek(scene, other, snapshot=snapshot))
    note.calling("a missing one", lambda: seek(scene, subscription, snapshot=snapshot + "-missing"))


@case
def seek_ordered(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(
        topic, retain_acked_messages=True, enable_message_ordering=True
    )
    start = now() - datetime.timedelta(seconds=1)
    scene.publish(topic, [b"0", b"1", b"2"], ordering_key="key")
    drain(scene, subscription, 3)
    note.calling("by time", lambda: seek(scene, subscription, time=start))
    note("then", [r.message.data for r in scene.pull_all(subscription, 3)])


@case
def topic_retention_seek(scene, note):
    topic = scene.topic(message_retention_duration=datetime.timedelta(hours=1))
    start = now() - datetime.timedelta(seconds=1)
    scene.publish(topic, [b"before"])
    subscription = scene.subscription(topic)
    note("a new subscription", data(scene.pull(subscription)))
    note.calling("before its creation", lambda: seek(scene, subscription, time=start))
    note("then", data(scene.pull(subscription)))
    note.calling(
        "retention shown",
        lambda: scene.subscriber(
            "get_subscription", types.GetSubscriptionRequest(subscription=subscription)
        ),
        lambda s: s.topic_message_retention_duration.total_seconds(),
    )
