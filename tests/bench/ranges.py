#!/usr/bin/env python3
"""One large cold object from a backend that gives each connection so much: in one piece, and in
ranges (`cold_ranges`).

Three targets that differ in that one parameter, interleaved, beside the backend's own answer to one
connection; and
the first byte of each, which no range may delay.  The backend is the tests' S3 server, in a process
of its own."""

import contextlib
import sys
import time
import urllib.request

import benchlib
from benchlib import MIB
from peers import Cluster
from slow_s3 import apart, create

WIDTHS = (1, 4, 8)
RATE = 25_000_000  # bytes a second, of each connection


def read(url):
    """→ milliseconds to the first byte, and to the last."""
    begun = time.monotonic()
    with urllib.request.urlopen(url) as reply:
        got = len(reply.read(1))
        first = time.monotonic()
        while piece := reply.read(MIB):
            got += len(piece)
        if got != int(reply.headers["Content-Length"]):
            raise RuntimeError(f"{url}: {got} bytes")
    return (first - begun) * 1000, (time.monotonic() - begun) * 1000


def cold(cluster, name):
    result = read(f"{cluster.url}/v1/objects/ranges/{name}")
    cluster.call("POST", "/v1/buckets/ranges", {"action": "evict", "value": {"list": [name]}})
    return result


def main():
    args = benchlib.arguments(__doc__).parse_args()
    args.rounds = 1 if args.quick else args.rounds
    size = 128 * MIB if not args.quick else 4 * MIB
    document = {"machine": benchlib.begin(args), "size": size, "bytes_per_s_of_a_connection": RATE}
    with apart() as s3, benchlib.WorkDir(args.dir) as work, contextlib.ExitStack() as stack:
        s3.make("seed", MIB)
        sides = {"straight": lambda: read(f"{s3.where()}/data/large0")}
        for width in WIDTHS:
            more = [f"--target-arg=--cold-ranges={width}", "--target-arg=--cold-ranges-from=1MiB"]
            cluster = stack.enter_context(Cluster(work / f"dfc{width}", args.build, more=more))
            create(cluster, s3.where(), "ranges", "seed")
            sides[f"{width} at once"] = lambda cluster=cluster, width=width: cold(
                cluster, f"large{width}")
        for number in (0, *WIDTHS):
            s3.make(f"large{number}", size)
        s3.limit(RATE)
        runs = benchlib.interleave(sides, args.rounds)
        s3.limit(None)
    document["runs_ms"] = {
        side: [[round(x, 1) for x in run] for run in of]
        for side, of in runs.items()
    }
    first, whole = ({side: [r[i] for r in of] for side, of in runs.items()} for i in (0, 1))
    document["ms"] = {side: {"first": round(benchlib.median(first[side]), 1),
                             "whole": round(benchlib.median(whole[side]), 1)} for side in runs}
    document["of_one_piece"] = {
        side: benchlib.paired_ratio(whole[side], whole["1 at once"])
        for side in runs
    }
    benchlib.table([
        f"{benchlib.size_text(size)}, {RATE // 1_000_000} MB/s a connection", "first byte, ms",
        "whole, ms", "of one piece"
    ], [[side, *document["ms"][side].values(), document["of_one_piece"][side]["median"]]
        for side in runs])
    benchlib.finish(args, "ranges", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
