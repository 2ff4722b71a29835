#!/usr/bin/env python3
"""Three proxies that share etcd lose their primary again and again, then all of themselves at once,
and every node is restarted after the other, while clients make and destroy buckets, write and read
objects, and objects are moved.  No acknowledged change and no acknowledged object is lost, and
reads of objects through the proxies that are left are answered with their bytes, always.

DFC_ROUNDS (2) says how often the primary is killed, DFC_ALL_ROUNDS (1) how often all proxies are,
DFC_RESTART_ROUNDS (1) how often each node is restarted; DFC_SEED repeats what is chosen.  Prints
how long it took until a change was taken again, with the default lease_ttl of 2s."""

import http.client
import itertools
import os
import random
import re
import shutil
import signal
import threading
import time

from failover import PROXIES, SEED, Churn, buckets, once, primary_in_the_end
from lib import Failed, check, equal, in_parallel, main, skip, wait_for
from rebalance import Loop, wait_settled

ROUNDS = int(os.environ.get("DFC_ROUNDS", 2))
ALL_ROUNDS = int(os.environ.get("DFC_ALL_ROUNDS", 1))
RESTART_ROUNDS = int(os.environ.get("DFC_RESTART_ROUNDS", 1))
CUT = (OSError, http.client.HTTPException)
OBJECTS = 60  # of each writer
REST = 0.01
CLIENTS = itertools.count()  # each has buckets of its own


# --- requests on connections of their own
# ----------------------------------------------------------

def exchange(url, method, body=None):
    """One request; status, Location and body.  Nothing is repeated behind our back."""
    _, netloc, path = re.match(r"(http)://([^/]+)(/.*)", url).groups()
    connection = http.client.HTTPConnection(netloc, timeout=60)
    try:
        connection.request(method, path, body)
        reply = connection.getresponse()
        return reply.status, reply.headers.get("Location"), reply.read()
    finally:
        connection.close()


def object_call(c, proxy, method, name, body=None):
    """By way of this proxy to the owner; status and body."""
    url = f"{c.url(proxy)}/v1/objects/load/{name}"
    for _ in range(5):
        status, location, data = exchange(url, method, body)
        if status != 307:
            return status, data
        url = location
    raise Failed(f"{method} {name}: redirected without end")


# --- who dies
# --------------------------------------------------------------------------------------

class Down:
    """Which proxies are not to be expected to answer, and how often each was taken down."""

    def __init__(self):
        self.lock = threading.Lock()
        self.times = dict.fromkeys(PROXIES, 0)
        self.now = set()

    def take(self, proxy):
        with self.lock:
            self.times[proxy] += 1
            self.now.add(proxy)

    def back(self, proxy):
        with self.lock:
            self.now.discard(proxy)

    def left(self):
        """Those that are left, with how often each has been down."""
        with self.lock:
            return [(p, self.times[p]) for p in PROXIES if p not in self.now]

    def has_been(self, proxy, times):
        with self.lock:
            return proxy in self.now or self.times[proxy] != times


def knows_load(c, proxy):
    """A proxy that begins anew says 503 until it has heard of the primary."""
    return c.call("GET", "/v1/buckets/load", node=proxy).status == 200


def kill_now(c, proxy):
    """At this very moment: the script that runs the cluster takes a while to begin."""
    pid = c.pid(proxy)
    c.ended_by_test.add(proxy)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    return began


# --- the load
# --------------------------------------------------------------------------------------

class Objects:
    """One client's objects: each is written again and again with a greater number, and what is read
    is never older than what had been acknowledged before the read began."""

    def __init__(self, c, down, number):
        self.c, self.down, self.number = c, down, number
        self.rng = random.Random(SEED * 7 + number)
        self.acknowledged = {f"w{number}/{i}": 0 for i in range(OBJECTS)}
        self.writes = self.reads = 0

    def write(self):
        name = self.rng.choice(list(self.acknowledged))
        number = self.number * 10**9 + self.writes + 1
        left = self.down.left()
        if not left:
            time.sleep(REST)
            return
        self.writes += 1
        try:
            status, data = object_call(self.c, self.rng.choice(left)[0], "PUT", name,
                                       self.bytes_of(name, number))
        except CUT:
            return  # written or not
        check(status in (200, 409, 503), f"PUT {name}: {status} {data[:200]}")
        if status == 200:
            self.acknowledged[name] = number

    def bytes_of(self, name, number):
        return f"{name} {number} ".encode() * 20

    def read(self):
        left = self.down.left()
        if left:
            self.read_by(*self.rng.choice(left))
        else:
            time.sleep(REST)

    def read_by(self, proxy, times):
        name = self.rng.choice(list(self.acknowledged))
        least = self.acknowledged[name]
        if least == 0:
            return
        try:
            status, data = object_call(self.c, proxy, "GET", name)
        except CUT as e:
            check(self.down.has_been(proxy, times), f"GET {name} by {proxy}, which is alive: {e!r}")
            return
        if status == 503 and self.down.has_been(proxy, times):
            return  # said by one that was starting
        equal(status, 200, f"GET {name} by {proxy}: {data[:200]}")
        self.check_bytes(name, least, data)
        self.reads += 1

    def check_bytes(self, name, least, data):
        got = int(data.split()[1])
        equal(data, self.bytes_of(name, got), name)
        check(got >= least, f"{name} has {got}, and {least} was acknowledged before")

    def check_all(self):
        written = [n for n, least in self.acknowledged.items() if least > 0]
        for name in written:
            status, data = object_call(self.c, "p1", "GET", name)
            equal(status, 200, f"{name} in the end: {data[:200]}")
            self.check_bytes(name, self.acknowledged[name], data)
        return len(written)


class Moves:
    """A target goes into maintenance and comes back, again and again: objects are on the move."""

    def __init__(self, c, down):
        self.c, self.down, self.turns = c, down, 0

    def __call__(self):
        left = self.down.left()
        if not left:
            time.sleep(REST)
            return
        action = ("start" if self.turns % 2 == 0 else "stop") + "maintenance"
        try:
            reply = self.c.call("PUT", "/v1/cluster", {"action": action, "name": "t3"},
                                node=left[0][0])
            check(reply.status in (200, 503), f"{action}: {reply!r}")
            if reply.status == 200:
                self.turns += 1
                self.wait_moved()
        except CUT:
            pass

    def wait_moved(self):
        """Or for a while: what is not through is turned back on the way."""
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline and self.down.left():
            status, _, data = exchange(f"{self.c.url(self.down.left()[0][0])}/v1/cluster?what=smap",
                                       "GET")
            if status == 200 and b'"earlier": []' in data:
                return
            time.sleep(0.05)


class Load:
    """All of it, for as long as the with lasts."""

    def __init__(self, c, down, moves=True):
        self.c, self.down = c, down
        self.objects = [Objects(c, down, i) for i in range(2)]
        self.over = threading.Event()
        self.churn = [Churn(c, next(CLIENTS), self.over) for _ in range(2)]
        self.moves = Moves(c, down)
        self.loops = [Loop(step, REST) for o in self.objects for step in (o.write, o.read)]
        if moves:
            self.loops.append(Loop(self.moves, REST))

    def __enter__(self):
        for loop in self.loops:
            loop.__enter__()
        for client in self.churn:
            client.start()
        return self

    def __exit__(self, *failed):
        self.over.set()
        for client in self.churn:
            client.join()
        for loop in self.loops:
            loop.over.set()
        for loop in self.loops:
            loop.__exit__(*failed)

    def check_all(self):
        """Nothing of what was acknowledged is lost; returns what there was, in words."""
        wrong = [w for client in self.churn for w in client.wrong]
        check(not wrong, "; ".join(wrong))
        for client in self.churn:
            for proxy in PROXIES:
                wait_for(lambda p=proxy, k=client: (k.bucket in buckets(self.c, p)) in k.exists,
                         f"{client.bucket} at {proxy} is one of {client.exists}")
        found = sum(o.check_all() for o in self.objects)
        return (f"{sum(k.changes for k in self.churn)} changes acknowledged, "
                f"{sum(o.writes for o in self.objects)} objects written, "
                f"{sum(o.reads for o in self.objects)} read, {found} looked at in the end, "
                f"{self.moves.turns} times t3 left or came back")


def create_by(c, proxy, bucket):
    """Until it is made; a client repeats what was refused, or is in doubt."""
    def made():
        status, code = once(c, "POST", bucket, proxy)
        check(status in (201, 409, 503), f"{bucket} by {proxy}: {status} {code}")
        return status != 503

    wait_for(made, f"{bucket} made by {proxy}")


def figures(seconds):
    ordered = sorted(seconds)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * q))] for q in (0.5, 0.99)]
    return f"median {at[0]:.2f} s, p99 {at[1]:.2f} s, worst {ordered[-1]:.2f} s"


def test_prepare(c):
    print(f"        DFC_SEED={SEED}", flush=True)
    c.create("load")
    c.setting("rebalance_delay", "100ms")
    c.setting("rebalance_keep", "2s")


def test_the_primary_is_killed_under_load(c):
    rng = random.Random(SEED)
    down = Down()
    seconds, made = [], []
    with Load(c, down) as load:
        for i in range(ROUNDS):
            victim = primary_in_the_end(c)
            down.take(victim)
            began = kill_now(c, victim)
            made.append(f"after-{i}")
            create_by(c, rng.choice(down.left())[0], made[-1])
            seconds.append(time.monotonic() - began)
            print(f"        {victim} killed: a change after {seconds[-1]:.2f} s", flush=True)
            wait_for(lambda v=victim: c.pid(v) is None, f"{victim} is gone")
            c.start(victim)
            wait_for(lambda v=victim: knows_load(c, v), f"{victim} has heard of the buckets")
            down.back(victim)
    print(f"        {ROUNDS} kills: a change was taken again after {figures(seconds)}")
    print(f"        {load.check_all()}")
    for proxy in PROXIES:
        wait_for(lambda p=proxy: set(made) <= buckets(c, p), f"{proxy} knows what was made")


def read_at_the_targets(c, names):
    """As a client does who has a redirect: no proxy is asked."""
    for name, url in names.items():
        equal(c.http.request("GET", url).expect(200).body, name.encode(), name)


def test_all_proxies_are_killed_at_once(c):
    seconds = []
    wait_for(lambda: c.call("PUT", "/v1/cluster", {"action": "stopmaintenance", "name": "t3"}
                            ).status == 200, "t3 is back")
    wait_settled(c)  # a PUT whose owner changes meanwhile is to be sent again
    names = {f"still-{i}": None for i in range(20)}
    for name in names:
        c.put("load", name, name.encode())
        names[name] = c.get("load", name, follow=False).expect(307).headers["Location"]
    for i in range(ALL_ROUNDS):
        down = Down()
        with Load(c, down, moves=False) as load:
            create_by(c, "p1", f"before-{i}")
            for proxy in PROXIES:
                down.take(proxy)
            for proxy in PROXIES:
                kill_now(c, proxy)
            wait_for(lambda: all(c.pid(p) is None for p in PROXIES), "they are gone")
            read_at_the_targets(c, names)
            began = time.monotonic()
            in_parallel(c.start, PROXIES)
            create_by(c, "p2", f"again-{i}")
            seconds.append(time.monotonic() - began)
            print(f"        all killed: a change {seconds[-1]:.2f} s after the start", flush=True)
            for proxy in PROXIES:
                wait_for(lambda p=proxy: knows_load(c, p), f"{proxy} has heard of the buckets")
                down.back(proxy)
        said = load.check_all()
        for proxy in PROXIES:
            wait_for(lambda p=proxy, n=i: {f"before-{n}", f"again-{n}"} <= buckets(c, p),
                     f"{proxy} knows what was made")
    print(f"        {ALL_ROUNDS} times: a change was taken {figures(seconds)} after the start")
    print(f"        the last time {said}")


# --- restarted node by node
# ------------------------------------------------------------------------

class Patient:
    """A client that tries another proxy, or the same target again, where nobody listens or the
    connection ends before anything was said (a node that stops listening resets whom the kernel
    had let in, and it had not), or the map has the owner as stopped; and repeats nothing else."""

    def __init__(self, c, number):
        self.c, self.number = c, number
        self.written = {}
        self.requests = self.refused = self.reset = 0

    def ask(self, method, name, body=None):
        deadline = time.monotonic() + 60
        while True:
            proxy = PROXIES[self.requests % len(PROXIES)]
            self.requests += 1
            try:
                status, data = object_call(self.c, proxy, method, name, body)
                if status != 503 or b'"node_unreachable"' not in data:
                    return status, data
                self.refused += 1
            except ConnectionRefusedError:
                self.refused += 1
            except (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
                self.reset += 1
            check(time.monotonic() < deadline, f"{method} {name}: refused for a minute")
            time.sleep(REST)

    def __call__(self):
        name = f"p{self.number}/{self.requests % 50}"
        body = f"{name} {self.requests}".encode()
        status, data = self.ask("PUT", name, body)
        equal(status, 200, f"PUT {name}: {data[:300]}")
        self.written[name] = body
        status, data = self.ask("GET", name)
        equal((status, data), (200, body), f"GET {name}")


def test_every_node_is_restarted_under_load(c):
    wait_settled(c)  # else a target that is down may be asked for what it had before
    clients = [Patient(c, i) for i in range(3)]
    loops = [Loop(client, REST) for client in clients]
    with loops[0], loops[1], loops[2]:
        for _ in range(RESTART_ROUNDS):
            for node in (*PROXIES, *c.targets()):
                c.stop(node)
                c.start(node)
                wait_for(lambda n=node: c.state(n) == "active", f"{node} is active")
    for client in clients:
        check(client.written, "nothing was written")
        for name, body in client.written.items():
            equal(object_call(c, "p1", "GET", name), (200, body), name)
    print(f"        {RESTART_ROUNDS * (len(PROXIES) + len(c.targets()))} restarts, "
          f"{sum(k.requests for k in clients)} requests, "
          f"{sum(k.refused for k in clients)} of them to where nobody listened, "
          f"{sum(k.reset for k in clients)} reset unanswered, no other failed")


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        skip("there is no etcd (Debian: etcd-server)")
    main(proxies=3, targets=3, metastore="etcd")
