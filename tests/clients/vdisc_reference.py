#!/usr/bin/env python3
"""Images of VDisc's own program, and ours, each read by the other.

DFC_VDISC names that program (github.com/NVIDIA/vdisc, `go build ./cmd/vdisc`)."""

import os
import random
import subprocess

import frame  # noqa: F401 (first: the next one is found by it)
from lib import check, equal, in_parallel, main, skip

PROGRAM = os.environ.get("DFC_VDISC", "")
FILES = {f"raw/{i % 7}/{'long-' * (i % 9)}{i}.bin": random.Random(i).randbytes(i * i * 67 % 90001)
         for i in range(150)}
FILES["raw/empty"] = b""
FILES["raw/large.bin"] = random.Random(1).randbytes(9 << 20)


def reference(c, *words):
    home = os.path.join(c.dir, "cache")
    os.makedirs(home, exist_ok=True)
    done = subprocess.run([PROGRAM, *words[:1], "--cache-mode=memory", f"--cache-root={home}", *words[1:]],
                          capture_output=True, text=True, timeout=120, check=False)
    equal(done.returncode, 0, f"{words}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout


def url(c, name):
    return f"{c.endpoint}/v1/objects/data/{name}"


def write_list(c):
    path = os.path.join(c.dir, "list.csv")
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(f"/{key},{url(c, key)},{len(data)}\n" for key, data in FILES.items()))
    return path


def dfcctl(c, *words):
    done = c.dfcctl(*words)
    equal(done.returncode, 0, f"{words}: {done.stderr[-500:]}")
    return done.stdout


def test_it_reads_ours(c):
    c.create("data")
    in_parallel(lambda key: c.put("data", key, FILES[key]).expect(200), FILES)
    dfcctl(c, "vdisc", "burn", "-i", write_list(c), "-o", "dfc://data/ours.vdsc")
    names = {line.split()[-1] for line in reference(c, "ls", "-u", url(c, "ours.vdsc"), "-p", "/raw").splitlines()}
    check({"0", "1", "6", "empty", "large.bin"} <= names, f"names in /raw: {names}")
    for key in list(FILES)[::9] + ["raw/empty", "raw/large.bin"]:
        out = os.path.join(c.dir, "copy")
        reference(c, "cp", "-u", url(c, "ours.vdsc"), "-p", "/" + key, "-o", out)
        with open(out, "rb") as f:
            check(f.read() == FILES[key], f"{key}: other bytes")
        os.unlink(out)


def test_we_read_its(c):
    """Its image is two files, which are put beside the objects."""
    out = os.path.join(c.dir, "theirs.vdsc")
    reference(c, "burn", "-i", write_list(c), "-o", f"file://{out}")
    for name in ("theirs.vdsc", "theirs.vdsc.isohdr"):
        with open(os.path.join(c.dir, name), "rb") as f:
            c.put("data", name, f.read()).expect(200)
    image = "dfc://data/theirs.vdsc"
    listed = dfcctl(c, "vdisc", "ls", "-r", image)
    check(all(key.rsplit("/", 1)[-1] in listed for key in FILES), "all names are listed")
    for key in list(FILES)[::9] + ["raw/empty", "raw/large.bin"]:
        done = c.dfcctl("vdisc", "cat", image, "/" + key, text=False)
        check(done.returncode == 0 and done.stdout == FILES[key], f"{key}: {done.stderr[-300:]}")


if __name__ == "__main__":
    if not os.access(PROGRAM, os.X_OK):
        skip("DFC_VDISC names no program: build github.com/NVIDIA/vdisc")
    main(targets=3)
