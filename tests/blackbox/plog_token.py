#!/usr/bin/env python3
"""Tokens of plogs: the ranks of a job open one file by the token of rank 0, and share its record.
Each rank is a process; rank 0 closes first or last, or is killed."""

import re

from lib import check, equal, in_parallel, main, wait_for
from plog import PRECONDITION, SEGMENT, Driver, command, head, read_twice

RANKS = 8  # by token
SIZE = 4701
INVALID = -2
CALL = re.compile(r'dfc_http_requests_total\{route="(object_\w+)",code="\dxx"\} (\d+)')


def calls(c):
    """{route: calls of clients}: all of them ask the proxy first."""
    counts = {}
    for route, count in CALL.findall(c.call("GET", "/metrics").expect(200).body.decode()):
        counts[route] = counts.get(route, 0) + int(count)
    return counts


def since(c, before):
    return {route: n - before.get(route, 0) for route, n in calls(c).items() if n > before.get(route, 0)}


def objects(c, part, bucket="b"):
    return [n for n in c.names(bucket, prefix=".dfc-plog/") if f"/{part}/" in n]


def byte(rank, turn):
    return 1 + (rank * 31 + turn * 7) % 255


class Job:
    """Rank 0, and ranks that have its token."""

    def __init__(self, c, name, bucket="b", ranks=RANKS):
        self.c, self.name, self.bucket, self.turns = c, name, bucket, 0
        self.first = Driver(c, name, bucket)
        self.first.open()
        self.token, = self.first.do("share")
        self.ranks = [Driver(c, name, bucket) for _ in range(ranks)]
        self.expected = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for d in [self.first, *self.ranks]:
            d.__exit__()

    def open(self):
        for d in self.ranks:
            d.do("token", SEGMENT, self.token)

    def write(self, then="sync"):
        """Each rank writes a piece."""
        def write(rank):
            at = (self.turns * len(self.ranks) + rank) * SIZE
            self.ranks[rank].do("write", at, SIZE, byte(rank, self.turns))
            self.ranks[rank].do(then)

        in_parallel(write, range(len(self.ranks)))
        self.expected += b"".join(bytes([byte(rank, self.turns)]) * SIZE for rank in range(len(self.ranks)))
        self.turns += 1
        equal(read_twice(self.c, self.name), self.expected, f"the bytes after turn {self.turns}")

    def sessions(self):
        with Driver(self.c, self.name) as d:
            d.open(0)
            return d.stat()["sessions"]


def test_one_record_and_few_calls(c):
    c.create("b")
    with Job(c, "job") as job:
        equal(len(objects(c, "o")), 1, "records of rank 0")
        before = calls(c)
        job.open()
        equal(since(c, before), {}, "calls of the opens by token")
        for rank, d in enumerate(job.ranks):
            d.do("write", rank * 2 * SEGMENT, SEGMENT, byte(rank, 0))
            d.send("write", rank * 2 * SEGMENT, 1, byte(rank, 0))  # the first segment is full, and stored
        for d in job.ranks:
            equal(d.reply(), [], "a write")
        wait_for(lambda: since(c, before).get("object_put") == RANKS, "a segment of each rank")
        equal(since(c, before), {"object_put": RANKS, "object_list": RANKS}, "calls of the first segments")
        before = calls(c)
        for d in job.ranks:
            d.do("sync")
        equal(since(c, before), {"object_put": 2 * RANKS, "object_get": 2 * RANKS}, "calls of the syncs")
        in_parallel(lambda d: d.do("write", 0, 1, 9) or d.do("sync"), job.ranks)
        equal((len(objects(c, "o")), job.sessions()), (1, 1), "records, and sessions")
        before = calls(c)
        for d in job.ranks:
            d.do("close")
        equal(since(c, before), {"object_get": RANKS}, "calls of the closes")
        job.first.do("close")
        equal((objects(c, "o"), job.sessions()), ([], 0), "records after rank 0 has closed last")
        equal(head(c, "job")["size"], (2 * RANKS - 1) * SEGMENT, "the size in the head")
    c.destroy("b")


def test_rank_0_is_killed(c):
    c.create("b")
    with Job(c, "job") as job:
        job.open()
        job.write()
        job.first.do("write", 0, 1, 99)
        job.first.kill()  # and takes that with it, which it had not synced
        job.write()
        equal(job.sessions(), 1, "sessions with a record whose owner is dead")
        command(c, "recover", "dfc://b/job", "--timeout", "1s")
        equal(objects(c, "o"), [], "records after the recovery")
        job.write()
        equal(job.sessions(), RANKS, "sessions: each rank has made its own")
        job.ranks[0].kill()
        command(c, "recover", "dfc://b/job", "--timeout", "1s")
        for d in job.ranks[1:]:
            d.do("close")
        equal(read_twice(c, "job"), job.expected, "the bytes in the end")
        check(command(c, "check", "dfc://b/job").startswith("OK"), "plog check")
    c.destroy("b")


def test_rank_0_closes_first(c):
    c.create("b")
    with Job(c, "job") as job:
        job.open()
        job.write()
        job.first.do("close")
        job.write("close")
        equal((objects(c, "o"), job.sessions()), ([], 0), "records after all have closed")
        equal(head(c, "job")["size"], len(job.expected), "the size in the head")
        job.open()  # the token is as good as the name
        job.write("close")
        equal(objects(c, "o"), [], "records after the second open by the old token")
    c.destroy("b")


def test_tokens_that_are_refused(c):
    c.create("b")
    with Job(c, "job", ranks=2) as job:
        damaged = job.token[:20] + ("A" if job.token[20] != "A" else "B") + job.token[21:]
        for text in (damaged, job.token[:-1], job.token + "A", "dfcplog2.AAAA", "x"):
            equal(job.ranks[0].ask("token", SEGMENT, text), INVALID, f"the token {text}")
        job.open()  # twice by one rank: two writers
        job.write()
        equal(len({n.split("/s/")[1].split("-")[1] for n in objects(c, "s")}), 2, "writers")
        for d in job.ranks:
            d.do("write", 0, 1, 5)
        job.first.do("unlink")
        equal([d.ask("sync") for d in job.ranks], [PRECONDITION] * 2, "syncs after the unlink")
        job.first.do("drop")
        job.first.open()  # another plog of the name
        equal([d.ask("sync") for d in job.ranks], [PRECONDITION] * 2, "syncs of a plog that is replaced")
        for d in job.ranks:
            d.do("drop")
        job.open()
        for d in job.ranks:
            d.do("write", 0, 1, 5)
        equal([d.ask("close") for d in job.ranks], [PRECONDITION] * 2, "closes by an old token")
        equal(read_twice(c, "job"), b"", "the bytes of the other plog")
    c.destroy("b")


if __name__ == "__main__":
    main()
