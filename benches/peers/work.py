"""What is measured, and what was to be reached."""

from dataclasses import dataclass, field

# Who is compared: the program, and its directory below the two target directories.
OURS, FLOOR = "ours", "floor"
PEERS = {
    "google-cloud-pubsub": "official",
    "gcloud-pubsub": "gcloud",
    "ya-gcp": "ya",
    "google-cloud-tasks-v2": "official-tasks",
}
PUBSUB = ["google-cloud-pubsub", "gcloud-pubsub", "ya-gcp"]
TASKS = ["google-cloud-tasks-v2"]
# Google's own.
OFFICIAL = ["google-cloud-pubsub", "google-cloud-tasks-v2"]


@dataclass
class Work:
    """One row: the same work for every contender."""

    key: str
    title: str
    mode: str
    server: list = field(default_factory=list)
    # For everybody, and for ours alone.
    flags: list = field(default_factory=list)
    ours: list = field(default_factory=list)
    contenders: list = field(default_factory=lambda: [FLOOR, OURS])
    warm_up: float = 1.0
    # At least so long, whatever is asked: a second's work says nothing where acks are held for ten.
    at_least: float = 0.0
    # Measured on both runtimes.
    both: bool = False
    # At most three rounds, two where a round takes minutes, and not in a quick run.
    long: bool = False


def receive(key, title, payload, **more):
    server = ["--payload-bytes", str(payload)]
    return Work(key, title, "receive", server, **more)


def publish(key, title, payload, batch, **more):
    flags = ["--payload-bytes", str(payload), "--batch", str(batch), "--in-flight", "10"]
    return Work(key, title, "publish", flags=flags + more.pop("flags", []), **more)


def create(key, title, **more):
    return Work(key, title, "create", flags=more.pop("flags", ["--in-flight", "1000"]), **more)


# With checkpoints a twentieth of a second apart no more is held than the peers hold; with the
# usual second some 10^6 acknowledgements are. Told the limit at once: how it grows is not measured.
OFTEN = ["--checkpoint-secs", "0.05"]
SECOND = ["--checkpoint-secs", "1", "--outstanding", "8000000", "--first-outstanding", "8000000"]
HELD = ["--hold-secs", "10", "--outstanding", "3000000"]

ALL = [FLOOR, OURS, *PUBSUB]
WORK = [
    receive("receive-16", "receive, 16 B, checkpoint every 0.05 s", 16, ours=OFTEN, contenders=ALL, both=True),
    receive("receive-16-second", "the same, checkpoint every second", 16, ours=SECOND, warm_up=2.5, at_least=4),
    receive("receive-1k", "receive, 1 KiB, checkpoint every 0.05 s", 1024, ours=OFTEN, contenders=ALL, both=True),
    receive("receive-1k-second", "the same, checkpoint every second", 1024, ours=SECOND, warm_up=2.5, at_least=4),
    receive("receive-10k", "receive, 10 KiB, checkpoint every 0.05 s", 10240, ours=OFTEN, contenders=ALL),
    receive("receive-10k-second", "the same, checkpoint every second", 10240, ours=SECOND, warm_up=2.5, at_least=4),
    Work(
        "held",
        "acks held 10 s, 100,000/s, 1 KiB",
        "receive",
        ["--payload-bytes", "1024", "--rate", "100000"],
        flags=HELD,
        ours=["--first-outstanding", "3000000"],
        contenders=ALL,
        warm_up=11,
        at_least=30,
    ),
    *(
        receive(
            f"interval-{seconds}",
            f"receive at 1,500/s, checkpoint every {seconds} s, default settings",
            16,
            ours=["--checkpoint-secs", str(seconds)],
            contenders=[OURS],
            # The limit told to the server begins at 1,000 and grows fourfold with a commit.
            warm_up=max(1.0, 5.0 * seconds),
            at_least=2.0 * seconds,
            long=seconds >= 10,
        )
        for seconds in (0.05, 1, 10, 60)
    ),
    publish("publish-1k-100", "publish, 1 KiB, batches of 100", 1024, 100, contenders=ALL, both=True),
    publish("publish-1k-1000", "publish, 1 KiB, batches of 1000", 1024, 1000, contenders=ALL, both=True),
    publish("publish-16-1000", "publish, 16 B, batches of 1000", 16, 1000, contenders=ALL),
    publish("one-destination", "publish, 1 KiB, batches of 100, one topic", 1024, 100, contenders=[OURS]),
    publish(
        "1000-destinations",
        "publish, 1 KiB, batches of 100, 1,000 topics in turn",
        1024,
        100,
        ours=["--destinations", "1000"],
        contenders=[OURS],
    ),
    create("create", "create, 1 KiB, 1,000 in flight, one call per task", contenders=[FLOOR, OURS, *TASKS], both=True),
    create("create-batch", "create, 1 KiB, batches of 100", ours=["--batch", "100"], contenders=[OURS]),
    *(
        create(
            f"create-{channels}-channels",
            f"create, server 20 ms and 100 streams per connection, {channels} channel(s)",
            server=["--delay-ms", "20", "--streams-per-connection", "100"],
            ours=["--channels", str(channels)],
            contenders=[OURS],
        )
        for channels in (1, 8)
    ),
]
# Just below what the default `outstanding` admits at the longest interval: 100,000 in 60 s, 1,666/s.
for work in WORK:
    if work.key.startswith("interval"):
        work.server += ["--rate", "1500"]


@dataclass
class Goal:
    """What was to be reached: a figure of the results for a contender, and its bound."""

    title: str
    text: str
    figure: callable
    bound: float
    above: bool = False
    shown: str = "{:.2f}"
    # The row whose contenders have the same figure; None where it compares ours with ours.
    key: str = None

    def contenders(self):
        return next((work.contenders for work in WORK if work.key == self.key), [])


def widest(spreads):
    return None if None in spreads else max(spreads)


def by_floor(title, text, key, bound):
    """A goal for the CPU of a message, as a multiple of the floor's."""

    def figure(results, contender):
        return results.ratio(key, contender)

    return Goal(title, text, figure, bound, shown="{:.2f} × floor", key=key)


def goals():
    """The goals in the order of the table."""

    def extended(results, contender):
        return results.per_message("held", contender, "extended")

    def held_bytes(results, contender):
        return results.median("held", contender, "bytes_per_held")

    def sag(results, contender):
        return results.median("held", contender, "slowest_share")

    def intervals(results, _):
        keys = [key for key in results.keys() if key.startswith("interval-")]
        rates = [results.median(key, OURS, "rate") for key in keys]
        spreads = [spread for _, spread in rates]
        share = min(rate for rate, _ in rates) / max(rate for rate, _ in rates)
        return share, widest(spreads)

    def quotient(over, under, name):
        def figure(results, _):
            (a, spread_a), (b, spread_b) = (results.median(key, OURS, name) for key in (over, under))
            return a / b, widest([spread_a, spread_b])

        return figure

    def batch(results, _):
        return results.against("create-batch", OURS, "create", FLOOR)

    return [
        by_floor("receive + checkpointed ack, 16 B, checkpoint every 0.05 s", "≤ 1.0 × floor", "receive-16", 1.0),
        by_floor("the same, every second (10⁶ held)", "≤ 1.0 × floor", "receive-16-second", 1.0),
        by_floor("receive + checkpointed ack, 1 KiB, every 0.05 s", "≤ 1.0 × floor", "receive-1k", 1.0),
        by_floor("the same, every second", "≤ 1.0 × floor", "receive-1k-second", 1.0),
        by_floor("receive + checkpointed ack, 10 KiB, every 0.05 s", "≤ 1.1 × floor", "receive-10k", 1.1),
        by_floor("the same, every second", "≤ 1.1 × floor", "receive-10k-second", 1.1),
        by_floor("acks held 10 s at 100,000/s: CPU", "≤ 1.1 × floor", "held", 1.1),
        Goal("– memory per held delivery", "≤ 230 bytes", held_bytes, 230, shown="{:.0f} bytes", key="held"),
        Goal("– ids extended per message", "< 0.05", extended, 0.05, shown="{:.3f}", key="held"),
        Goal("– the slowest second, as a share of the rate", "≥ 0.90", sag, 0.9, True, key="held"),
        Goal("receive at 1,500/s, default settings, intervals of 0.05, 1, 10, 60 s: slowest by fastest", "≥ 0.90", intervals, 0.9, True),
        by_floor("publish 1 KiB, batches of 100", "≤ 0.7 × floor", "publish-1k-100", 0.7),
        by_floor("publish 1 KiB, batches of 1000", "≤ 1.0 × floor, try 0.7", "publish-1k-1000", 1.0),
        by_floor("publish 16 B, batches of 1000", "≤ 1.0 × floor", "publish-16-1000", 1.0),
        Goal("publish 1 KiB to 1,000 destinations: CPU by that of one", "≤ 1.3", quotient("1000-destinations", "one-destination", "cpu_seconds_per_million"), 1.3),
        by_floor("create 1 KiB tasks, one call per task", "≤ 1.0 × floor", "create", 1.0),
        Goal("– 20 ms, 100 streams: rate on 8 channels by that on one", "≥ 7", quotient("create-8-channels", "create-1-channels", "rate"), 7, True, "{:.1f}"),
        Goal("create 1 KiB tasks in batches of 100", "≤ 0.1 × the floor of single calls", batch, 0.1, shown="{:.2f} × floor"),
    ]
