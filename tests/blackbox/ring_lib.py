"""Makers and readers of rings, for the tests of them."""

import json
import os
import sys
import time

from lib import ROOT, WAIT_SECONDS, Failed, check

sys.path.insert(0, os.path.join(ROOT, "python", "src"))
from dfc import _frame  # noqa: E402


def frames(*samples):
    return b"".join(bytes(piece) for sample in samples for piece in _frame.make(sample))


def push(c, ring, body, producer=None, sequence=0, **options):
    query = f"?producer={producer}&sequence={sequence}" if producer else ""
    return c.call("POST", f"/v1/rings/{ring}/samples{query}", body, **options)


def status(c, ring):
    return c.call("GET", f"/v1/rings/{ring}/status")


def head(c, ring):
    """The head as any client reads it: an object.  None: there is none yet."""
    reply = c.get(ring, "head")
    return None if reply.status == 404 else json.loads(reply.expect(200).body)


def generation(h, number=None):
    """One of a head's generations; without a number the current one, or None."""
    found = [g for g in h["generations"] if number is None or g["generation"] == number]
    return found[-1] if found else None


def lanes(c, ring):
    return {lane["lane"] for lane in status(c, ring).expect(200).json()["lanes"]}


def samples_of(body):
    return list(_frame.parse(body))


def size_of(g):
    return sum(cut["to"] - cut["from"] for cut in g["cuts"])


def read_cut(c, ring, cut, call=None):
    """All samples of a cut, by as many reads as it takes."""
    at = cut["from"]
    while at < cut["to"]:
        path = (f"/v1/rings/{ring}/samples?lane={cut['lane']}&from={at}&count={cut['to'] - at}")
        reply = (call or c.call)("GET", path).expect(200)
        samples = list(_frame.parse(reply.body))
        check(len(samples) == int(reply.headers["Dfc-Ring-Count"]) > 0, "the count of a reply")
        for sample in samples:
            check(sample.ordinal == at, f"ordinal {sample.ordinal} in place of {at}")
            at += 1
            yield sample


def read_generation(c, ring, g):
    return [s for cut in g["cuts"] for s in read_cut(c, ring, cut)]


def wait_generation(c, ring, number, seconds=WAIT_SECONDS):
    """The head, once it has that generation or a later one."""
    until = time.monotonic() + seconds
    while True:
        h = head(c, ring)
        if h is not None and h["generation"] >= number:
            return h
        if time.monotonic() > until:
            raise Failed(f"ring {ring} has no generation {number}: {h}")
        time.sleep(0.02)
