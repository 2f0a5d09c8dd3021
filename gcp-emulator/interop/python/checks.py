"""A list of checks, each with a name that says what is claimed, and the running of them."""

import sys
import threading
import time
import traceback

CHECKS = []


def check(claim):
    """Puts a function on the list under the claim that it checks."""

    def add(function):
        CHECKS.append((claim, function))
        return function

    return add


def run(context):
    """Runs all checks; answers the process's exit code."""
    failed = 0
    for claim, function in CHECKS:
        begun = time.monotonic()
        try:
            function(context)
        except Exception:  # a check fails with whatever the client raises
            failed += 1
            print(f"FAILED  {claim}", flush=True)
            traceback.print_exc(file=sys.stdout)
        else:
            print(f"ok      {claim} ({time.monotonic() - begun:.1f} s)", flush=True)
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks passed", flush=True)
    return 1 if failed or not CHECKS else 0


def equal(found, expected):
    """Fails unless two values are equal, and shows both."""
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def raises(kind, call):
    """Fails unless the call raises an error of the kind; answers it."""
    try:
        answer = call()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, the call answered {answer!r}")


class Inbox:
    """What a subscriber received, with a wait for enough of it."""

    def __init__(self):
        self._changed = threading.Condition()
        self._messages = []

    def put(self, message):
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def wait(self, count, seconds=30):
        """The messages, once there are `count` of them."""
        return self.wait_for(lambda messages: len(messages) >= count, seconds, f"{count} messages")

    def wait_for(self, enough, seconds=30, what="what was awaited"):
        """The messages, once they are enough by the caller's rule."""
        with self._changed:
            if not self._changed.wait_for(lambda: enough(self._messages), seconds):
                raise AssertionError(
                    f"{what} did not arrive within {seconds} s, {len(self._messages)} messages did"
                )
            return list(self._messages)
