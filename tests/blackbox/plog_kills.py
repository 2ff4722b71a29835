#!/usr/bin/env python3
"""A judge of plogs: processes write one file at random places, over barriers, while targets are
killed (copies: 2) and some of the writers die.  All readers see one file, and each of its bytes is
one that the order allows:

  - of the last phase in which acknowledged writes touch the byte, the last write of one writer
  - what a writer wrote that died before its sync ended, or nothing of it

DFC_SEEDS=1-20 is a campaign, 7 alone repeats that one; DFC_ROUNDS (15): phases of each."""

import os
import random
import threading

from lib import check, equal, in_parallel, main, wait_for
from plog import CREATE, WRITE, Driver, command

WRITERS = 5
ROOM = 4000
GHOST_MOST = 30  # bytes of a write whose writer dies
ROUNDS = int(os.environ.get("DFC_ROUNDS", 15))
SECONDS = 300


def seeds():
    first, _, last = os.environ.get("DFC_SEEDS", "1").partition("-")
    return range(int(first), int(last or first) + 1)


class Judge:
    """What each byte may be."""

    def __init__(self):
        self.size = 0
        self.may = [{0} for _ in range(ROOM)]  # by what was acknowledged
        self.ghosts = [set() for _ in range(ROOM)]  # by writers that died

    def add_ghosts(self, plan):
        for offset, length, byte in plan:
            for at in range(offset, offset + length):
                self.ghosts[at].add(byte)

    def end_phase(self, plans):
        """Each plan is acknowledged, and no order is among them."""
        touched = {}
        for plan in plans:
            last = {}
            for offset, length, byte in plan:
                last.update(dict.fromkeys(range(offset, offset + length), byte))
                self.size = max(self.size, offset + length)
            for at, byte in last.items():
                touched.setdefault(at, set()).add(byte)
        for at, values in touched.items():
            self.may[at] = values

    def truncate(self, length):
        self.size = length
        for at in range(length, ROOM):
            self.may[at] = {0}

    def see(self, seen, when):
        equal(len(seen), self.size, f"the size {when}")
        for at, value in enumerate(seen):
            check(value in self.may[at] | self.ghosts[at],
                  f"byte {at} {when} is {value}, and may be {self.may[at] | self.ghosts[at]}")
            if not self.ghosts[at]:
                self.may[at] = {value}  # from now on


def insist(driver, *words):
    """Until it works: a target that is away is no failure for good."""
    return wait_for(lambda: (lambda got: None if isinstance(got, int) else [got])(
        driver.ask(*words)), f"{words}", SECONDS)[0]


def opened(c, flags=WRITE | CREATE):
    driver = Driver(c, "file")
    insist(driver, "open", flags, 65536)
    return driver


def read(c):
    with Driver(c, "file") as reader:
        insist(reader, "open", 0, 0)
        data = bytearray()
        for run in insist(reader, "read", 0, 2 * ROOM):
            count, _, byte = run.partition("x")
            data += bytes([int(byte)]) * int(count)
        return bytes(data)


class Trouble:
    """One target at a time is killed, and comes back with what it had."""

    def __init__(self, c, rng):
        self.c, self.rng, self.over, self.kills = c, rng, threading.Event(), 0
        self.failure = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            while not self.over.wait(self.rng.random() * 2):
                victim = self.rng.choice(self.c.targets())
                self.c.kill(victim, "-9")
                self.kills += 1
                self.over.wait(self.rng.random())
                self.c.start(victim)
                self.c.wait_node(victim, "active")
        except Exception as e:  # told by __exit__
            self.failure = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *failed):
        self.over.set()
        self.thread.join()
        if self.failure is not None and failed[0] is None:
            raise self.failure


def random_plan(rng, size, ghost):
    plan = []
    for _ in range(rng.randrange(1, 5)):
        most = GHOST_MOST if ghost else ROOM
        offset = rng.randrange(max(1, size - most) if ghost else ROOM - 1)
        length = rng.randrange(1, min(most, (size if ghost else ROOM) - offset) + 1)
        plan.append((offset, length, rng.randrange(1, 256)))
    return plan


def write(driver, plan, dies):
    for part in plan:
        insist(driver, "write", *part)
    if dies:
        driver.send("sync")
        driver.kill()
    else:
        insist(driver, "sync")


def phase(c, rng, judge, writers):
    """All writers write and sync; one may die.  The end of it is the barrier."""
    dying = rng.randrange(WRITERS) if judge.size > GHOST_MOST and rng.random() < 0.3 else None
    plans = [random_plan(rng, judge.size, rank == dying) for rank in range(WRITERS)]
    if dying is not None:
        judge.add_ghosts(plans[dying])
    in_parallel(lambda rank: write(writers[rank], plans[rank], rank == dying), range(WRITERS))
    judge.end_phase([plan for rank, plan in enumerate(plans) if rank != dying])
    if dying is not None:
        writers[dying].__exit__()
        writers[dying] = opened(c)


def change_writers(c, rng, judge, writers):
    rank = rng.randrange(WRITERS)
    if rng.random() < 0.2:
        length = rng.randrange(judge.size + 1)
        insist(writers[rank], "truncate", length)
        insist(writers[rank], "sync")
        judge.truncate(length)
    elif rng.random() < 0.5:
        insist(writers[rank], "close")
        insist(writers[rank], "open", WRITE, 65536)


def one_seed(c, seed):
    rng, judge = random.Random(seed), Judge()
    writers = [opened(c) for _ in range(WRITERS)]
    with Trouble(c, random.Random(-seed)) as trouble:
        for turn in range(ROUNDS):
            phase(c, rng, judge, writers)
            one, two = in_parallel(lambda _: read(c), range(2))
            equal(one, two, f"what two readers see after phase {turn} of seed {seed}")
            judge.see(one, f"after phase {turn} of seed {seed}")
            change_writers(c, rng, judge, writers)
    for w in writers:
        insist(w, "close")
        w.__exit__()
    before = read(c)
    judge.see(before, f"in the end of seed {seed}")
    command(c, "recover", "dfc://b/file", "--timeout", "1s")
    equal(read(c), before, f"the bytes after the recovery of seed {seed}")
    check(command(c, "check", "dfc://b/file").startswith("OK"), "plog check")
    command(c, "flatten", "dfc://b/file")
    equal(c.get("b", "file").expect(200).body, before, f"the flat object of seed {seed}")
    print(f"# seed {seed}: {trouble.kills} kills, {judge.size} bytes")


def test_one_result_that_the_order_allows(c):
    for seed in seeds():
        c.create("b", copies=2)
        one_seed(c, seed)
        c.destroy("b")


if __name__ == "__main__":
    main(targets=4)
