#!/usr/bin/env python3
"""Random calls on one file against an array in memory, and IOR's patterns by several processes: through a mounted
bucket of plogs, through libplfs-dfc and through libdfcplog (tests/posix/fsx.c, tests/bench/plog_load.c).

DFC_FSX_CALLS, DFC_FSX_SEEDS: how many calls of a process, and which seeds ("1-9"): a process and a file each."""

import ctypes
import json
import os
import re
import subprocess

from lib import BUILD, ROOT, check, equal, in_parallel, main
from mount_lib import mount, mounted, needs_fuse, said_by_sanitizers, umount

CALLS = int(os.environ.get("DFC_FSX_CALLS", "200"))
FIRST, _, LAST = os.environ.get("DFC_FSX_SEEDS", "1-4").partition("-")
SEEDS = range(int(FIRST), int(LAST or FIRST) + 1)
RANKS, TRANSFER = 4, 47008
# As IOR's -b and -s: bytes of a block, blocks of a rank.
PATTERNS = {
    "strided": {"block": TRANSFER, "segments": 12},
    "segmented": {"block": 12 * TRANSFER, "segments": 1},
    "blocks": {"block": 4 * TRANSFER, "segments": 3},
    "jumping": {"block": TRANSFER, "segments": 12, "random": 1},
    "own": {"block": TRANSFER, "segments": 12, "own": 1},
}


def fsx(c, kind, path, *options, seed=1, calls=CALLS, code=0):
    done = subprocess.run([os.path.join(BUILD, "posix-fsx"), kind, path, f"--seed={seed}", f"--calls={calls}", *options],
                          env=c.dfcctl_environment(), capture_output=True, text=True, check=False)
    equal(done.returncode, code, f"exit code of posix-fsx {kind}: {done.stdout[-3000:]}{done.stderr}")
    return done.stdout


def test_the_library_has_what_its_header_declares(_):
    with open(os.path.join(ROOT, "plog/client/dfc_plog.h"), encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    names = re.findall(r"^[a-z].*?\b(dfc_plog_\w+)\(", text, re.M)
    check(len(names) > 20, f"functions of the header: {names}")
    library = ctypes.CDLL(os.path.join(BUILD, "plog/client/libdfcplog.so"))
    equal([n for n in names if not hasattr(library, n)], [], "functions that it has not")


def test_fsx_finds_a_lost_write(c):
    """On a file of this machine; and all is well without the lost one."""
    for seed in (1, 5, 6):  # of some others the write is overwritten before it is read
        path = os.path.join(c.dir, f"plain{seed}")
        equal(fsx(c, "posix", path, seed=seed, calls=2000), "ok 2000 calls\n", "posix-fsx")
        said = fsx(c, "posix", path, "--forget=1000", seed=seed, calls=2000, code=1)
        check(re.search(rf"seed {seed}, call 10\d\d: ", said), said)


def test_fsx_on_a_mount(c):
    c.create("fsx", durability="async")
    with mounted(c, "dfc://fsx", "--segment-size=64KiB", noun="plog") as path:
        in_parallel(lambda seed: fsx(c, "posix", f"{path}/f{seed}", seed=seed), SEEDS, workers=4)
        equal(os.listdir(path), [], "files that are left")


def test_fsx_by_the_libraries(c):
    c.create("calls", durability="async")
    kinds = (("plfs", "dfc://calls/shim"), ("plog", "calls/library"))
    in_parallel(lambda job: fsx(c, job[0][0], f"{job[0][1]}{job[1]}", seed=job[1]),
                [(kind, seed) for kind in kinds for seed in SEEDS], workers=4)
    equal(c.dfcctl("plog", "gc", "calls", "--grace", "0s").returncode, 0, "plog gc")
    equal(c.names("calls", internal="true"), [], "objects that are left")


class Job:
    """Processes that begin together."""

    def __init__(self, c, kind, verb, paths, ranks, **pattern):
        options = [f"--{name}={value}" for name, value in {"transfer": TRANSFER, "ranks": RANKS, **pattern}.items()]
        self.processes = [
            subprocess.Popen([os.path.join(BUILD, "plog-load"), kind, verb, paths[rank % len(paths)], f"--rank={rank}", *options],
                             env=c.dfcctl_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) for rank in range(ranks)]

    def end(self):
        """[(exit code, output, errors)]"""
        ready = [p.stdout.readline() for p in self.processes]
        for p in self.processes:
            p.stdin.write("go\n")
            p.stdin.flush()
        said = [p.communicate() for p in self.processes]
        equal(ready, ["ready\n"] * len(ready), f"what the processes say: {said}")
        return [(p.returncode, *s) for p, s in zip(self.processes, said)]

    def moved(self):
        done = self.end()
        equal([code for code, _, _ in done], [0] * len(done), f"exit codes: {[e for _, _, e in done]}")
        return sum(json.loads(out)["bytes"] for _, out, _ in done)


def write_and_read(c, kind, paths):
    """Every byte, by those who wrote it, by the next rank, and by another number of readers."""
    total = RANKS * 12 * TRANSFER
    for name, pattern in PATTERNS.items():
        where = [path + name for path in paths]
        equal(Job(c, kind, "write", where, RANKS, **pattern).moved(), total, f"{name}: bytes written")
        for ranks, how in ((RANKS, {}), (RANKS, {"shift": 1}), (3, {"readers": 3}), (5, {"readers": 5})):
            equal(Job(c, kind, "read", where[::-1], ranks, **{**pattern, **how}).moved(), total, f"{name}: bytes read, {how}")
        Job(c, kind, "stat", where, 1, **pattern).moved()


def test_patterns_on_two_mounts(c):
    c.create("ior", durability="async")
    paths = [mount(c, "dfc://ior", "--segment-size=64KiB", noun="plog", name=name) for name in ("one", "two")]
    write_and_read(c, "posix", [path + "/" for path in paths])
    with open(paths[0] + "/strided", "r+b") as f:  # one byte is another one: one reader says so
        f.seek(7 * TRANSFER + 5)
        byte = f.read(1)[0]
        f.seek(7 * TRANSFER + 5)
        f.write(bytes([byte ^ 1]))
    done = Job(c, "posix", "read", [paths[0] + "/strided"], RANKS, **PATTERNS["strided"]).end()
    equal([code for code, _, _ in done], [0, 0, 0, 1], "exit codes of readers of damage")
    check(f"byte {7 * TRANSFER + 5} of file 0 is another one" in done[3][2], done[3][2])
    for path in paths:
        umount(c, path)


def test_patterns_by_the_libraries(c):
    c.create("patterns", durability="async")
    write_and_read(c, "plfs", ["dfc://patterns/shim-"])
    write_and_read(c, "plog", ["patterns/library-"])


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main()
