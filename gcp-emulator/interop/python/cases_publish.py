"""Publishing: limits, and what of a message is kept."""

from google.pubsub_v1 import types

CASES = []


def case(function):
    CASES.append((function.__name__.replace("_", " "), function))
    return function


@case
def publish_limits(scene, note):
    topic = scene.topic()
    message = types.PubsubMessage

    def publish(step, *messages):
        note.calling(
            step, lambda: scene.publish_messages(topic, messages), lambda ids: f"{len(ids)} ids"
        )

    publish("nothing")
    publish("an empty message", message())
    publish("an empty message among others", message(data=b"x"), message())
    publish("only an ordering key", message(ordering_key="a"))
    publish("only attributes", message(attributes={"a": "b"}))
    publish("1000 messages", *[message(data=b"x")] * 1000)
    publish("1001 messages", *[message(data=b"x")] * 1001)
    publish("100 attributes", message(attributes={f"a{number}": "" for number in range(100)}))
    publish("101 attributes", message(attributes={f"a{number}": "" for number in range(101)}))
    publish("a key of 256 bytes", message(attributes={"k" * 256: "v"}))
    publish("a key of 257 bytes", message(attributes={"k" * 257: "v"}))
    publish("a value of 1024 bytes", message(attributes={"k": "v" * 1024}))
    publish("a value of 1025 bytes", message(attributes={"k": "v" * 1025}))
    publish("an empty key", message(data=b"x", attributes={"": "v"}))
    publish("a reserved key", message(data=b"x", attributes={"googkey": "v"}))
    publish("an ordering key of 1024 bytes", message(data=b"x", ordering_key="k" * 1024))
    publish("an ordering key of 1025 bytes", message(data=b"x", ordering_key="k" * 1025))
    publish(
        "two ordering keys",
        message(data=b"x", ordering_key="a"),
        message(data=b"x", ordering_key="b"),
    )
    publish("9 MB", message(data=b"x" * 9_000_000))
    publish("10 MB and a byte", message(data=b"x" * 10_000_001))
    publish("12 MB", message(data=b"x" * 12_000_000))
    publish("12 MB in twelve messages", *[message(data=b"x" * 1_000_000)] * 12)
    note.calling("a missing topic", lambda: scene.publish(topic + "-missing", [b"x"]))
    note.calling("no topic", lambda: scene.publish("", [b"x"]))
    note.calling("a bad topic", lambda: scene.publish("topics/a", [b"x"]))


@case
def publish_content(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)
    messages = [
        types.PubsubMessage(data=b"\x00\xff", attributes={"a": "ä"}, message_id="mine"),
        types.PubsubMessage(attributes={"only": "this"}, ordering_key="key"),
    ]
    # One request each: a request has one ordering key or none.
    ids = [scene.publish_messages(topic, [message])[0] for message in messages]
    note("ids go up", [int(identity) for identity in ids] == sorted(map(int, ids)))
    note("own id is replaced", "mine" not in ids)
    received = sorted(scene.pull_all(subscription, 2), key=lambda r: int(r.message.message_id))
    note(
        "messages",
        [(r.message.data, dict(r.message.attributes), r.message.ordering_key) for r in received],
    )
    note("ids are those answered", [r.message.message_id for r in received] == ids)
    note("publish time set", all(r.message.publish_time for r in received))
    note("attempts without a policy", [r.delivery_attempt for r in received])


@case
def publish_reaches(scene, note):
    topic = scene.topic()
    scene.publish(topic, [b"before"])
    first, second = scene.subscription(topic, "a"), scene.subscription(topic, "b")
    scene.publish(topic, [b"after"])
    for what, name in {"first": first, "second": second}.items():
        note(f"{what} subscription", [r.message.data for r in scene.pull(name)])
