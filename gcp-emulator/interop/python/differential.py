"""The same calls to Google's Pub/Sub emulator and to ours: every difference is listed, with its reason.

    python differential.py GOOGLE OURS DIFFERENCES.md

Both servers are fresh. Each step of each case has one answer in words, free of times and ids. Fails on
a difference that is not listed, on one listed with other answers, and on one listed that is none.
"""

import concurrent.futures
import sys
import traceback

import calls
import cases_admin
import cases_delivery
import cases_publish
import cases_seek
import cases_stream


FEWEST_STEPS = 300  # a run of fewer has not asked what it should


def run(address):
    """All answers of one server, and the texts of its errors: {"case: step": words}."""
    server = calls.Server(address)
    modules = [cases_admin, cases_publish, cases_delivery, cases_stream, cases_seek]
    cases = [case for module in modules for case in module.CASES]
    answers, texts = {}, {}
    # Each case has resources of its own, so they wait for their leases side by side.
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        running = [(name, pool.submit(run_case, server, name, case)) for name, case in cases]
        for name, case in running:
            notes = case.result()
            answers |= {f"{name}: {step}": answer for step, answer in notes.answers.items()}
            texts |= {f"{name}: {step}": text for step, text in notes.texts.items()}
    return answers, texts


def run_case(server, name, case):
    notes = calls.Notes()
    try:
        case(calls.Scene(server, name), notes)
    except Exception as error:  # the server answered what the case cannot go on from
        traceback.print_exc(file=sys.stdout)
        notes("the case went on to its end", f"no: {type(error).__name__}")
    else:
        notes("the case went on to its end", "yes")
    return notes


def cell(text):
    """A text as it stands in a cell of the table."""
    text = text.replace("|", "/").replace("\n", " ").strip()
    return text if len(text) <= 300 else f"{text[:300]}…"


def listed(path):
    """The rows of both tables, by what they are about: {(step,) or (google, ours): the rest}."""
    tables = {4: {}, 3: {}}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("| ") or line.startswith(("| ---", "| step |", "| Google")):
                continue
            cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
            if len(cells) not in tables or not all(cells):
                sys.exit(f"{path}: a row has an empty or a missing cell: {line}")
            *about, reason = cells
            rows = tables[len(cells)]
            key, value = (about[0], about[1:]) if len(cells) == 4 else (tuple(about), None)
            if key in rows:
                sys.exit(f"{path} lists {key!r} twice")
            rows[key] = (value, reason)
    return tables[4], tables[3]


def compare(google, ours):
    """The differences in answers by step, and in the texts of equal errors by pair."""
    (google, google_texts), (ours, our_texts) = google, ours
    answers = {}
    for step in dict.fromkeys([*google, *ours]):
        pair = [cell(side.get(step, "(not reached)")) or "(nothing)" for side in (google, ours)]
        if pair[0] != pair[1]:
            answers[step] = pair
    pairs = {}
    for step in google_texts.keys() & our_texts.keys() - answers.keys():
        pair = tuple(cell(side[step]) or "(nothing)" for side in (google_texts, our_texts))
        if pair[0] != pair[1]:
            pairs[pair] = step
    return answers, dict(sorted(pairs.items()))


def main():
    [_, google, ours, path] = sys.argv
    expected_answers, expected_texts = listed(path)
    google, ours = run(google), run(ours)
    answers, texts = compare(google, ours)
    wrong = []
    for step, pair in answers.items():
        row = f"| {step} | {pair[0]} | {pair[1]} |"
        if step not in expected_answers:
            wrong.append(f"not listed:      {row}")
        elif expected_answers[step][0] != pair:
            wrong.append(f"listed otherwise: {row}")
    for step in expected_answers.keys() - answers.keys():
        both = cell(ours[0].get(step, "(no such step)"))
        wrong.append(f"listed, but none: | {step} | both: {both} |")
    for pair, step in texts.items():
        if pair not in expected_texts:
            wrong.append(f"not listed:      | {pair[0]} | {pair[1]} | ({step})")
    for pair in expected_texts.keys() - texts.keys():
        wrong.append(f"listed, but none: | {pair[0]} | {pair[1]} |")
    steps = len(google[0].keys() | ours[0].keys())
    if steps < FEWEST_STEPS:
        wrong.append(f"only {steps} steps were asked, {FEWEST_STEPS} are expected")
    for problem in wrong:
        print(problem)
    print(
        f"{steps} steps: {len(answers)} answers and {len(texts)} texts differ,"
        f" {len(expected_answers)} and {len(expected_texts)} are listed, {len(wrong)} are wrong"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
