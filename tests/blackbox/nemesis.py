"""What befalls a cluster: a plan of faults, drawn from a seed before anything happens.

    plan = draw(rng, shape)          # steps, each begun `at` seconds after the start, for `hold` seconds
    Nemesis(c, plan).run()           # does them, and mends everything at the end

A fault is a row of FAULTS: how it begins, how it ends, and what it is allowed with.  `what` is one of

    kills     a process ends, and is started again
    freezes   a process stands still
    cuts      links are cut (wires.py)
    moves     objects change owners: targets join, are in maintenance, come back
    wipes     a target comes back with empty disks: only where another copy is

Victims are drawn as numbers, and picked among those that are there when the step begins, so that a plan
repeats on a cluster that has grown."""

import contextlib
import dataclasses
import http.client
import json
import os
import shutil
import signal
import threading
import time

from lib import Failed, wait_for

HOLD_SECONDS = (0.05, 3.5)  # around the time after which a node is called unreachable
SPREAD_SECONDS = 2.0  # within which the steps of a plan begin


@dataclasses.dataclass
class Step:
    fault: str
    at: float
    hold: float
    draws: list  # numbers in [0, 1) that choose the victims

    def __str__(self):
        return f"{self.fault} at {self.at:.2f} s for {self.hold:.2f} s ({self.draws[0]:.3f})"


@dataclasses.dataclass(frozen=True)
class Fault:
    what: str
    begin: object  # (nemesis, step): does it, returns what ends it
    weight: int = 1


def lives(pid):
    """It runs, or stands still, but has not ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def pick(items, draw):
    items = sorted(items)
    return items[int(draw * len(items))]


# --- processes -----------------------------------------------------------------------------------

def kill(n, step, nodes=None):
    victim = pick(nodes or n.c.targets(), step.draws[0])
    n.say(step, f"kill -9 {victim}")
    pid = n.end_process(victim, signal.SIGKILL)
    return lambda: n.start(victim, pid)


def kill_proxy(n, step):
    return kill(n, step, n.proxies())


def kill_two(n, step):
    first = kill(n, step)
    left = [t for t in n.c.targets() if n.pid(t) is not None]
    second = kill(n, dataclasses.replace(step, draws=step.draws[1:]), left) if left else lambda: None
    return lambda: (first(), second())


def stop(n, step):
    victim = pick(n.c.targets() + n.proxies(), step.draws[0])
    n.say(step, f"stop {victim}")
    pid = n.end_process(victim, signal.SIGTERM)
    return lambda: n.start(victim, pid)


def freeze(n, step):
    victim = pick(n.c.targets() + n.c.targets() + n.proxies(), step.draws[0])
    n.say(step, f"freeze {victim}")
    n.send(victim, signal.SIGSTOP)
    return lambda: n.send(victim, signal.SIGCONT)


def wipe(n, step):
    victim = pick(n.c.targets(), step.draws[0])
    n.say(step, f"kill -9 {victim} and empty its disks")
    pid = n.end_process(victim, signal.SIGKILL)
    for name in os.listdir(n.c.node_dir(victim)):
        if name.startswith("mp"):
            shutil.rmtree(os.path.join(n.c.node_dir(victim), name))
    return lambda: n.start(victim, pid, "--arg=--mountpath-lost-ok=true")


# --- links ---------------------------------------------------------------------------------------

def both(a, b):
    return [(a, b), (b, a)]


def cut(n, step, links, what):
    n.say(step, what)
    n.cut(links)
    late = step.draws[3] < 0.6
    return lambda: n.heal(links, late)


def cut_pair(n, step):
    a, b = n.two(step)
    return cut(n, step, both(a, b), f"cut {a} -- {b}")


def cut_one_way(n, step):
    a, b = n.two(step)
    return cut(n, step, [(a, b)], f"cut {a} -> {b}")


def cut_off(n, step):
    """A node from all others, in both directions, or in one; clients still reach it."""
    victim = pick(n.members(), step.draws[0])
    others = [m for m in n.members() if m != victim]
    way = int(step.draws[1] * 4)
    links = [link for o in others for link in ([(victim, o)] if way == 0 else [(o, victim)] if way == 1
                                               else both(victim, o))]
    return cut(n, step, links, f"cut off {victim} ({('out', 'in', 'both ways', 'both ways')[way]})")


def cut_from_primary(n, step):
    victim = pick(n.c.targets(), step.draws[0])
    return cut(n, step, [x for p in n.proxies() for x in both(victim, p)], f"cut {victim} -- proxies")


def cut_in_two(n, step):
    side = [m for i, m in enumerate(sorted(n.members())) if int(step.draws[1] * 1024) >> i & 1]
    links = [x for a in side for b in n.members() if b not in side for x in both(a, b)]
    return cut(n, step, links, f"cut {' '.join(side)} from the others")


# --- owners --------------------------------------------------------------------------------------

def join(n, step):
    if len(n.c.targets()) >= n.targets_max:
        return maintenance(n, step)
    n.say(step, "a target joins")
    n.in_background(n.add_target)
    return lambda: None


def maintenance(n, step):
    victim = pick(n.c.targets(), step.draws[0])
    n.say(step, f"maintenance of {victim}")
    n.act("startmaintenance", victim)
    return lambda: n.act("stopmaintenance", victim)


FAULTS = {
    "kill": Fault("kills", kill, 3),
    "kill_two": Fault("kills", kill_two),
    "kill_proxy": Fault("kills", kill_proxy),
    "stop": Fault("kills", stop),
    "freeze": Fault("freezes", freeze, 2),
    "wipe": Fault("wipes", wipe, 2),
    "cut_pair": Fault("cuts", cut_pair, 2),
    "cut_one_way": Fault("cuts", cut_one_way, 2),
    "cut_off": Fault("cuts", cut_off, 2),
    "cut_from_primary": Fault("cuts", cut_from_primary, 2),
    "cut_in_two": Fault("cuts", cut_in_two),
    "join": Fault("moves", join),
    "maintenance": Fault("moves", maintenance),
}


def draw(rng, kinds, steps=3):
    """A plan of faults of these kinds."""
    names = [name for name, f in FAULTS.items() if f.what in kinds for _ in range(f.weight)]
    return [Step(rng.choice(names), rng.uniform(0, SPREAD_SECONDS), rng.uniform(*HOLD_SECONDS),
                 [rng.random() for _ in range(4)]) for _ in range(rng.randrange(1, steps + 1))]


# --- doing it ------------------------------------------------------------------------------------

class Nemesis:
    """Does a plan, each step in a thread of its own; what a node's end or start takes keeps nobody waiting."""

    def __init__(self, c, plan, targets_max=6):
        self.c, self.plan, self.targets_max = c, plan, targets_max
        self.lock = threading.Lock()
        self.background, self.failures, self.said = [], [], []
        self.began = None

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

    # Processes.  One that another step has ended already is left alone.

    def pid(self, node):
        """Of a process that runs, or None."""
        with open(os.path.join(self.c.dir, "cluster.json"), encoding="utf-8") as f:
            pid = next(n["pid"] for n in json.load(f)["nodes"] if n["name"] == node)
        return pid if pid is not None and lives(pid) else None

    def send(self, node, number):
        pid = self.pid(node)
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)
        return pid

    def end_process(self, node, number):
        """Returns its id, if it had not ended."""
        self.c.ended_by_test.add(node)
        pid = self.send(node, number)
        if number == signal.SIGKILL:
            self.await_end(node, pid)
        return pid

    @staticmethod
    def await_end(node, pid):
        if pid is not None:
            wait_for(lambda: not lives(pid), f"the end of {node}")

    def start(self, node, pid, *args):
        """When the process `pid` has ended, unless somebody else has started it.  What that waits for may
        wait for other steps' ends."""
        def started():
            self.await_end(node, pid)
            with self.lock:
                if self.pid(node) is None:
                    self.begin(self.c.start, node, *args)
                    self.c.ended_by_test.discard(node)

        self.in_background(started)

    def add_target(self):
        """One at a time: its name and its wires follow from who is there."""
        with self.lock:
            self.begin(self.c.add_target)
            self.c.nodes = {n["name"]: n for n in self.c.status()}

    @staticmethod
    def begin(function, *args):
        """A start that does not insist on being through soon: it may need what another step has ended, and
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
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.c.call("PUT", "/v1/cluster", {"action": action, "name": target}, timeout=5)

    def one(self, step):
        try:
            time.sleep(step.at)
            end = FAULTS[step.fault].begin(self, step)
            time.sleep(step.hold)
            end()
        except Exception as e:  # told by run()
            self.failures.append(e)

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
            if self.pid(node) is None:
                self.c.start(node)
        for target in self.c.targets():
            def back(target=target):
                states = {n["id"]: n["state"] for n in self.c.get_json("/v1/cluster")["nodes"]}
                if states.get(target) == "maintenance":
                    self.act("stopmaintenance", target)
                return states.get(target) == "active"

            wait_for(back, f"{target} is active in the map", 120)
