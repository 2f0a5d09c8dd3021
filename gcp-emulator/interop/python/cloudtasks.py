"""Google's Python client for Cloud Tasks, used as anyone would use it, against the emulator.

    python cloudtasks.py HOST:PORT
"""

import datetime
import sys
import uuid

import grpc
from google.api_core import exceptions
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport
from google.protobuf import duration_pb2, timestamp_pb2

from checks import check, equal, raises, run


class Context:
    """The client, and a queue."""

    parent = "projects/interop/locations/europe-west1"

    def __init__(self, address):
        transport = CloudTasksGrpcTransport(channel=grpc.insecure_channel(address))
        self.client = tasks_v2.CloudTasksClient(transport=transport)
        self.queue = f"{self.parent}/queues/queue-{uuid.uuid4().hex}"
        self.client.create_queue(parent=self.parent, queue={"name": self.queue})

    def create(self, queue=None, **task):
        request = {"http_method": "POST", "url": "https://partner.example/orders/1", "body": b"{}"}
        task.setdefault("http_request", request)
        return self.client.create_task(parent=queue or self.queue, task=task)


@check("a task without a name gets one from the service")
def unnamed(context):
    first, second = context.create(), context.create()
    for task in (first, second):
        assert task.name.startswith(f"{context.queue}/tasks/"), task.name
    assert first.name != second.name


@check("a task keeps its target, headers, body and time")
def kept(context):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    time = timestamp_pb2.Timestamp()
    time.FromDatetime(when)
    task = context.create(
        schedule_time=time,
        dispatch_deadline=duration_pb2.Duration(seconds=60),
        http_request={
            "http_method": tasks_v2.HttpMethod.PUT,
            "url": "https://partner.example/orders/7?tenant=a",
            "headers": {"Content-Type": "application/json", "X-Tenant": "a"},
            "body": b'{"order":7}',
        },
    )
    equal(task.http_request.url, "https://partner.example/orders/7?tenant=a")
    equal(task.http_request.http_method, tasks_v2.HttpMethod.PUT)
    equal(task.http_request.headers["X-Tenant"], "a")
    equal(task.dispatch_deadline, datetime.timedelta(seconds=60))
    assert abs(task.schedule_time - when) < datetime.timedelta(seconds=1)


@check("a name is accepted once")
def named(context):
    name = f"{context.queue}/tasks/order-7"
    equal(context.create(name=name).name, name)
    raises(exceptions.AlreadyExists, lambda: context.create(name=name))


@check("a missing queue is NOT_FOUND")
def missing(context):
    raises(exceptions.NotFound, lambda: context.create(queue=f"{context.parent}/queues/nowhere"))


@check("a name of another queue, a task without a target and a bad URL are refused")
def refused(context):
    other = f"{context.parent}/queues/other/tasks/order-7"
    raises(exceptions.InvalidArgument, lambda: context.create(name=other))
    raises(
        exceptions.InvalidArgument,
        lambda: context.client.create_task(parent=context.queue, task={}),
    )
    raises(
        exceptions.InvalidArgument,
        lambda: context.create(http_request={"url": "ftp://partner.example/"}),
    )


@check("a queue is read back with its limits")
def queues(context):
    queue = context.client.get_queue(name=context.queue)
    equal(queue.name, context.queue)
    equal(queue.state, tasks_v2.Queue.State.RUNNING)
    assert queue.rate_limits.max_dispatches_per_second > 0
    raises(
        exceptions.NotFound,
        lambda: context.client.get_queue(name=f"{context.parent}/queues/nowhere"),
    )


if __name__ == "__main__":
    [_, address] = sys.argv
    sys.exit(run(Context(address)))
