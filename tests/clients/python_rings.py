#!/usr/bin/python3
"""dfc.ring and the package wirehead at real daemons that ask for proof: what is pushed comes back, makers
feel a full ring, readers outlive what is dropped, and the scripts of Wirehead run unchanged."""

import array
import os
import shutil
import subprocess
import sys
import tempfile
import threading

import frame
from access_lib import GuardedCluster, make_user
from lib import WAIT_SECONDS, check, equal, main, wait_for

PYTHON = os.path.join(frame.ROOT, "python")
SOURCES = [os.path.join(PYTHON, "src"), os.path.join(PYTHON, "wirehead", "src")]
UNIT = os.path.join(PYTHON, "wirehead", "tests", "unit")
STANDINS = os.path.join(PYTHON, "wirehead", "tests", "standins")
sys.path.insert(0, SOURCES[0])
import dfc  # noqa: E402 pylint: disable=wrong-import-position
from dfc.ring import Ring, RingReader, RingShare  # noqa: E402 pylint: disable=wrong-import-position


class Locked(GuardedCluster):
    def ring(self, name, **options):
        return Ring(dfc.Client(self.endpoint, profile="", access_key=self.root.access,
                               secret_key=self.root.secret, **options), name)


def sample(i, size=16):
    return {"data": array.array("f", [i] * size), "label": b"%d" % i}


def label(found):
    number = int(bytes(found.kinds["label"].data))
    equal(found.kinds["data"].dtype, "<f4", "dtype")
    equal(set(found.kinds["data"].data.cast("f")), {float(number)}, "values")
    return number


def labels(samples):
    return [label(s) for s in samples]


def test_what_is_pushed_comes_back(c):
    for direct in (True, False):
        ring = c.ring(f"plain-{direct}", direct=direct)
        ring.create(cap=10, keep=2)
        equal(ring.create(cap=10, exist_ok=True).head().number, 0, "number")
        for i in range(5):
            ring.push(sample(i))
        wait_for(lambda r=ring: r.status()["fill"] == 5, "5 samples")
        equal([s.count for s in ring.push_all(sample(i) for i in range(5, 20))], [15], "one push")
        wait_for(lambda r=ring: r.head().number == 2, "two generations")
        equal(sorted(labels(RingShare(ring, after=0, generations=2))), list(range(20)), "all, once")
        reader = RingReader(ring)
        generation, found = reader.batch_of([0, 3, 9, 3])
        equal((generation.number, len(reader), label(found[1])), (2, 10, label(found[3])), "a batch")
        ring.push(sample(50, 2_000_000))  # announced, and 8 MB
        wait_for(lambda r=ring: r.status()["fill"] == 1, "the keeper knows the sample")
        equal(ring.swap(), 3, "swap")
        equal(labels(RingShare(ring, generations=1)), [50], "a large sample")
        ring.clear()
        equal(ring.head().newest(), None, "newest")


def test_a_repeated_push_finds_its_target(c):
    """By the map or by a proxy: it is stored once."""
    direct, by_proxy = c.ring("repeated"), c.ring("repeated", direct=False)
    direct.create(cap=1000, copies=2)
    lanes = set()
    for i in range(20):
        places = {(s.lane, s.first) for s in (ring.push(sample(i), producer=f"m{i}", sequence=7)
                                              for ring in (direct, by_proxy, direct))}
        equal(len(places), 1, f"places of push {i}")
        lanes |= {lane for lane, _ in places}
    equal(len(lanes), 3, "lanes")
    wait_for(lambda: direct.status()["fill"] == 20, "20 samples")


def test_errors(c):
    ring = c.ring("absent")
    for act in (ring.head, ring.status, lambda: ring.push(sample(0))):
        try:
            act()
            check(False, "a ring that is absent answered")
        except dfc.NotFound as e:
            equal(e.code, "bucket_not_found", "code")
    user = make_user(c, "nobody", [])
    ring = Ring(dfc.Client(c.endpoint, profile="", access_key=user.access, secret_key=user.secret),
                "plain-True")
    try:
        ring.push(sample(0))
        check(False, "a user without rights pushed")
    except dfc.Denied:
        pass


def test_makers_feel_a_full_ring(c):
    """A push waits until room is made."""
    ring = c.ring("full").create(cap=1000, keep=0, bytes_max=6 << 20)
    body = {"data": bytes(500_000)}
    try:
        for _ in range(100):
            ring.push(body, full_timeout=0)
        check(False, "a full ring took a push")
    except dfc.Unreachable as e:
        equal(e.code, "ring_full", "code")
        check(e.retry_after > 0, "there is no Retry-After")
    timer = threading.Timer(0.3, ring.clear)
    timer.start()
    for _ in range(5):
        ring.push(body, full_timeout=WAIT_SECONDS)
    timer.join()


def test_a_reader_that_is_too_slow(c):
    """Files of a lane are dropped whole: makers push until that of the first generation is."""
    ring = c.ring("fast").create(cap=4, keep=0, bytes_max=6 << 20)
    begins = iter(range(0, 10_000, 4))

    def fill():
        begin = next(begins)
        list(ring.push_all(sample(i, 25_000) for i in range(begin, begin + 4)))
        return ring.wait(begin // 4)

    first = fill()
    share, reader = RingShare(ring, generations=2, ahead=0), RingReader(ring, poll=1000)
    equal(len(reader), 4, "samples")
    steps = iter(share)
    next(steps)
    wait_for(lambda: fill().number > 2 and all(is_gone(ring, first, i) for i in range(4)),
             "the first generation is gone")
    newest = ring.head().number
    expected = [4 * (newest - 1) + i for i in range(4)]
    equal(sorted(labels(reader.batch(range(4)))), expected, "a batch of the newest")
    equal(sorted(labels(steps)), expected, "the newest generation")
    equal((share.missed, share.skipped), (3, newest - 2), "missed and skipped")


def is_gone(ring, generation, index):
    try:
        ring.read(generation, [index])
        return False
    except dfc.NotFound as e:
        return e.code == "generation_gone"


# --- Wirehead ---

def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], check=False,
                          capture_output=True).returncode == 0


class Scripts:
    """The scripts of Wirehead's example in a folder, as its users have them."""

    def __init__(self, c, folder, **keys):
        shutil.copytree(UNIT, folder, dirs_exist_ok=True)
        with open(os.path.join(folder, "config.yaml"), "a", encoding="utf-8") as f:
            f.writelines(f"{key}: {value}\n" for key, value in keys.items())
        standins = [] if has("torch") and has("numpy") else [STANDINS]
        self.folder, self.running = folder, []
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES + standins), "HOME": folder,
                    "DFC_ACCESS_KEY": c.root.access, "DFC_SECRET_KEY": c.root.secret,
                    "no_proxy": "127.0.0.1,localhost", "PYTHONDONTWRITEBYTECODE": "1"}
        self.env.pop("DFC_ENDPOINT", None)

    def start(self, name):
        out = open(os.path.join(self.folder, name + ".out"), "w", encoding="utf-8")
        with out:
            process = subprocess.Popen([sys.executable, name], cwd=self.folder, env=self.env,
                                       stdout=out, stderr=subprocess.STDOUT)
        self.running.append(process)
        return process

    def output(self, name):
        with open(os.path.join(self.folder, name + ".out"), encoding="utf-8") as f:
            return f.read()

    def end(self):
        for process in self.running:
            process.kill()
            process.wait()


def test_the_scripts_of_wirehead(c):
    port = int(c.endpoint.rsplit(":", 1)[1])
    with tempfile.TemporaryDirectory() as folder:
        scripts = Scripts(c, folder, PORT=port)
        try:
            run_scripts(c, scripts)
        finally:
            scripts.end()


def run_scripts(c, scripts):
    scripts.start("manager.py")
    loader = scripts.start("loader.py")
    wait_for(lambda: "waiting for data" in scripts.output("loader.py"), "the loader waits")
    generator = scripts.start("generator.py")
    ends = (generator.wait(WAIT_SECONDS), loader.wait(WAIT_SECONDS))
    made, read = scripts.output("generator.py"), scripts.output("loader.py")
    equal(ends, (0, 0), f"the ends of generator and loader\n{made}\n{read}")
    lines = made.splitlines()
    check("Generator: Initialized" in lines, made)
    equal([line for line in lines if line.startswith("Pushing")],
          [f"Pushing index: {i}, with cap: 100" for i in range(100)], "pushes")
    equal(lines.count("\t====Generator: Swap success!===="), 1, "swaps")
    equal(lines.count("Generator: Documents deleted: 0"), 1, "swaps")
    lines = read.splitlines()
    equal((lines[0], lines[-1]), ("Dataset: config loaded from config.yaml",
                                  "Unit example passed successfully"), "the loader")
    check("Dataset: Data is ready" in lines and "Loader, index:  99" in lines, read)
    wait_for(lambda: "Manager: Documents deleted: 0" in scripts.output("manager.py"), "the manager")
    check("Generated samples so far 100" in scripts.output("manager.py"), "the manager counts")
    ring = c.ring("unit-test")
    kinds = ring.read(ring.head().newest(), range(100))[7].kinds
    equal({name: (k.dtype, k.shape) for name, k in kinds.items()},
          {"data": ("<f8", (256,)), "label": ("<f8", (256,))}, "what is stored")
    check(0 < sum(kinds["data"].data.cast("d")) < 256, "the values are kept")


def test_wirehead_says_what_is_wrong(c):
    with tempfile.TemporaryDirectory() as folder:
        c.ring("no-ring")._bucket.create()
        for keys, why in (({"ENDPOINT": c.endpoint, "DBNAME": "no-ring"}, "is no ring"),
                          ({"ENDPOINT": c.endpoint, "SWAP_CAP": "many"}, "SWAP_CAP has to be"),
                          ({"ENDPOINT": c.endpoint, "CAST": "int3"}, "CAST has to be"),
                          ({"ENDPOINT": c.endpoint, "POLICY": "full"}, "POLICY has to be"),
                          ({"ENDPOINT": c.endpoint, "SWAP": "drop"}, "SWAP has to be")):
            scripts = Scripts(c, os.path.join(folder, why.split()[0]), **keys)
            try:
                status = scripts.start("generator.py").wait(WAIT_SECONDS)
                check(status == 1 and why in scripts.output("generator.py"),
                      scripts.output("generator.py"))
            finally:
                scripts.end()


if __name__ == "__main__":
    main(Locked, targets=3, mountpaths=1, args=("--target-arg=--ring-grace=100ms",))
