"""What was measured, and what it comes to."""

from statistics import median

# Rounds that differ by more than this share of their median say nothing.
SPREAD = 0.10


def spread(values):
    """How far the rounds lie apart, by their median; None where there was only one."""
    if len(values) < 2:
        return None
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


class Results:
    """Runs by runtime, work, contender and round."""

    def __init__(self, runs, runtime="current-thread"):
        self.runs = [run for run in runs if run["runtime"] == runtime]

    def keys(self):
        return list(dict.fromkeys(run["work"] for run in self.runs))

    def of(self, key, contender):
        """The lines by round, without the runs that failed."""
        return {
            run["round"]: run["line"]
            for run in self.runs
            if run["work"] == key and run["contender"] == contender and run["line"]
        }

    def median(self, key, contender, name):
        values = [line[name] for line in self.of(key, contender).values()]
        values = [value for value in values if value is not None]
        if not values:
            raise KeyError(f"{key}: {contender} has no {name}")
        return median(values), spread(values)

    def against(self, key, contender, other, base):
        """CPU per message by that of another, round by round; and how far the rounds lie apart."""
        above, below = self.of(key, contender), self.of(other, base)
        name = "cpu_seconds_per_million"
        values = [above[n][name] / below[n][name] for n in sorted(above.keys() & below.keys())]
        if not values:
            raise KeyError(f"{key}: no round of {contender} and {base}")
        return median(values), spread(values)

    def ratio(self, key, contender):
        return self.against(key, contender, key, "floor")

    def per_message(self, key, contender, name):
        """What the server counted, by the messages it delivered."""
        lines = self.of(key, contender).values()
        values = [line["server"][name] / line["server"]["delivered"] for line in lines if line["server"]["delivered"]]
        if not values:
            raise KeyError(f"{key}: the server counted nothing for {contender}")
        # A share near nothing has no meaningful spread of its own.
        return median(values), None if len(values) < 2 else 0.0

    def foreign(self, key):
        """The processor time others took meanwhile, in cores: the median of the runs."""
        values = [run["line"]["foreign_cores"] for run in self.runs if run["work"] == key and run["line"]]
        return median(values) if values else 0.0
