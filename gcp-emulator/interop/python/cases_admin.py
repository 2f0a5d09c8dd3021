"""Topics, subscriptions and snapshots: what may be created, and what is shown of it."""

from google.protobuf import duration_pb2, field_mask_pb2
from google.pubsub_v1 import types

DAY = 86400
CASES = []


def case(function):
    CASES.append((function.__name__.replace("_", " "), function))
    return function


def seconds(number):
    return duration_pb2.Duration(seconds=number)


def mask(*paths):
    return field_mask_pb2.FieldMask(paths=paths)


@case
def topic_life(scene, note):
    name = scene.topic(labels={"a": "b"})
    get = types.GetTopicRequest(topic=name)
    note.calling("create again", lambda: scene.topic())
    note.calling("get", lambda: scene.publisher("get_topic", get), lambda t: dict(t.labels))
    subscription = scene.subscription(name)
    delete = types.DeleteTopicRequest(topic=name)
    note.calling("delete", lambda: scene.publisher("delete_topic", delete))
    note.calling("delete again", lambda: scene.publisher("delete_topic", delete))
    note.calling("get deleted", lambda: scene.publisher("get_topic", get))
    note.calling("publish to deleted", lambda: scene.publish(name, [b"x"]))
    note.calling(
        "topic of its subscription",
        lambda: scene.subscriber(
            "get_subscription", types.GetSubscriptionRequest(subscription=subscription)
        ),
        lambda s: s.topic,
    )
    note.calling("create anew", lambda: scene.topic())
    note.calling(
        "topic of its subscription after that",
        lambda: scene.subscriber(
            "get_subscription", types.GetSubscriptionRequest(subscription=subscription)
        ),
        lambda s: s.topic,
    )


@case
def topic_names(scene, note):
    for what, name in {
        "two letters": "ab",
        "three letters": "abc",
        "a digit first": "1abc",
        "the reserved prefix": "google-topic",
        "a slash": "abc/def",
        "a space": "abc def",
        "a percent sign": "abc%20d",
        "all allowed signs": "a-_.~+%2b9",
        "255 letters": "a" * 255,
        "256 letters": "a" * 256,
        "nothing": "",
    }.items():
        full = f"projects/differential/topics/{name}"
        note.calling(what, lambda: scene.publisher("create_topic", types.Topic(name=full)))
    for what, name in {
        "no project": "projects//topics/abcd",
        "a short name": "abcd",
        "another collection": "projects/differential/subscriptions/abcd",
        "an empty name": "",
    }.items():
        note.calling(what, lambda: scene.publisher("create_topic", types.Topic(name=name)))
        get = types.GetTopicRequest(topic=name)
        note.calling(f"get {what}", lambda: scene.publisher("get_topic", get))


@case
def topic_retention(scene, note):
    for what, length in {
        "599 s": 599,
        "600 s": 600,
        "31 days": 31 * DAY,
        "31 days and a second": 31 * DAY + 1,
    }.items():
        which = what.replace(" ", "-")
        note.calling(
            what,
            lambda: scene.topic(which, message_retention_duration=seconds(length)),
        )


@case
def topic_update(scene, note):
    name = scene.topic(labels={"a": "b"})

    def update(topic, *paths):
        request = types.UpdateTopicRequest(topic=topic, update_mask=mask(*paths))
        return scene.publisher("update_topic", request)

    topic = types.Topic(
        name=name, labels={"c": "d"}, message_retention_duration=seconds(1200)
    )
    note.calling("no path", lambda: update(topic))
    note.calling("an unknown path", lambda: update(topic, "colour"))
    note.calling("the name", lambda: update(topic, "name"))
    note.calling("labels", lambda: update(topic, "labels"), lambda t: dict(t.labels))
    note.calling(
        "retention",
        lambda: update(topic, "message_retention_duration"),
        lambda t: t.message_retention_duration.total_seconds(),
    )
    missing = types.Topic(name=name + "-missing", message_retention_duration=seconds(1200))
    note.calling("of a missing topic", lambda: update(missing, "message_retention_duration"))


@case
def topic_lists(scene, note):
    project = "projects/listing"
    for number in range(5):
        name = f"{project}/topics/topic-{number}"
        scene.publisher("create_topic", types.Topic(name=name))

    def pages(size):
        request = types.ListTopicsRequest(project=project, page_size=size)
        sizes = []
        while True:
            answer = scene.publisher("list_topics", request)
            sizes.append(len(answer.topics))
            if not answer.next_page_token:
                return sizes
            request.page_token = answer.next_page_token

    for size in (0, 2, 5, 1000):
        note.calling(f"pages of {size}", lambda: pages(size), repr)
    negative = types.ListTopicsRequest(project=project, page_size=-1)
    note.calling("a negative size", lambda: scene.publisher("list_topics", negative))
    token = types.ListTopicsRequest(project=project, page_token="nonsense")
    note.calling("a wrong token", lambda: scene.publisher("list_topics", token))
    empty = types.ListTopicsRequest(project="projects/nothing-here")
    note.calling(
        "an empty project", lambda: scene.publisher("list_topics", empty), lambda a: len(a.topics)
    )
    of_missing = types.ListTopicSubscriptionsRequest(topic=scene.name("topics", "missing"))
    note.calling(
        "subscriptions of a missing topic",
        lambda: scene.publisher("list_topic_subscriptions", of_missing),
    )


@case
def subscription_life(scene, note):
    topic = scene.topic()
    note.calling(
        "create",
        lambda: scene.create_subscription(topic),
        lambda s: (
            s.ack_deadline_seconds,
            s.message_retention_duration.total_seconds(),
            s.retain_acked_messages,
            s.enable_message_ordering,
            s.enable_exactly_once_delivery,
            s.detached,
        ),
    )
    name = scene.name("subscriptions")
    get = types.GetSubscriptionRequest(subscription=name)
    note.calling(
        "state", lambda: scene.subscriber("get_subscription", get), lambda s: s.state.name
    )
    note.calling(
        "default expiration",
        lambda: scene.subscriber("get_subscription", get),
        lambda s: str(s.expiration_policy.ttl) if "expiration_policy" in s else "none shown",
    )
    note.calling(
        "push config shown",
        lambda: scene.subscriber("get_subscription", get),
        lambda s: "push_config" in s,
    )
    note.calling("create again", lambda: scene.create_subscription(topic))
    note.calling(
        "create again otherwise", lambda: scene.create_subscription(topic, ack_deadline_seconds=20)
    )
    listing = types.ListTopicSubscriptionsRequest(topic=topic)
    note.calling(
        "of the topic",
        lambda: scene.publisher("list_topic_subscriptions", listing),
        lambda answer: list(answer.subscriptions) == [name],
    )
    delete = types.DeleteSubscriptionRequest(subscription=name)
    note.calling("delete", lambda: scene.subscriber("delete_subscription", delete))
    note.calling("delete again", lambda: scene.subscriber("delete_subscription", delete))
    note.calling("get deleted", lambda: scene.subscriber("get_subscription", get))
    note.calling("pull deleted", lambda: scene.pull(name))
    note.calling("ack on deleted", lambda: scene.acknowledge(name, ["x"]))
    note.calling(
        "of a missing topic",
        lambda: scene.create_subscription(scene.name("topics", "missing"), "orphan"),
    )
    note.calling("of no topic", lambda: scene.create_subscription("", "nothing"))
    bad = types.Subscription(name="projects/differential/subscriptions/1", topic=topic)
    note.calling("a bad name", lambda: scene.subscriber("create_subscription", bad))


@case
def subscription_deadline(scene, note):
    topic = scene.topic()
    for number in (-1, 0, 1, 9, 10, 600, 601):
        note.calling(
            f"{number} s",
            lambda: scene.create_subscription(
                topic, f"s{number}".replace("-", "minus"), ack_deadline_seconds=number
            ),
            lambda s: s.ack_deadline_seconds,
        )


@case
def subscription_retention(scene, note):
    topic = scene.topic()
    for what, length in {
        "599 s": 599,
        "600 s": 600,
        "7 days": 7 * DAY,
        "7 days and a second": 7 * DAY + 1,
        "31 days": 31 * DAY,
        "31 days and a second": 31 * DAY + 1,
    }.items():
        which = what.replace(" ", "-")
        note.calling(
            what,
            lambda: scene.create_subscription(
                topic, which, message_retention_duration=seconds(length)
            ),
        )


@case
def subscription_policies(scene, note):
    topic = scene.topic()

    def retry(which, **bounds):
        policy = types.RetryPolicy(**{key: seconds(value) for key, value in bounds.items()})
        return scene.create_subscription(topic, which, retry_policy=policy)

    def shown(subscription):
        policy = subscription.retry_policy
        return (policy.minimum_backoff.total_seconds(), policy.maximum_backoff.total_seconds())

    note.calling("retry of nothing", lambda: retry("ra"), shown)
    note.calling("retry of 5 to 50 s", lambda: retry("rb", minimum_backoff=5, maximum_backoff=50), shown)
    note.calling("retry of 50 to 5 s", lambda: retry("rc", minimum_backoff=50, maximum_backoff=5))
    note.calling("retry up to 601 s", lambda: retry("rd", maximum_backoff=601))
    note.calling("retry from -1 s", lambda: retry("re", minimum_backoff=-1))

    for attempts in (0, 4, 5, 100, 101):
        policy = types.DeadLetterPolicy(dead_letter_topic=topic, max_delivery_attempts=attempts)
        note.calling(
            f"dead letters after {attempts}",
            lambda: scene.create_subscription(topic, f"da{attempts}", dead_letter_policy=policy),
            lambda s: s.dead_letter_policy.max_delivery_attempts,
        )
    policy = types.DeadLetterPolicy(dead_letter_topic=scene.name("topics", "missing"))
    note.calling(
        "dead letters to a missing topic",
        lambda: scene.create_subscription(topic, "db", dead_letter_policy=policy),
    )
    note.calling(
        "dead letters to no topic",
        lambda: scene.create_subscription(
            topic, "dc", dead_letter_policy=types.DeadLetterPolicy(max_delivery_attempts=5)
        ),
    )

    for what, length in {"an hour": 3600, "a day": DAY}.items():
        note.calling(
            f"expiration after {what}",
            lambda: scene.create_subscription(
                topic,
                "ea" + what.replace(" ", ""),
                expiration_policy=types.ExpirationPolicy(ttl=seconds(length)),
                message_retention_duration=seconds(600),
            ),
        )
    note.calling(
        "expiration before the retention ends",
        lambda: scene.create_subscription(
            topic,
            "eb",
            expiration_policy=types.ExpirationPolicy(ttl=seconds(DAY)),
            message_retention_duration=seconds(2 * DAY),
        ),
    )


@case
def subscription_kinds(scene, note):
    topic = scene.topic()
    note.calling(
        "push",
        lambda: scene.create_subscription(
            topic, "push", push_config=types.PushConfig(push_endpoint="https://example.com/push")
        ),
    )
    note.calling(
        "bigquery",
        lambda: scene.create_subscription(
            topic, "table", bigquery_config=types.BigQueryConfig(table="p.d.t")
        ),
    )
    note.calling(
        "cloud storage",
        lambda: scene.create_subscription(
            topic, "bucket", cloud_storage_config=types.CloudStorageConfig(bucket="bucket")
        ),
    )
    note.calling(
        "ordered and exactly once",
        lambda: scene.create_subscription(
            topic, "both", enable_message_ordering=True, enable_exactly_once_delivery=True
        ),
        lambda s: (s.enable_message_ordering, s.enable_exactly_once_delivery),
    )
    note.calling(
        "labels",
        lambda: scene.create_subscription(topic, "labels", labels={"a": "b"}),
        lambda s: dict(s.labels),
    )


@case
def subscription_filter(scene, note):
    topic = scene.topic()
    filters = {
        "equal": 'attributes.a = "b"',
        "not equal": 'attributes.a != "b"',
        "has": "attributes:a",
        "prefix": 'hasPrefix(attributes.a, "b")',
        "both": 'attributes:a AND NOT attributes:b',
        "mixed without parentheses": "attributes:a AND attributes:b OR attributes:c",
        "nonsense": "garbage(",
        "an unquoted value": "attributes.a = b",
        "on the data": 'data = "x"',
        "too long": f'attributes.a = "{"x" * 256}"',
    }
    for number, (what, text) in enumerate(filters.items()):
        note.calling(
            what,
            lambda: scene.create_subscription(topic, f"f{number}", filter=text),
            lambda s: s.filter,
        )


@case
def subscription_update(scene, note):
    topic = scene.topic()
    name = scene.subscription(topic)

    def update(*paths, **fields):
        subscription = types.Subscription(name=name, **fields)
        request = types.UpdateSubscriptionRequest(
            subscription=subscription, update_mask=mask(*paths)
        )
        return scene.subscriber("update_subscription", request)

    note.calling("no path", lambda: update(ack_deadline_seconds=20))
    note.calling("an unknown path", lambda: update("colour"))
    note.calling("the name", lambda: update("name"))
    note.calling("the topic", lambda: update("topic", topic=topic))
    note.calling(
        "the deadline",
        lambda: update("ack_deadline_seconds", ack_deadline_seconds=20),
        lambda s: s.ack_deadline_seconds,
    )
    note.calling(
        "the deadline to 5 s", lambda: update("ack_deadline_seconds", ack_deadline_seconds=5)
    )
    note.calling(
        "the deadline to 601 s", lambda: update("ack_deadline_seconds", ack_deadline_seconds=601)
    )
    note.calling(
        "ordering", lambda: update("enable_message_ordering", enable_message_ordering=True)
    )
    note.calling("the filter", lambda: update("filter", filter="attributes:a"))
    note.calling(
        "labels", lambda: update("labels", labels={"a": "b"}), lambda s: dict(s.labels)
    )
    note.calling(
        "exactly once",
        lambda: update("enable_exactly_once_delivery", enable_exactly_once_delivery=True),
        lambda s: s.enable_exactly_once_delivery,
    )
    note.calling(
        "retention of acknowledged messages",
        lambda: update("retain_acked_messages", retain_acked_messages=True),
        lambda s: s.retain_acked_messages,
    )
    note.calling(
        "retry policy",
        lambda: update(
            "retry_policy",
            retry_policy=types.RetryPolicy(
                minimum_backoff=seconds(5), maximum_backoff=seconds(50)
            ),
        ),
        lambda s: s.retry_policy.minimum_backoff.total_seconds(),
    )
    note.calling(
        "expiration",
        lambda: update(
            "expiration_policy", expiration_policy=types.ExpirationPolicy(ttl=seconds(30 * DAY))
        ),
    )


@case
def detaching(scene, note):
    topic = scene.topic()
    name = scene.subscription(topic)
    scene.publish(topic, [b"x"])
    request = types.DetachSubscriptionRequest(subscription=name)
    note.calling("detach", lambda: scene.publisher("detach_subscription", request))
    note.calling("pull after it", lambda: scene.pull(name), len)
    note.calling(
        "created detached",
        lambda: scene.create_subscription(topic, "born", detached=True),
        lambda s: s.detached,
    )


@case
def snapshots(scene, note):
    topic = scene.topic()
    subscription = scene.subscription(topic)
    name = scene.name("snapshots")
    create = types.CreateSnapshotRequest(name=name, subscription=subscription, labels={"a": "b"})
    note.calling(
        "create",
        lambda: scene.subscriber("create_snapshot", create),
        lambda s: (s.name == name, s.topic == topic),
    )
    get = types.GetSnapshotRequest(snapshot=name)
    note.calling(
        "labels", lambda: scene.subscriber("get_snapshot", get), lambda s: dict(s.labels)
    )
    note.calling("create again", lambda: scene.subscriber("create_snapshot", create))
    missing = types.CreateSnapshotRequest(
        name=name + "-two", subscription=scene.name("subscriptions", "missing")
    )
    note.calling("of nothing", lambda: scene.subscriber("create_snapshot", missing))
    nameless = types.CreateSnapshotRequest(subscription=subscription)
    note.calling("without a name", lambda: scene.subscriber("create_snapshot", nameless))
    listing = types.ListTopicSnapshotsRequest(topic=topic)
    note.calling(
        "of the topic",
        lambda: scene.publisher("list_topic_snapshots", listing),
        lambda answer: list(answer.snapshots) == [name],
    )
    update = types.UpdateSnapshotRequest(
        snapshot=types.Snapshot(name=name, labels={"c": "d"}), update_mask=mask("labels")
    )
    note.calling(
        "update", lambda: scene.subscriber("update_snapshot", update), lambda s: dict(s.labels)
    )
    delete = types.DeleteSnapshotRequest(snapshot=name)
    note.calling("delete", lambda: scene.subscriber("delete_snapshot", delete))
    note.calling("delete again", lambda: scene.subscriber("delete_snapshot", delete))
