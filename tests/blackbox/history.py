#!/usr/bin/env python3
"""What clients see of each object is what one register would have shown them (linearizable), while
nodes are killed, frozen, cut off from one another in one direction or both, wiped, join and leave.

Each seed is a round on a new bucket: a plan of faults is drawn (nemesis.py), clients act until it
is through (history_clients.py), everybody comes back, all objects are read once more through every
proxy, and each object's history is judged (reference/linear.py).  A failure prints the shortest
part of the history that no order explains, and what had been done to whom.

    DFC_SEEDS=1-500 tests/blackbox/history.py       a campaign; 17 alone repeats that plan
    DFC_COPIES=2,3                                  only buckets of so many copies ("2m": majority;
    "ec": slices)
    DFC_TARGETS=5                                   in place of four
    DFC_TROUBLE=cuts,moves                          only such faults
    DFC_READ_FROM=acting                            reads by the acting owner alone; else by any, as
    many by each
    DFC_METASTORE=etcd                              three proxies, one of which is elected
    DFC_MUTANT=copies.others                        targets that leave this out (history_mutants.py)

What `copies: 1` does not promise is left out (docs/project/known-issues.md, "Rebalance"): where
owners change
while a target that is away, cut off or stands still goes on by what it knew."""

import collections
import os
import random
import re
import threading
import time

from copies import wait_repaired
from history_clients import CUT, Client, check_versions, value_of_head
from lib import Failed, check, in_parallel, main, wait_for
from linear import check as judge, missing, read
from nemesis import Nemesis, draw
from wires import WiredCluster

CLIENTS = 6
KEYS = 4
CALM = 0.5  # share of the rounds with copies in which clients write seldom
PAUSE_MOST_SECONDS = 1.5
TOLD_LEAST = 100  # operations with a known outcome in a round
CASES = {
    "1": {"copies": 1},
    "2": {"copies": 2},
    "3": {"copies": 3},
    "2m": {"copies": 2, "write_quorum": "majority"},
    "3m": {"copies": 3, "write_quorum": "majority"},
    "ec": {"copies": 2, "ec": {"data": 2, "parity": 1, "min_size": 1000}},
}
for props in CASES.values():
    if props["copies"] > 1:
        props["read_from"] = os.environ.get("DFC_READ_FROM", "any")
BY_ITSELF = "1,2,3,ec"  # where two owners of three are away much of a round no majority answers
ALONE = (("kills", "freezes", "cuts"), ("moves",))  # with one copy
TOGETHER = (("kills", "freezes", "cuts"), ("kills", "cuts", "moves"), ("kills", "freezes", "moves"),
            ("kills", "freezes", "cuts", "moves"), ("wipes", "moves"), ("wipes", "kills", "freezes",
                                                                        "cuts"),
            ("disks", "kills", "cuts"), ("full", ), ("full", "moves"), ("full", "kills", "cuts"))
HASTE = ["--proxy-arg=--keepalive-timeout=1500ms", "--target-arg=--keepalive-interval=100ms",
         "--proxy-arg=--keepalive-interval=100ms", "--proxy-arg=--read-spread=0"]
HASTE += [f"--{role}-arg=--{name}" for role in ("proxy", "target")
          for name in ("connect-timeout=500ms", "call-timeout=2s", "stall-timeout=4s")]
if os.environ.get("DFC_MUTANT"):
    HASTE.append(f"--target-arg=--faults={os.environ['DFC_MUTANT']}=skip")


def seeds():
    first, _, last = os.environ.get("DFC_SEEDS", "1-3").partition("-")
    return range(int(first), int(last or first) + 1)


class Round:
    """One bucket and its clients."""

    def __init__(self, c, seed, props):
        self.c, self.seed, self.bucket = c, seed, f"r{seed}-{len(c.rounds)}"
        self.keys = [f"k/{i}" for i in range(KEYS)]
        self.over, self.troubles, self.began = threading.Event(), collections.Counter(
        ), time.monotonic()
        self.rng = random.Random(f"pauses {seed}")
        self.calm = props["copies"] > 1 and self.rng.random() < CALM
        self.next_write = 0
        self.proxies = [name for name, n in c.nodes.items() if n["role"] == "proxy"]
        self.make_bucket(props)
        self.clients = [Client(self, i, seed) for i in range(CLIENTS)]

    def make_bucket(self, props):
        self.c.create(self.bucket, **props)
        for node in self.proxies + self.c.targets():
            wait_for(lambda n=node: self.c.get(self.bucket, "none", node=n).json()["code"] ==
                     "object_not_found", f"{node} knows the bucket")

    # What clients ask for.

    def now(self):
        return time.monotonic() - self.began

    def may_write(self):
        """In a calm round names are settled at times: then owners that do not act answer, too."""
        now = self.now()
        if self.calm and now < self.next_write:
            return False
        self.next_write = now + self.rng.uniform(0, PAUSE_MOST_SECONDS)
        return True

    def rest(self):
        self.over.wait(0.02)

    def targets(self):
        return self.c.targets()

    def url(self, node):
        return self.c.url(node)

    def trouble(self, code):
        self.troubles[code] += 1

    # Its course.

    def told(self):
        return sum(client.told for client in self.clients)

    def run(self, nemesis):
        for client in self.clients:
            client.start()
        try:
            nemesis.run()
            wait_for(lambda: self.told() >= TOLD_LEAST or self.over.is_set(), "answers", 120)
        finally:
            self.over.set()
            for client in self.clients:
                client.join()
        for client in self.clients:
            if client.failure is not None:
                raise client.failure

    def histories(self):
        """{key: its operations}, with a last look."""
        histories = {key: [o for client in self.clients for o in client.operations[key]]
                     for key in self.keys}
        asked = [(key, proxy) for key in self.keys for proxy in self.proxies]
        for (key, _), operation in zip(asked, in_parallel(self.look, asked)):
            histories[key].append(operation)
        return histories

    def look(self, asked):
        key, proxy = asked

        said = []

        def answer():
            begin = self.now()
            try:
                reply = self.c.get(self.bucket, key, node=proxy)
            except CUT as e:
                said[:] = [repr(e)]
                return None
            said[:] = [repr(reply)]
            if reply.status == 200:
                return read(value_of_head(reply, f"{key} at the end"), begin, self.now(), who="end",
                            note=proxy)
            return missing(begin, self.now(), who="end",
                           note=proxy) if reply.status == 404 else None

        try:
            return wait_for(answer, f"{key} can be read through {proxy}", 120)
        except Failed as e:
            raise Failed(f"{e}; at last {said}") from e


# --- rounds --------------------------------------------------------------------------------------

def cases(c):
    """Those that this cluster takes."""
    wanted = os.environ.get("DFC_COPIES", BY_ITSELF).split(",")
    taken = []
    for name in wanted:
        reply = c.call("POST", f"/v1/buckets/case-{name}",
                       {"action": "create", "value": CASES[name]})
        if reply.status in (400, 501):
            print(f"        copies {name}: left out ({reply.json()['message']})")
        else:
            reply.expect(201)
            c.destroy(f"case-{name}")
            taken.append(name)
    return taken


def kinds_of(rng, props):
    if "DFC_TROUBLE" in os.environ:
        return os.environ["DFC_TROUBLE"].split(",")
    if props["copies"] == 1:
        return rng.choice(ALONE)
    return rng.choice(TOGETHER)


def may_be_lost(props):
    """Of how many targets the disks: a majority of the owners has them still."""
    return (props["copies"] - 1) // (2 if props.get("write_quorum") == "majority" else 1)


def judge_refusals(round_, nemesis):
    """Where every target is there, and one merely full, every name can be read; how many reads say
    so."""
    def full_then(begin, end):
        return nemesis.is_merely_full(round_.began + begin, round_.began + end)

    for client in round_.clients:
        for begin, end, said in client.unread:
            status = int(re.search(r" (\d{3}) ", said).group(1))
            check(
                status < 500 or not full_then(begin, end),
                f"{begin:.2f} s to {end:.2f} s: refused, with a full target alone in the way: "
                f"{said}"
            )
    return sum(
        full_then(o.begin, o.end) for client in round_.clients
        for operations in client.operations.values() for o in operations
        if o.note.startswith(("GET", "HEAD")))


def judge_all(histories, what):
    """How many of them are not known."""
    unknown = 0
    for key, operations in histories.items():
        verdict = judge(operations)
        check(verdict.ok is not False, f"{what}: {key}: {verdict.story}")
        unknown += verdict.ok is None
    return unknown


def beside(c):
    """How many reads were answered by owners that do not act, since the targets were started."""
    texts = (c.call("GET", "/metrics", node=target).body.decode() for target in c.targets())
    return sum(
        int(n) for text in texts for n in re.findall(r"^dfc_reads_beside_total (\d+)", text, re.M))


def one_round(c, seed, case):
    rng = random.Random(f"{seed} {case}")
    kinds = kinds_of(rng, CASES[case])
    plan = draw(rng, kinds, may_be_lost(CASES[case]) + 1)
    what = f"seed {seed}, copies {case}"
    print(f"        {what}: " + "; ".join(map(str, plan)), flush=True)
    round_ = Round(c, seed, CASES[case])
    c.setting("repair_delay", "100ms" if round_.calm else "10s")
    if round_.calm:
        wait_repaired(c)
    nemesis = Nemesis(c, plan, [(round_.bucket, key) for key in round_.keys])
    c.rounds.append(round_)
    try:
        round_.run(nemesis)
        histories = round_.histories()
        check_versions([s for client in round_.clients for s in client.seen])
        unknown = judge_all(histories, what)
        merely_full = judge_refusals(round_, nemesis)
    except Failed as e:
        raise Failed("\n".join([f"{what}: {e}", *nemesis.said])) from e
    operations = [o for history in histories.values() for o in history]
    print(
        f"            {len(operations)} operations, "
        f"{sum(o.end == float('inf') for o in operations)} in doubt, "
        f"{beside(c)} reads by other owners, {merely_full} while a target was merely full, "
        f"{dict(round_.troubles)}", flush=True)
    c.destroy(round_.bucket)
    return unknown


def test_histories(c):
    c.rounds = []
    c.setting("rebalance_delay", "300ms")
    taken = cases(c)
    check(taken, "no case is left")
    unknown = sum(one_round(c, seed, taken[seed % len(taken)]) for seed in seeds())
    check(unknown <= len(seeds()) * KEYS // 10, f"{unknown} histories could not be judged")


if __name__ == "__main__":
    etcd = os.environ.get("DFC_METASTORE") == "etcd"
    main(make=WiredCluster, proxies=3 if etcd else 2, targets=int(os.environ.get("DFC_TARGETS", 4)),
         metastore="etcd" if etcd else "embedded", args=HASTE)
