"""Calls to a Pub/Sub server without retries or other help, and their answers in words."""

import queue
import re
import threading
import time

import grpc
from google.pubsub_v1 import types
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
from google.rpc import error_details_pb2, status_pb2

PROJECT = "differential"


class Server:
    """One server, over one connection."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", -1)]
        )
        self.publisher = PublisherGrpcTransport(channel=self.channel)
        self.subscriber = SubscriberGrpcTransport(channel=self.channel)


class Notes:
    """The answers of one case, step by step, and the texts of the errors among them."""

    def __init__(self):
        self.answers = {}
        self.texts = {}

    def __call__(self, step, answer):
        assert step not in self.answers, step
        self.answers[step] = answer if isinstance(answer, str) else repr(answer)

    def error(self, step, error):
        self(step, code(error))
        self.texts[step] = text(error)

    def calling(self, step, call, show=lambda answer: "OK"):
        """Notes what a call answers: its error, or what `show` makes of the answer."""
        try:
            answer = call()
        except grpc.RpcError as error:
            self.error(step, error)
            return None
        self(step, show(answer))
        return answer

    def ending(self, step, stream, seconds):
        """Notes how a stream ends, or that it does not."""
        end = stream.end(seconds)
        if isinstance(end, grpc.RpcError):
            self.error(step, end)
        else:
            self(step, end)


def code(error):
    """An error's code, with the reasons that a client can read from it."""
    words = error.code().name
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    if details:
        for detail in status_pb2.Status.FromString(details).details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info):
                values = ", ".join(sorted(set(info.metadata.values())))
                words += f" {info.domain} {info.reason} {values}"
    return words


def text(error):
    """An error's text without the names and ids in it."""
    words = re.sub(r"projects/[^ ,;]*[^ ,;.)]", "NAME", error.details() or "")
    return re.sub(r"\((resource|ack_id)=[^)]*\)", r"(\1=NAME)", words)


class Scene:
    """The names and calls of one case on one server."""

    def __init__(self, server, case):
        self.server = server
        self.word = re.sub(r"[^a-z]+", "-", case)

    def name(self, kind, which="one"):
        return f"projects/{PROJECT}/{kind}/{self.word}-{which}"

    def publisher(self, method, request, timeout=20):
        return getattr(self.server.publisher, method)(request, timeout=timeout)

    def subscriber(self, method, request, timeout=20):
        return getattr(self.server.subscriber, method)(request, timeout=timeout)

    def topic(self, which="one", **settings):
        name = self.name("topics", which)
        self.publisher("create_topic", types.Topic(name=name, **settings))
        return name

    def create_subscription(self, topic, which="one", **settings):
        name = self.name("subscriptions", which)
        return self.subscriber(
            "create_subscription", types.Subscription(name=name, topic=topic, **settings)
        )

    def subscription(self, topic, which="one", **settings):
        return self.create_subscription(topic, which, **settings).name

    def publish(self, topic, payloads, **fields):
        messages = [types.PubsubMessage(data=payload, **fields) for payload in payloads]
        return self.publish_messages(topic, messages)

    def publish_messages(self, topic, messages):
        request = types.PublishRequest(topic=topic, messages=messages)
        return list(self.publisher("publish", request).message_ids)

    def pull(self, subscription, count=100, seconds=3):
        """What one pull gives, in the order given; nothing when nothing comes in time."""
        request = types.PullRequest(subscription=subscription, max_messages=count)
        try:
            return list(self.subscriber("pull", request, timeout=seconds).received_messages)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return []
            raise

    def pull_all(self, subscription, count):
        """`count` messages by as many pulls as it takes."""
        received = []
        while len(received) < count:
            more = self.pull(subscription)
            if not more:
                break
            received += more
        return received

    def acknowledge(self, subscription, ack_ids):
        request = types.AcknowledgeRequest(subscription=subscription, ack_ids=ack_ids)
        return self.subscriber("acknowledge", request)

    def modify(self, subscription, ack_ids, seconds):
        request = types.ModifyAckDeadlineRequest(
            subscription=subscription, ack_ids=ack_ids, ack_deadline_seconds=seconds
        )
        return self.subscriber("modify_ack_deadline", request)

    def stream(self, *requests):
        return Stream(self.server.subscriber.streaming_pull, requests)


class Stream:
    """A streaming pull: requests go out as they are given, responses come into a list."""

    def __init__(self, method, requests):
        self._requests = queue.SimpleQueue()
        for request in requests:
            self._requests.put(request)
        self._changed = threading.Condition()
        self.responses = []
        self._end = None
        self._call = method(iter(self._requests.get, None), timeout=60)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for response in self._call:
                with self._changed:
                    self.responses.append((time.monotonic(), response))
                    self._changed.notify_all()
            end = "OK"
        except grpc.RpcError as error:
            end = error
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def send(self, **fields):
        self._requests.put(types.StreamingPullRequest(**fields))

    def half_close(self):
        self._requests.put(None)

    def cancel(self):
        self._call.cancel()

    def messages(self):
        """(when, received message) of all that came."""
        with self._changed:
            return [(at, message) for at, r in self.responses for message in r.received_messages]

    def wait(self, count, seconds=5):
        """The messages once there are `count`, or when the time is up or the stream is over."""

        def received():
            return sum(len(r.received_messages) for _, r in self.responses)

        with self._changed:
            self._changed.wait_for(lambda: received() >= count or self._end is not None, seconds)
        return self.messages()

    def end(self, seconds=3):
        """How the stream ended: "OK", an error, or "open" when it did not."""
        with self._changed:
            self._changed.wait_for(lambda: self._end is not None, seconds)
            return "open" if self._end is None else self._end
