#!/usr/bin/env python3
"""Dataset images: burns, what is stored twice, block devices and mounts.

Each row has the goal that docs/design/vdisc.md names, and says whether it was met.  --scale N
divides the numbers of rows and files, and the size of the large image, by N."""

import contextlib
import hashlib
import http.client
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster
from slow_s3 import apart, create

ROWS, FILES, DIRECTORIES, FILE, LARGE = 100_000, 100_000, 4000, 20 * KIB, 4096 * MIB
FAR, FAR_FILE, FAR_DELAY_S = 2000, 100 * KIB, 0.02


class Bench:
    def __init__(self, args, work, cluster):
        self.args, self.work, self.cluster = args, work, cluster
        self.env = {**os.environ, "DFC_ENDPOINT": cluster.proxy["url"], "HOME": str(work)}
        self.rounds = 1 if args.quick else args.rounds
        self.rows = []
        self.names = 0

    def scaled(self, count, least=100):
        return max(least, count // (1000 if self.args.quick else self.args.scale))

    def name(self):
        self.names += 1
        return f"dfc://img/{self.names}.vdsc"

    def ctl(self, *words):
        return subprocess.run([str(self.args.build / "dfcctl"), *map(str, words)], env=self.env, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def timed(self, *words):
        begun = time.monotonic()
        self.ctl(*words)
        return time.monotonic() - begun

    def row(self, name, value, goal, met, unit=""):
        self.rows.append({"row": name, "value": round(value, 3), "unit": unit, "goal": goal, "met": bool(met)})
        log(f"  {name}: {value:.3f} {unit}")

    def tree(self, name, count, size, directories, seed=0):
        root = self.work / name
        for i in range(count):
            at = root / f"d{i % directories:05}"
            if i < directories:
                at.mkdir(parents=True)
            (at / f"{i:07}").write_bytes(random.Random(f"{seed}/{i}").randbytes(size))
        return root


def used_memory(run):
    """KiB that the largest of the children so far has had: of a child that is the largest."""
    run()
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def lists(b):
    """Burns of lists: time and memory by the number of rows."""
    seconds = {}
    for count in (b.scaled(ROWS), 10 * b.scaled(ROWS)):
        path = b.work / f"{count}.csv"
        path.write_text("".join(f"/d{i % 100}/{i}.jpg,dfc://img/o/{i}.jpg,20480\n" for i in range(count)))
        runs = [b.timed("vdisc", "burn", "-i", path, "--no-check", "-o", b.name()) for _ in range(b.rounds)]
        seconds[count] = benchlib.median(runs)
    few, many = sorted(seconds)
    b.row(f"burn of {few} rows", seconds[few], "20 times the reference (8.9 s for 100,000): 0.45 s",
          seconds[few] / few <= 8.9 / 20 / 100_000, "s")
    memory = used_memory(lambda: b.ctl("vdisc", "burn", "-i", b.work / f"{few}.csv", "--no-check", "-o", b.name()))
    b.row(f"memory of burns up to {many} rows", memory / 1024, "shown", True, "MiB")
    b.row(f"{many} rows against {few}", seconds[many] / seconds[few], "<= 12", seconds[many] <= 12 * seconds[few],
          "times")


def headers(b):
    """The header of many directories, beside that of xorriso."""
    count = b.scaled(DIRECTORIES)
    root = b.tree("directories", count, 1, count)
    flat, other = b.work / "ours.iso", b.work / "xorriso.iso"
    subprocess.run([str(b.args.build / "vdisc/vdisc-harness"), str(root), str(flat)], check=True)
    subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-R", "-o", str(other), str(root)], check=True,
                   stderr=subprocess.DEVNULL)
    ours = flat.stat().st_size - 2 * KIB * count
    theirs = other.stat().st_size - 2 * KIB * count - 300 * KIB  # xorriso pads with 150 blocks
    b.row(f"header of {count} directories against xorriso's", ours / theirs, "<= 1.1", ours <= 1.1 * theirs, "times")
    shutil.rmtree(root)


def stored(b, prefix):
    words = ("ls", "img", "--prefix", prefix, "--allow-empty", "-o", "json")
    return sum(e["size"] for e in json.loads(b.ctl(*words))["entries"])


def overlap(b):
    """A second image that shares 95 of 100 files with the first."""
    root = b.tree("overlap", b.scaled(FILES), FILE, 50)
    paths = sorted(p for p in root.rglob("*") if p.is_file())
    for store, prefix, goal in (("unique", ".dfc-unique/", 0.055), ("pack", ".dfc-packs/", 0.07)):
        first = b.name()
        b.ctl("vdisc", "burn", "--tree", root, "--store", store, "-o", first)
        before = stored(b, prefix)
        for path in random.Random(store).sample(paths, len(paths) // 20):
            path.write_bytes(random.Random(f"{store}{path}").randbytes(FILE))
            os.utime(path, (time.time() + 5, time.time() + 5))
        b.ctl("vdisc", "burn", "--tree", root, "--store", store, "--base", first, "-o", b.name())
        more = (stored(b, prefix) - before) / before
        b.row(f"bytes stored again, {store}", 100 * more, f"<= {100 * goal:.1f}", more <= goal, "%")
    shutil.rmtree(root)


def listens(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


@contextlib.contextmanager
def served(b, *command):
    path = b.work / "nbd.sock"
    words = [w.replace("SOCKET", str(path)) for w in map(str, command)]
    said = b.work / "nbd.log"
    with open(said, "wb") as out:
        process = subprocess.Popen(words, env=b.env, stdout=out, stderr=out)
    try:
        while not listens(path):
            if process.poll() is not None:
                raise RuntimeError(f"{words[0]} ended with {process.returncode}")
            time.sleep(0.01)
        yield f"nbd+unix:///?socket={path}"
    except RuntimeError:
        log(said.read_text(errors="replace")[-2000:])
        raise
    finally:
        process.terminate()
        process.wait()
        path.unlink(missing_ok=True)


def seconds_of(*words):
    begun = time.monotonic()
    done = subprocess.run([str(w) for w in words], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]}: {done.stderr}")
    return time.monotonic() - begun


def device(b):
    """A whole image by NBD beside one object by curl; small reads from memory."""
    size = max(32 * MIB, LARGE // (128 if b.args.quick else b.args.scale))
    root = b.work / "large"
    root.mkdir()
    digest = hashlib.sha256()
    rng = random.Random(1)
    with open(root / "large", "wb") as f:
        for at in range(0, size, MIB):
            piece = rng.randbytes(min(MIB, size - at))
            digest.update(piece)
            f.write(piece)
    image = b.name()
    b.ctl("vdisc", "burn", "--tree", root, "-o", image)
    sha = digest.hexdigest()
    url = f"{b.cluster.proxy['url']}/v1/objects/img/.dfc-unique/{sha[:2]}/{sha}"
    copy = b.work / "copy"

    def nbd():
        with served(b, b.args.build / "dfcctl", "vdisc", "serve", image, "--socket", "SOCKET") as uri:
            return seconds_of("nbdcopy", uri, copy)

    runs = benchlib.interleave({"nbdcopy": nbd, "curl": lambda: seconds_of("curl", "-sfL", "-o", copy, url)},
                               b.rounds)
    ratio = benchlib.paired_ratio(runs["curl"], runs["nbdcopy"])["median"]
    b.row(f"nbdcopy of {benchlib.size_text(size)} against curl", ratio, ">= 0.7", ratio >= 0.7, "times")
    copy.unlink()
    shutil.rmtree(root)
    from_cache(b, image, size)
    small_reads(b, image)


def kept(cache):
    return sum(p.stat().st_blocks * 512 for p in cache.rglob("*-*") if p.is_file())


def grown(cache):
    """Bytes of the cache, once it grows no more."""
    last = -1
    while last != (last := kept(cache)):
        time.sleep(1)
    return last


def fill(cache, size, read, passes=10):
    """Reads until the cache has all: what comes faster than its disk writes is not kept at once."""
    for _ in range(passes):
        read(lambda: grown(cache))
        if kept(cache) >= size:
            return
    raise RuntimeError(f"the cache has {kept(cache)} bytes of {size}")


def from_cache(b, image, size):
    """The same image from the disk cache, by a server with an empty buffer each time, beside nbdkit's file
    plugin on the flat image.  Both files are in the page cache; the copy goes nowhere."""
    flat, cache = b.work / "flat.iso", b.work / "cache"
    cache.mkdir()
    b.ctl("vdisc", "export", image, "-o", flat)

    def ours(before_the_end=lambda: None):
        with served(b, b.args.build / "dfcctl", "vdisc", "serve", image, "--socket", "SOCKET", "--cache-dir", cache,
                    "--cache-size", 2 * size) as uri:
            seconds = seconds_of("nbdcopy", uri, "null:")
            before_the_end()
            return seconds

    def file():
        with served(b, "nbdkit", "-f", "--readonly", "--unix=SOCKET", "file", flat) as uri:
            return seconds_of("nbdcopy", uri, "null:")

    fill(cache, size, ours)
    runs = benchlib.interleave({"ours": ours, "file": file}, b.rounds)
    ratio = benchlib.paired_ratio(runs["file"], runs["ours"])["median"]
    b.row("MiB/s of nbdcopy from the disk cache", size / MIB / benchlib.median(runs["ours"]), "shown", True)
    b.row("nbdcopy from the disk cache against nbdkit's file plugin", ratio, ">= 0.8", ratio >= 0.8, "times")
    flat.unlink()
    shutil.rmtree(cache)


def small_reads(b, image):
    """16 MiB of the image, 4 KiB at a time at depth 32, when the buffer has it."""
    count = 4096

    def bench(uri):
        words = ("qemu-img", "bench", "-f", "raw", "-c", count, "-d", "32", "-s", "4k", "-q", uri)
        seconds_of(*words)
        return seconds_of(*words)

    def ours():
        with served(b, b.args.build / "dfcctl", "vdisc", "serve", image, "--socket", "SOCKET") as uri:
            return bench(uri)

    def memory():
        with served(b, "nbdkit", "-f", "--unix=SOCKET", "memory", "64M") as uri:
            return bench(uri)

    runs = benchlib.interleave({"ours": ours, "memory": memory}, b.rounds)
    ratio = benchlib.paired_ratio(runs["memory"], runs["ours"])["median"]
    b.row("4 KiB reads from memory against nbdkit's memory plugin", ratio, ">= 0.7", ratio >= 0.7, "times")


@contextlib.contextmanager
def mounted(b, image):
    directory = b.work / "mnt"
    directory.mkdir(exist_ok=True)
    b.ctl("vdisc", "mount", image, directory, "--log-file", b.work / "mount.log")
    try:
        yield directory
    finally:
        b.ctl("vdisc", "umount", directory)


def epoch(root, in_order=False):
    """Every file once, in a random order or in that of the names, by one reader."""
    begun = time.monotonic()
    paths = sorted(os.path.join(at, name) for at, _, names in os.walk(root) for name in names)
    if not in_order:
        random.Random(3).shuffle(paths)
    for path in paths:
        with open(path, "rb", buffering=0) as f:
            f.read()
    return time.monotonic() - begun


@contextlib.contextmanager
def by_fuseiso(b, image):
    """The image as a local file, mounted by fuseiso."""
    directory, flat = b.work / "iso", b.work / "flat.iso"
    directory.mkdir(exist_ok=True)
    b.ctl("vdisc", "export", image, "-o", flat)
    subprocess.run(["fuseiso", str(flat), str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["fusermount3", "-u", str(directory)], check=True)
        flat.unlink()


def images_of(b, root):
    """The same files in packs, as objects of contents, and as objects of a bucket."""
    images = {store: b.name() for store in ("pack", "unique", "refer")}
    for store in ("pack", "unique"):
        b.ctl("vdisc", "burn", "--tree", root, "--store", store, "-o", images[store])
    b.ctl("put", "--quiet", "-r", root, "img/epoch/")
    b.ctl("vdisc", "burn", "--bucket", "dfc://img/epoch/", "-o", images["refer"])
    return images


def epochs(b):
    """Small files through a mount: cold, in packs and one by one; then warm, beside fuseiso."""
    if not os.path.exists("/dev/fuse"):
        log("no /dev/fuse: the rows of mounts are left out")
        return
    root = b.tree("epoch", b.scaled(FILES), FILE, 50)
    images = images_of(b, root)
    shutil.rmtree(root)
    warm, memory = {}, {}

    def run(store):
        with mounted(b, images[store]) as directory:
            seconds = epoch(directory)
            warm.setdefault(store, []).append(epoch(directory))
            memory[store] = benchlib.memory_of(int(os.getxattr(directory, "user.dfc.pid")))[1]
            return seconds

    def run_fuseiso():
        with by_fuseiso(b, images["pack"]) as directory:
            seconds = epoch(directory)
            warm.setdefault("fuseiso", []).append(epoch(directory))
            return seconds

    sides = {store: lambda store=store: run(store) for store in images}
    if shutil.which("fuseiso") is not None:
        sides["fuseiso"] = run_fuseiso
    runs = benchlib.interleave(sides, b.rounds)
    show_epochs(b, runs, warm, memory)


def show_epochs(b, runs, warm, memory):
    count = b.scaled(FILES)
    for store, of in runs.items():
        b.row(f"files/s of a cold epoch, {store}", count / benchlib.median(of), "shown", True)
        b.row(f"files/s of a warm epoch, {store}", count / benchlib.median(warm[store]), "shown", True)
    for store, size in memory.items():
        b.row(f"peak memory of the mount, {store}", size / MIB, "shown", True, "MiB")
    for of in ("unique", "refer"):
        ratio = benchlib.paired_ratio(runs[of], runs["pack"])["median"]
        b.row(f"cold epoch, pack against {of}", ratio, "shown", True, "times")
    if "fuseiso" not in runs:
        log("no fuseiso: its rows are left out")
        return
    # interleave() has warmed up each side once more than it counts.
    ratio = benchlib.paired_ratio(warm["fuseiso"], warm["pack"])["median"]
    b.row("warm epoch, pack against fuseiso", ratio, ">= 1.0", ratio >= 1, "times")


def read_straight(url, keys):
    """Every object once, one after another, by one connection."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    begun = time.monotonic()
    for key in keys:
        connection.request("GET", f"/data/{key}")
        reply = connection.getresponse()
        if reply.status != 200 or not reply.read():
            raise RuntimeError(f"{key}: status {reply.status}")
    connection.close()
    return time.monotonic() - begun


def distant(b):
    """An image of objects of a backend 20 ms away: the first epoch fetches, the second does not."""
    if not os.path.exists("/dev/fuse"):
        return
    count = max(20, b.scaled(FAR, least=20))
    with apart() as s3:
        keys = [f"{i:06}" for i in range(count)]
        for key in keys:
            s3.make(key, FAR_FILE)
        create(b.cluster, s3.where(), "far", keys[0])
        s3.be(FAR_DELAY_S, None)
        image = b.name()
        b.ctl("vdisc", "burn", "--bucket", "dfc://far/", "-o", image)
        b.cluster.call("POST", "/v1/buckets/far", {"action": "evict", "value": {"list": [keys[0]]}})
        straight = read_straight(s3.where(), keys)
        with mounted(b, image) as directory:
            first = epoch(directory, in_order=True)
        with mounted(b, image) as directory:
            second = epoch(directory, in_order=True)
    b.row(f"first epoch over {count} objects 20 ms away against GETs of the backend", straight / first, ">= 0.9",
          straight >= 0.9 * first, "times")
    b.row("second epoch against the first", first / second, ">= 10", first >= 10 * second, "times")


# ---- beside VDisc's own program ----

def its(b, verb, *words):
    cache = b.work / "its-cache"
    cache.mkdir(exist_ok=True)
    return [b.args.reference, verb, "--cache-mode=memory", f"--cache-root={cache}", *map(str, words)]


def burn_of(b, command):
    """→ seconds, and MiB of memory at most.  Its peak is looked at all the time, since getrusage() counts that of
    this program, too, which has forked it."""
    begun, peak = time.monotonic(), 0
    process = subprocess.Popen([str(w) for w in command], env=b.env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None:
        with contextlib.suppress(OSError, KeyError):
            peak = max(peak, benchlib.memory_of(process.pid)[1])
        time.sleep(0.005)
    if process.returncode != 0:
        raise RuntimeError(f"{command[:2]} ended with {process.returncode}")
    return time.monotonic() - begun, peak / MIB


def reference_burns(b):
    """The same list, whose objects are not looked at; then the header of many directories."""
    count, directories = b.scaled(ROWS), b.scaled(DIRECTORIES)
    runs = reference_runs(b, count, directories)
    what = f"burn of {count} rows in {directories} directories: the reference's"
    for figure, goal in (("s", 20), ("MiB", 2), ("header", None)):
        reference_row(b, f"{what} {figure} by ours", runs, figure, goal)
    runs = reference_runs(b, directories, directories)
    reference_row(b, f"header of {directories} directories: the reference's by ours", runs, "header", 2)


def reference_row(b, name, runs, figure, goal):
    ratio = benchlib.paired_ratio([r[figure] for r in runs["theirs"]], [r[figure] for r in runs["ours"]])["median"]
    b.row(name, ratio, f">= {goal}" if goal else "shown", ratio >= (goal or 0), "times")


def reference_runs(b, count, directories):
    path, out = b.work / "reference.csv", b.work / "reference.vdsc"
    url = f"{b.cluster.proxy['url']}/v1/objects/img/o"
    path.write_text("".join(f"/d{i % directories}/{i}.jpg,{url}/{i}.jpg,20480\n" for i in range(count)))

    def ours():
        image = b.name()
        found = burn_of(b, [b.args.build / "dfcctl", "vdisc", "burn", "-i", path, "--no-check", "-o", image])
        return {"s": found[0], "MiB": found[1], "header": stored(b, image.removeprefix("dfc://img/") + ".")}

    def theirs():
        for old in b.work.glob("reference.vdsc*"):
            old.unlink()
        found = burn_of(b, its(b, "burn", "-i", path, "-o", f"file://{out}"))
        return {"s": found[0], "MiB": found[1], "header": os.path.getsize(f"{out}.isohdr")}

    return benchlib.interleave({"ours": ours, "theirs": theirs}, b.rounds)


@contextlib.contextmanager
def by_reference(b, image):
    directory = b.work / "its"
    directory.mkdir(exist_ok=True)
    url = f"{b.cluster.proxy['url']}/v1/objects/{image.removeprefix('dfc://')}"
    process = subprocess.Popen(its(b, "mount", "-u", url, "-p", directory, "-m", "fuse"), env=b.env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not os.path.ismount(directory):
            if process.poll() is not None:
                raise RuntimeError(f"the reference's mount ended with {process.returncode}")
            time.sleep(0.01)
        yield directory
    finally:
        subprocess.run(["fusermount3", "-u", str(directory)], check=True)
        process.wait()


def reference_epochs(b):
    """A cold epoch of small files through its FUSE mount of our image, and through ours."""
    root = b.tree("epoch", b.scaled(FILES), FILE, 50)
    images = images_of(b, root)
    shutil.rmtree(root)

    def ours(store):
        with mounted(b, images[store]) as directory:
            return epoch(directory)

    def theirs():
        with by_reference(b, images["refer"]) as directory:
            return epoch(directory)

    sides = {store: lambda store=store: ours(store) for store in ("pack", "refer")}
    runs = benchlib.interleave({**sides, "theirs": theirs}, b.rounds)
    b.row("files/s of a cold epoch, the reference", b.scaled(FILES) / benchlib.median(runs["theirs"]), "shown", True)
    for store, goal in (("pack", 4), ("refer", 1.5)):
        ratio = benchlib.paired_ratio(runs["theirs"], runs[store])["median"]
        b.row(f"cold epoch, {store} against the reference", ratio, f">= {goal}", ratio >= goal, "times")


def main():
    parser = benchlib.arguments(__doc__)
    parser.add_argument("--scale", type=int, default=1, help="divide the sizes by this")
    parser.add_argument("--reference", metavar="PROGRAM", help="VDisc's own program, to compare with (DFC_VDISC)",
                        default=os.environ.get("DFC_VDISC"))
    args = parser.parse_args()
    document = {"machine": benchlib.begin(args), "scale": args.scale}
    missing = [p for p in ("xorriso", "nbdkit", "nbdcopy", "qemu-img", "curl") if shutil.which(p) is None]
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build, targets=2) as cluster:
        b = Bench(args, work, cluster)
        cluster.call("POST", "/v1/buckets/img", {"action": "create", "value": {"durability": "async"}})
        beside = (reference_burns, reference_epochs) if args.reference else ()
        for part in (lists, headers, overlap, device, epochs, distant, *beside):
            if args.only not in part.__name__ or (missing and part in (headers, device)):
                continue
            log(part.__doc__)
            part(b)
    document["rows"] = b.rows
    benchlib.table(["row", "figure", "unit", "goal", "met"],
                   [[r["row"], r["value"], r["unit"], r["goal"], "yes" if r["met"] else "NO"] for r in b.rows])
    if missing:
        log(f"left out for want of {', '.join(missing)}")
    benchlib.finish(args, "vdisc", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
