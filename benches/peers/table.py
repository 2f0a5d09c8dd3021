"""The tables of docs/performance.md."""

import re

from results import SPREAD, Results
from work import FLOOR, OFFICIAL, OURS, PEERS, WORK, goals


def sure(pair_spread):
    return pair_spread is not None and pair_spread <= SPREAD


def doubt(pair_spread):
    """What stands behind a figure that its rounds do not bear out."""
    if pair_spread is None:
        return " (one round)"
    return "" if sure(pair_spread) else f" (inconclusive, ±{pair_spread * 50:.0f} %)"


def grid(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def peers(runs, runtime):
    """Everybody's CPU as a multiple of the floor's, with the rate as a multiple of the floor's."""
    results = Results(runs, runtime)
    rows = []
    for work in WORK:
        if FLOOR not in work.contenders or work.key not in results.keys():
            continue
        row = [work.title, cell_of_floor(results, work.key)]
        row += [cell(results, work.key, contender) for contender in [OURS, *PEERS]]
        rows.append(row + [f"{results.foreign(work.key):.2f}"])
    if not rows:
        return "Not measured."
    head = ["work", "floor: CPU s per million (thousand/s)", OURS, *PEERS, "foreign cores"]
    return grid(head, rows)


def cell_of_floor(results, key):
    try:
        (cost, cost_spread), (rate, _) = (results.median(key, FLOOR, name) for name in ("cpu_seconds_per_million", "rate"))
    except KeyError:
        return "failed"
    return f"{cost:.2f} ({rate / 1000:.0f}){doubt(cost_spread)}"


def cell(results, key, contender):
    if not any(run["work"] == key and run["contender"] == contender for run in results.runs):
        return ""
    try:
        (ratio, ratio_spread) = results.ratio(key, contender)
        (rate, _), (floor, _) = (results.median(key, who, "rate") for who in (contender, FLOOR))
    except KeyError:
        return "failed"
    return f"{ratio:.2f} × ({rate / floor:.2f}){doubt(ratio_spread)}"


def held(runs):
    """The row of held acknowledgements, in its own figures."""
    results, rows = Results(runs), []
    for contender in [FLOOR, OURS, *PEERS]:
        try:
            cpu, _ = results.median("held", contender, "cpu_seconds_per_million")
            rate, _ = results.median("held", contender, "rate")
            slowest, _ = results.median("held", contender, "slowest_share")
            bytes_held, _ = results.median("held", contender, "bytes_per_held")
            ids, _ = results.per_message("held", contender, "extended")
        except KeyError:
            continue
        rows.append([contender, f"{rate / 1000:.1f}", f"{slowest:.2f}", f"{cpu:.2f}", f"{bytes_held:.0f}", f"{ids:.3f}"])
    head = ["client", "thousand/s", "slowest second, share of the rate", "CPU s per million", "bytes per held delivery", "ids extended per message"]
    return grid(head, rows) if rows else "Not measured."


def goals_table(runs):
    results, rows = Results(runs), []
    for goal in goals():
        try:
            value, value_spread = goal.figure(results, OURS)
        except (KeyError, ValueError):
            rows.append([goal.title, goal.text, "not measured", "", "", ""])
            continue
        met = value >= goal.bound if goal.above else value <= goal.bound
        if value_spread is None:
            verdict = "one round"
        elif not sure(value_spread):
            # No round lies further from the median than the rounds lie apart.
            worst = value * (1 - value_spread if goal.above else 1 + value_spread)
            each = worst >= goal.bound if goal.above else worst <= goal.bound
            verdict = "in every round" if each else "inconclusive"
        else:
            verdict = "yes" if met else f"**no**, {abs(value / goal.bound - 1) * 100:.0f} % off"
        others = [contender for contender in goal.contenders() if contender in PEERS]
        official = [contender for contender in others if contender in OFFICIAL]
        peers = [contender for contender in others if contender not in OFFICIAL]
        measured = goal.shown.format(value) + doubt(value_spread)
        rows.append([goal.title, goal.text, measured, verdict, best(results, goal, peers), best(results, goal, official)])
    return grid(["work", "goal", "ours", "met", "best peer", "official SDK"], rows)


def best(results, goal, contenders):
    """The best of these, with its name."""
    figures = []
    for contender in contenders:
        try:
            figures.append((*goal.figure(results, contender), contender))
        except KeyError:
            continue
    if not figures:
        return "failed" if contenders else "–"
    value, value_spread, contender = (max if goal.above else min)(figures, key=lambda figure: figure[0])
    return f"{contender}: {goal.shown.format(value)}{doubt(value_spread)}"


def sections(data):
    """The generated parts of the page, by name."""
    runs = data["runs"]
    return {
        "conditions": data["conditions"],
        "goals": goals_table(runs),
        "peers": peers(runs, "current-thread"),
        "peers-multi": peers(runs, "multi-thread"),
        "held": held(runs),
    }


def rewrite(page, data):
    """The page with its generated parts made anew; the words between them are left alone."""
    for name, text in sections(data).items():
        begin, end = f"<!-- measured: {name} -->", f"<!-- end: {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        page, count = pattern.subn(lambda _: f"{begin}\n{text}\n{end}", page)
        if count != 1:
            raise SystemExit(f"the page has {count} places for {name}, not one")
    return page
