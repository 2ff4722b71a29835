#!/usr/bin/env python3
"""Plogs: files of many writers.  Writers are processes (plog-driver); some are killed."""

import json
import os
import random
import signal
import subprocess

from lib import BUILD, Failed, check, equal, in_parallel, main

WRITE, CREATE, EXCLUSIVE, TRUNCATE = 1, 2, 4, 8
NOT_FOUND, CONFLICT, PRECONDITION = -3, -7, -8
SEGMENT = 65536


class Driver:
    """One process with one handle of a plog."""

    def __init__(self, c, name, bucket="b"):
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "plog-driver"), c.endpoint, bucket, name], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def reply(self):
        """The words after "ok", or the result of the error."""
        line = self.process.stdout.readline()
        if line.startswith("ok"):
            return line.split()[1:]
        check(line.startswith("error"), f"the driver said {line!r}")
        self.message = line
        return int(line.split()[1])

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def do(self, *words):
        got = self.ask(*words)
        if isinstance(got, int):
            raise Failed(f"{words}: {self.message}")
        return got

    def open(self, flags=WRITE | CREATE):
        self.do("open", flags, SEGMENT)

    def read(self, size=1 << 24):
        data = bytearray()
        for run in self.do("read", 0, size):
            count, _, byte = run.partition("x")
            data += bytes([int(byte)]) * int(count)
        return data

    def stat(self):
        return dict(zip(("size", "stored", "segments", "sessions"), map(int, self.do("stat"))))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def read_twice(c, name, bucket="b"):
    """What two readers see, which is the same."""
    with Driver(c, name, bucket) as one, Driver(c, name, bucket) as two:
        one.open(0)
        two.open(0)
        seen = one.read()
        equal(two.read(), seen, "what a second reader sees")
        return seen


def command(c, *words, code=0):
    done = c.dfcctl("plog", *words)
    equal(done.returncode, code, f"exit code of plog {words}: {done.stderr}")
    return done.stdout


def head(c, name):
    return json.loads(c.get("b", name).expect(200).body)


def test_strided_and_a_writer_that_is_killed(c):
    c.create("b")
    ranks, size, records, rounds = 4, 4701, 16, 6

    def byte(rank, index):
        return 1 + (rank * 59 + index * 7) % 255

    def write(rank):
        writer = writers[rank]
        writer.open()
        for turn in range(rounds):
            for index in range(turn * records, (turn + 1) * records):
                writer.do("write", (index * ranks + rank) * size, size, byte(rank, index))
            if rank == 3 and turn == rounds - 1:
                writer.send("sync")
                writer.kill()
                return
            writer.do("sync")
        if rank != 2:
            writer.do("close")

    writers = [Driver(c, "strided") for _ in range(ranks)]
    in_parallel(write, range(ranks))
    seen = read_twice(c, "strided")
    for rank in range(ranks):
        for index in range((rounds - (rank == 3)) * records):
            at = (index * ranks + rank) * size
            equal(set(seen[at:at + size]), {byte(rank, index)}, f"record {index} of rank {rank}")
    with Driver(c, "strided") as d:
        d.open(0)
        equal(d.stat()["sessions"] > 0, True, "sessions are left")
        shown = command(c, "stat", "dfc://b/strided", "-o", "json")
        equal({k: json.loads(shown)[k] for k in d.stat()}, d.stat(), "plog stat")
        command(c, "recover", "dfc://b/strided", "--timeout", "1s")
        d.do("renew")
        equal(d.stat()["sessions"], 0, "sessions after the recovery")
        check(head(c, "strided")["merged"] > 0, "the plog is merged")
    equal(read_twice(c, "strided")[:len(seen)], seen, "the bytes after the recovery")
    writers[2].do("write", 0, 1, 77)  # it was taken for dead, and lives
    writers[2].do("close")
    equal(read_twice(c, "strided")[0], 77, "a write after the recovery")
    check(command(c, "check", "dfc://b/strided").startswith("OK"), "plog check")
    rows = json.loads(command(c, "map", "dfc://b/strided", "-o", "json"))["found"]
    written = len(seen) - read_twice(c, "strided").count(0)
    equal(sum(r["length"] for r in rows), written, "bytes in the map")
    victim = rows[0]["segment"]
    c.put("b", victim, b"x" * len(c.get("b", victim).expect(200).body))
    lines = command(c, "check", "dfc://b/strided", code=6).splitlines()
    check(victim in lines[0] and lines[-1].startswith("FAILED"), "plog check of damage")
    for w in writers:
        w.__exit__()


def test_overlaps_have_one_result(c):
    rng = random.Random(24)
    ranks, room = 4, 3000
    writers = [Driver(c, "overlaps") for _ in range(ranks)]
    for w in writers:
        w.open()
    plain, size = bytearray(room), 0

    def write(rank):
        for offset, length, byte in plans[rank]:
            writers[rank].do("write", offset, length, byte)
        writers[rank].do("sync")

    for turn in range(12):
        plans = []
        for _ in range(ranks):
            plans.append([(offset, rng.randrange(1, room - offset), rng.randrange(1, 256))
                          for offset in (rng.randrange(room - 1) for _ in range(3))])
        if turn == 6:
            writers[0].do("truncate", 100)
            writers[0].do("sync")
            plain[100:], size = bytes(room - 100), 100
        in_parallel(write, range(ranks))  # the end is the barrier
        may = [set() for _ in range(room)]
        for plan in plans:
            last = {}
            for offset, length, byte in plan:
                last.update(dict.fromkeys(range(offset, offset + length), byte))
                size = max(size, offset + length)
            for at, value in last.items():
                may[at].add(value)
        seen = read_twice(c, "overlaps")
        equal(len(seen), size, f"the size after turn {turn}")
        for at, value in enumerate(seen):
            check(value in (may[at] or {plain[at]}), f"byte {at} of turn {turn} is {value}")
        plain[:size] = seen
    for w in writers:
        w.do("close")
        w.__exit__()
    equal(head(c, "overlaps")["size"], size, "the size in the head")
    equal(read_twice(c, "overlaps"), plain[:size], "the bytes after the merge")


def test_large_writes_and_empty_files(c):
    with Driver(c, "large") as d:
        equal(d.ask("open", 0, 0), NOT_FOUND, "a plog that is absent")
        d.open()
        equal(d.read(), b"", "an empty plog")
        d.do("write", 5, 3 * SEGMENT + 1, 9)
        d.do("sync")
        equal(d.stat(), {"size": 3 * SEGMENT + 6, "stored": 3 * SEGMENT + 1, "segments": 4,
                         "sessions": 1}, "stat")
        d.do("close")
        d.open(WRITE | CREATE)
        equal(d.ask("open", WRITE | CREATE | EXCLUSIVE, 0), CONFLICT, "exclusive")
    equal(read_twice(c, "large"), bytes(5) + bytes([9]) * (3 * SEGMENT + 1), "the bytes")


def test_a_file_that_is_gone(c):
    with Driver(c, "gone") as writer, Driver(c, "gone") as other:
        writer.open()
        writer.do("write", 0, 10, 1)
        writer.do("sync")
        writer.do("write", 0, 10, 2)
        other.do("unlink")
        equal(writer.ask("sync"), PRECONDITION, "a sync after the unlink")
        other.open()
        other.do("write", 0, 5, 3)
        other.do("close")
        equal(writer.ask("close"), PRECONDITION, "a close after the unlink")
        writer.do("drop")
        equal(read_twice(c, "gone"), b"\3" * 5, "the new file")
        equal(other.ask("recover", 1000), ["0"], "a recovery of a file that is closed")
        other.open(WRITE | TRUNCATE)
        other.do("close")
        equal(read_twice(c, "gone"), b"", "a truncated file")
    command(c, "stat", "dfc://b/absent", code=3)
    check("Size:" in command(c, "stat", "dfc://b/gone"), "plog stat for people")
    c.put("b", "plain", b"bytes")
    command(c, "recover", "dfc://b/plain", code=2)
    with Driver(c, "plain") as d:
        equal(d.ask("open", 0, 0), -2, "an object that is no plog")
        check("no plog" in d.message, d.message)


if __name__ == "__main__":
    main()
