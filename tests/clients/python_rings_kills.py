#!/usr/bin/python3
"""Makers, readers and a target are killed (kill -9) while samples pass through a ring.

Makers and readers are processes with dfc.ring.  Each notes in a file what it did, and goes on from
there when it is started again.  Two readers share each generation; a third one polls as fast as it
can.  Each acknowledged sample is read, each sample of a generation once, each generation has exactly
cap of them, and the third reader sees no gap.

DFC_SECONDS (8): for how long each of the two parts."""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

import frame
from lib import WAIT_SECONDS, Cluster, check, equal, main, wait_for

SOURCE = os.path.join(frame.ROOT, "python", "src")
sys.path.insert(0, SOURCE)
import dfc  # noqa: E402 pylint: disable=wrong-import-position
from dfc.ring import Ring, RingReader, RingShare  # noqa: E402 pylint: disable=wrong-import-position

SECONDS = float(os.environ.get("DFC_SECONDS", 8))
CAP, KEEP, MAKERS, READERS = 8, 16, 3, 2
AHEAD = CAP * 6  # samples that makers may be ahead of readers: less than what is kept


def sample_of(name):
    return {"name": name.encode(), "data": hashlib.sha256(name.encode()).digest() * 40}


def name_of(sample):
    name = bytes(sample.kinds["name"].data).decode()
    equal(bytes(sample.kinds["data"].data), sample_of(name)["data"], f"bytes of {name}")
    return name


def rows(path):
    """Of a file of JSON lines; a line that a kill has cut is none."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as f:
        return [json.loads(line) for line in f.read().split("\n")[:-1]]


class Notes:
    def __init__(self, path):
        self.rows = rows(path)
        whole = "".join(json.dumps(row) + "\n" for row in self.rows)
        # In one step: a kill between two would take all notes.
        if os.path.exists(path):
            os.truncate(path, len(whole))
        self.file = open(path, "a", encoding="ascii")  # pylint: disable=consider-using-with

    def add(self, **row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()


# --- the processes ---

class Counted(Ring):
    """Counts the tries of a push: 2 are several."""

    tries = 0

    def _send(self, body, producer, sequence, tries):
        try:
            return super()._send(body, producer, sequence, tries)
        finally:
            self.tries += 2 if tries.doubtful else 1


def read_total(folder):
    return sum(len(rows(os.path.join(folder, f"reader{i}"))) for i in range(READERS))


def make(endpoint, folder, number):
    """Pushes samples until the file `stop` is there.  A push that was under way is repeated."""
    ring = Counted(dfc.Client(endpoint, profile=""), "r")
    notes = Notes(os.path.join(folder, f"maker{number}"))
    done = {row["n"] for row in notes.rows if "ok" in row}
    tried = {row["n"] for row in notes.rows}
    n = max(done, default=-1) + 1
    while not os.path.exists(os.path.join(folder, "stop")) or n in tried:
        if n not in tried and acknowledged(folder) - read_total(folder) > AHEAD:
            time.sleep(0.01)  # readers are behind: nothing is waited for but them
            continue
        notes.add(n=n)
        ring.tries = 0
        ring.push(sample_of(f"{number}-{n}"), producer=f"m{number}", sequence=n)
        notes.add(n=n, ok=ring.tries)
        n += 1


def acknowledged(folder):
    return sum(1 for i in range(MAKERS) for row in rows(os.path.join(folder, f"maker{i}")) if "ok" in row)


def read(endpoint, folder, number):
    """The share of one consumer, from where its notes end, until the generation in `last`."""
    ring = Ring(dfc.Client(endpoint, profile=""), "r")
    notes = Notes(os.path.join(folder, f"reader{number}"))
    share = RingShare(ring, consumer=number, consumers=READERS, after=0, generations=1, timeout=1,
                      ahead=number, on_gone="raise")
    if notes.rows:
        share.restore(notes.rows[-1]["state"])
    while share.state()["after"] < last(folder):
        try:
            for sample in share:
                state = share.state()
                notes.add(g=state["begun"], name=name_of(sample), state=state)
        except dfc.Timeout:
            continue
        equal((share.skipped, share.missed), (0, 0), "skipped and missed")


def last(folder):
    try:
        with open(os.path.join(folder, "last"), encoding="ascii") as f:
            return int(f.read())
    except FileNotFoundError:
        return 1 << 60


# --- the test ---

class Run:
    def __init__(self, c, folder):
        self.c, self.folder = c, folder
        self.processes = {}
        self.ring = Ring(dfc.Client(c.endpoint, profile=""), "r").create(cap=CAP, keep=KEEP, copies=2)
        self.stop, self.failed, self.looks, self.longest = threading.Event(), [], 0, 0.0
        self.full = 0  # generations that have exactly cap samples

    def start(self, what, number):
        out = open(os.path.join(self.folder, f"{what}{number}.out"), "a", encoding="utf-8")
        with out:
            self.processes[what, number] = subprocess.Popen(
                [sys.executable, __file__, what, self.c.endpoint, self.folder, str(number)],
                stdout=out, stderr=out)

    def start_all(self):
        for number in range(MAKERS):
            self.start("make", number)
        for number in range(READERS):
            self.start("read", number)

    def check_alive(self):
        for (what, number), process in self.processes.items():
            if process.poll() not in (None, 0):
                with open(os.path.join(self.folder, f"{what}{number}.out"), encoding="utf-8") as f:
                    check(False, f"{what} {number} has ended: {f.read()[-2000:]}")

    def kill_one(self):
        key = random.choice(list(self.processes))
        self.processes[key].kill()
        self.processes[key].wait()
        self.start(*key)

    def look(self):
        """Polls as fast as it can: a batch is of one generation, and these only grow."""
        try:
            reader, dice, newest = RingReader(self.ring, poll=0), random.Random(1), 0
            while not self.stop.is_set():
                begin = time.monotonic()
                generation, found = reader.batch_of([dice.randrange(CAP) for _ in range(4)])
                self.longest = max(self.longest, time.monotonic() - begin)
                check(generation.number >= newest, f"generation {generation.number} after {newest}")
                check(len(list(map(name_of, found))) == 4, "samples of a batch")
                newest, self.looks = generation.number, self.looks + 1
        except BaseException as e:  # pylint: disable=broad-except
            self.failed.append(e)

    def ends(self, what):
        return all(p.poll() is not None for (kind, _), p in self.processes.items() if kind == what)

    def finish(self):
        """Makers end, what is left becomes a generation, and readers read to the last one."""
        with open(os.path.join(self.folder, "stop"), "w", encoding="ascii"):
            pass
        wait_for(lambda: self.ends("make"), "makers end", WAIT_SECONDS)
        self.check_alive()
        total = acknowledged(self.folder)
        wait_for(lambda: self.swept() and self.ring.head().samples_total >= total, "all in generations",
                 WAIT_SECONDS)
        temporary = os.path.join(self.folder, "last.new")
        with open(temporary, "w", encoding="ascii") as f:
            f.write(str(self.ring.head().number))
        os.rename(temporary, os.path.join(self.folder, "last"))
        wait_for(lambda: self.ends("read"), "readers end", WAIT_SECONDS)
        self.check_alive()

    def swept(self):
        """Swaps what is left; True: nothing is left."""
        try:
            self.ring.swap()
            return False
        except dfc.NotFound:
            return True

    def check_notes(self):
        made = [{**row, "name": f"{i}-{row['n']}"} for i in range(MAKERS)
                for row in rows(os.path.join(self.folder, f"maker{i}"))]
        begun = Counter(row["name"] for row in made if "ok" not in row)
        repeated = {name for name, count in begun.items() if count > 1}
        repeated |= {row["name"] for row in made if row.get("ok", 1) > 1}
        acked = {row["name"] for row in made if "ok" in row}
        found = [row for i in range(READERS) for row in rows(os.path.join(self.folder, f"reader{i}"))]
        names = Counter(row["name"] for row in found)
        check(not acked - set(names), f"lost {len(acked - set(names))}: {sorted(acked - set(names))[:5]}")
        twice = {name for name, count in names.items() if count > 1}
        check(twice <= repeated, f"twice, though pushed once: {sorted(twice - repeated)[:5]}")
        sizes = Counter(row["g"] for row in found)
        newest = max(sizes)
        equal(sorted(sizes), list(range(1, newest + 1)), "generations that were read")
        wrong = {g: n for g, n in sizes.items() if n != CAP and g <= self.full}
        check(not wrong, f"generations that have not {CAP} samples: {wrong}")
        return len(acked), newest, len(twice)


def test_kills(c):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(c, folder)
        try:
            run_all(c, run)
        finally:
            run.stop.set()
            for process in run.processes.values():
                process.kill()
                process.wait()


def run_all(c, run):
    run.start_all()
    run.ring.wait(timeout=WAIT_SECONDS)
    thread = threading.Thread(target=run.look)
    thread.start()
    until, kills = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        run.kill_one()
        kills += 1
        time.sleep(random.uniform(0.2, 0.8))  # they work meanwhile
    run.stop.set()
    thread.join()
    if run.failed:
        raise run.failed[0]
    until, targets = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        target = random.choice(c.targets())
        c.kill(target)
        run.kill_one()
        c.start(target)
        c.wait_node(target, "active")
        run.check_alive()
        targets += 1
    run.full = run.ring.head().number  # later ones may be swapped with fewer
    run.finish()
    acked, generations, twice = run.check_notes()
    check(acked > 50 and run.looks > 10, f"too little was done: {acked} samples, {run.looks} batches")
    print(f"        {kills + targets} kills of processes, {targets} of targets; {acked} samples in "
          f"{generations} generations, {twice} twice; {run.looks} batches, the longest took "
          f"{run.longest * 1000:.0f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] in (["make"], ["read"]):
        {"make": make, "read": read}[sys.argv[1]](*sys.argv[2:4], int(sys.argv[4]))
    else:
        main(Cluster, targets=3, mountpaths=1, args=("--target-arg=--ring-grace=10m",))
