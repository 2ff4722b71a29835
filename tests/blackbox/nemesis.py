"""What befalls a cluster: a plan of faults, drawn from a seed before anything happens.

    plan = draw(rng, kinds, copies)  # steps, each begun `at` seconds after the start, for `hold`
    seconds
    Nemesis(c, plan).run()           # does them, and mends everything at the end

A fault is a row of nemesis_faults.py: how it begins, how it ends, and how many may lose something
by it.

Victims are drawn as numbers, and picked among those that are there when the step begins, so that a
plan repeats on a cluster that has grown."""

import contextlib
import dataclasses
import http.client
import json
import os
import signal
import sys
import threading
import time

from lib import ROOT, Failed, escape, wait_for
from nemesis_faults import FAULTS, pick

sys.path.insert(0, os.path.join(ROOT, "deploy", "local"))

from localcluster.process import Process  # noqa: E402

HOLD_SECONDS = (0.05, 3.5)  # around the time after which a node is called unreachable
SPREAD_SECONDS = 2.0  # within which the steps of a plan begin
STEPS = 3
PATIENCE_SECONDS = 15
GRACE_SECONDS = 1.0  # after a target is active in the map, until all know
NEVER = float("inf")
CUT = (OSError, http.client.HTTPException)


@dataclasses.dataclass
class Step:
    fault: str
    at: float
    hold: float
    draws: list  # numbers in [0, 1) that choose the victims

    def __str__(self):
        return f"{self.fault} at {self.at:.2f} s for {self.hold:.2f} s ({self.draws[0]:.3f})"


def draw(rng, kinds, copies=1):
    """A plan of faults of these kinds.  Where disks are lost there are fewer victims than
    copies."""
    left = copies - 1 if "wipes" in kinds else STEPS * 9
    plan = []
    for _ in range(rng.randrange(1, STEPS + 1)):
        names = [name for name, f in FAULTS.items() if f.what in kinds and f.victims <= left
                 for _ in range(f.weight)]
        if names:
            name = rng.choice(names)
            left -= FAULTS[name].victims
            plan.append(Step(name, rng.uniform(0, SPREAD_SECONDS), rng.uniform(*HOLD_SECONDS),
                             [rng.random() for _ in range(4)]))
    return plan


# --- doing it ------------------------------------------------------------------------------------

class Nemesis:
    """Does a plan, each step in a thread of its own; what a node's end or start takes keeps nobody
    waiting."""

    def __init__(self, c, plan, names=(), targets_max=6):
        """names: (bucket, object), of which acting owners are victims."""
        self.c, self.plan, self.names, self.targets_max = c, plan, list(names), targets_max
        self.lock = threading.Lock()
        self.background, self.failures, self.said = [], [], []
        self.starts_with = {}  # node: arguments of every start from now on
        self.began = None
        self.full, self.troubled = [], []  # (begin, end)

    def say(self, step, what):
        self.said.append(f"{time.monotonic() - self.began:6.2f} s: {what}, for {step.hold:.2f} s")

    def proxies(self):
        return [name for name, n in self.c.nodes.items() if n["role"] == "proxy"]

    def members(self):
        return self.proxies() + self.c.targets()

    def two(self, step):
        """A target, and another node."""
        a = pick(self.c.targets(), step.draws[0])
        b = pick([m for m in self.members() if m != a], step.draws[1])
        return (a, b) if step.draws[2] < 0.5 else (b, a)

    def primary(self):
        """As a proxy that answers knows it."""
        for proxy in self.proxies():
            with contextlib.suppress(Failed, KeyError, *CUT):
                return self.c.call("GET", "/v1/cluster", node=proxy, timeout=1).json()["primary"]
        return self.proxies()[0]

    def acting(self, draw_):
        """The target to which clients are sent for one of the names."""
        bucket, name = pick(self.names, draw_)
        for proxy in self.proxies():
            with contextlib.suppress(*CUT):
                reply = self.c.call("GET", f"/v1/objects/{bucket}/{escape(name)}", node=proxy,
                                    follow=False, timeout=1)
                there = reply.headers.get("Location", "")
                for target in self.c.targets():
                    if there.startswith(self.c.url(target) + "/"):
                        return target
        return pick(self.c.targets(), draw_)

    def await_state(self, node, state):
        """Until a proxy has heard of it, or other steps have seen to it that it will not be so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and self.state(node) != state:
            time.sleep(0.05)

    def state(self, node):
        for proxy in self.proxies():
            with contextlib.suppress(Failed, KeyError, *CUT):
                nodes = self.c.call("GET", "/v1/cluster", node=proxy, timeout=1).json()["nodes"]
                return next((n["state"] for n in nodes if n["id"] == node), None)
        return None

    # Processes.  One that another step has ended already is left alone; a pid alone would be taken
    # for
    # another's, or for a thread's, that has the number now.

    def process(self, node):
        """The one that runs, or stands still, or None."""
        with open(os.path.join(self.c.dir, "cluster.json"), encoding="utf-8") as f:
            n = next(n for n in json.load(f)["nodes"] if n["name"] == node)
        process = Process(n["pid"], n["start_time"])
        return process if process.pid is not None and process.alive() else None

    def send(self, node, number):
        process = self.process(node)
        return process if process is not None and process.signal(number) else None

    def end_process(self, node, number):
        """Returns it, if it had not ended."""
        self.c.ended_by_test.add(node)
        process = self.send(node, number)
        if number == signal.SIGKILL:
            self.await_end(node, process)
        return process

    @staticmethod
    def await_end(node, process):
        if process is not None:
            wait_for(lambda: not process.alive(), f"the end of {node}")

    def start_now(self, node, process, *args):
        """When that process has ended, unless somebody else has started another."""
        self.await_end(node, process)
        with self.lock:
            if self.process(node) is None:
                self.begin(self.c.start, node, *self.starts_with.get(node, ()), *args)
                self.c.ended_by_test.discard(node)

    def start(self, node, process):
        """What that waits for may wait for other steps' ends."""
        self.in_background(self.start_now, node, process)

    def add_target(self, *args):
        """One at a time: its name and its wires follow from who is there."""
        with self.lock:
            before = set(self.c.targets())
            self.begin(self.c.add_target, *args)
            self.c.nodes = {n["name"]: n for n in self.c.status()}
            return next(iter(set(self.c.targets()) - before), None)

    @staticmethod
    def begin(function, *args):
        """A start that does not insist on being through soon: it may need what another step has
        ended, and
        keeps others from starting that."""
        with contextlib.suppress(Failed):
            function(*args, "--ready-seconds=3")

    def in_background(self, function, *args):
        def guarded():
            try:
                function(*args)
            except Exception as e:  # told by run()
                self.failures.append(e)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        self.background.append(thread)

    # Links, and owners.

    def cut(self, links):
        self.c.wires.cut(links)

    def heal(self, links, late):
        self.c.wires.heal(links, late)

    def act(self, action, target):
        """An operator's wish, who does not insist."""
        with contextlib.suppress(*CUT):
            self.c.call("PUT", "/v1/cluster", {"action": action, "name": target}, timeout=5)

    def ask_node(self, target, path, body):
        """The status, or None: nobody has answered."""
        with contextlib.suppress(*CUT):
            return self.c.call("PUT", path, body, node=target, timeout=5).status
        return None

    def insist(self, target, path, body):
        """What is refused for the moment is asked for again; not of one that another step has
        ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.ask_node(target, path, body) == 409 and time.monotonic() < deadline:
            time.sleep(0.05)

    # When every target was there, and one of them full, a read has no reason to fail.

    def one(self, step):
        try:
            time.sleep(step.at)
            times = [time.monotonic()]
            end = FAULTS[step.fault].begin(self, step)
            times.append(time.monotonic())
            time.sleep(step.hold + FAULTS[step.fault].longer)
            times.append(time.monotonic())
            end()
            times.append(time.monotonic())
            self.note_times(FAULTS[step.fault].what, *times)
        except Exception as e:  # told by run()
            self.failures.append(e)

    def note_times(self, what, begin, begun, ends, ended):
        if what == "full":
            self.full += [(begun, ends)]
            self.troubled += [(begin, begun + GRACE_SECONDS), (ends, ended + GRACE_SECONDS)]
        else:
            self.troubled += [(begin, NEVER)]

    def is_merely_full(self, begin, end):
        return any(a <= begin and end <= b for a, b in self.full) and \
            not any(a <= end and begin <= b for a, b in self.troubled)

    def run(self):
        self.began = time.monotonic()
        steps = [threading.Thread(target=self.one, args=(step,), daemon=True) for step in self.plan]
        for thread in steps:
            thread.start()
        for thread in steps:
            thread.join()
        for thread in self.background:
            thread.join()
        self.bring_back()
        if self.failures:
            raise self.failures[0]

    def bring_back(self):
        """Everybody lives, and the map says so."""
        self.c.nodes = {n["name"]: n for n in self.c.status()}
        for node in self.members():
            if self.process(node) is None:
                self.c.start(node, *self.starts_with.get(node, ()))
        for target in self.c.targets():
            def back(target=target):
                states = {n["id"]: n["state"] for n in self.c.get_json("/v1/cluster")["nodes"]}
                if states.get(target) == "maintenance":
                    self.act("stopmaintenance", target)
                return states.get(target) == "active"

            wait_for(back, f"{target} is active in the map", 120)
