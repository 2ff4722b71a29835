#!/usr/bin/env python3
"""The real WebDataset reads as README and docs/guide/sorting.md say, and a target that is killed
for 4 s does not end the epoch.

The programs are the pages' own, with this cluster's address.  Each sample is read when the test
says so: a kill
comes where it is meant to come.  Skipped where the package is not there and cannot be installed."""

import io
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import venv

import frame
from lib import BUILD, WAIT_SECONDS, Failed, check, equal, main, skip

PACKAGE = "webdataset==1.0.2"
AWAY_SECONDS = 4
SHARDS, SAMPLES = 8, 12
SMALL, LARGE = 40_000, 2_000_000  # of a sample; a shard of the quickstart has 512 KiB
# Runs a program from a page; print() says what it read, and waits for the test's word.
STEPPED = """
import sys
def step(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()
    sys.stdin.readline()
with open(sys.argv[1], encoding="utf-8") as f:
    code = compile(f.read(), sys.argv[1], "exec")
exec(code, {"__name__": "__main__", "print": step})
"""


# --- the package ----------------------------------------------------------------------------------

def imports(python):
    return subprocess.run([python, "-W", "ignore", "-c", "import webdataset"], capture_output=True,
                          check=False).returncode == 0


def python_with_webdataset(scratch):
    if imports(sys.executable):
        return sys.executable
    directory = os.environ.get("DFC_WEBDATASET_VENV") or os.path.join(scratch, "venv")
    python = os.path.join(directory, "bin", "python")
    if not (os.path.exists(python) and imports(python)):
        try:
            venv.create(directory, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as e:
            skip(f"no virtual environment (Debian: python3-venv): {e}")
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "30", PACKAGE],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            skip(f"{PACKAGE} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    check(imports(python), f"{PACKAGE} is installed and cannot be imported")
    return python


# --- the pages' programs --------------------------------------------------------------------------

PAGES = ("README.md", "docs/guide/sorting.md")
BLOCK = re.compile(r"^```python\n(import webdataset.*?)^```$", re.M | re.S)


def examples():
    """The blocks of the pages that import webdataset, in order."""
    found = []
    for page in PAGES:
        with open(os.path.join(frame.ROOT, page), encoding="utf-8") as f:
            found += BLOCK.findall(f.read())
    equal(len(found), len(PAGES), f"programs of {' and '.join(PAGES)} that import webdataset")
    return found


def example(c, marker):
    code = next(e for e in examples() if marker in e)
    check(
        "/quickstart/shard-{00000..00007}.tar" in code or
        "quickstart/shard-{00000..00007}.tar" in code,
        "the example reads the shards that the quickstart makes")
    return code.replace("http://127.0.0.1:8080", c.endpoint)


class Epoch:
    """One run of a program, sample by sample."""

    def __init__(self, c, code):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".py")
        self.file.write(code)
        self.file.flush()
        env = dict(os.environ, DFC_ENDPOINT=c.endpoint,
                   PATH=BUILD + os.pathsep + os.environ["PATH"], no_proxy="127.0.0.1")
        self.process = subprocess.Popen([PYTHON, "-W", "ignore", "-c", STEPPED, self.file.name],
                                        env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.read = []

    def step(self):
        """The next sample's line; None: the epoch is over."""
        watch = threading.Timer(WAIT_SECONDS, self.process.kill)
        watch.start()
        line = self.process.stdout.readline()
        watch.cancel()
        if not line:
            return None
        self.read.append(line.strip())
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return line

    def finish(self):
        while self.step() is not None:
            pass
        self.process.stdin.close()
        error = self.process.stderr.read()
        if self.process.wait(WAIT_SECONDS) != 0:
            raise Failed(f"the program failed after {len(self.read)} samples: {error[-800:]}")


# --- the data -------------------------------------------------------------------------------------

def shard(i, size):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for n in range(SAMPLES):
            for extension, data in (("jpg", random.Random(i * 1000 + n).randbytes(size)),
                                    ("cls", b"%d" % (n % 10))):
                member = tarfile.TarInfo(f"{i:05d}-{n:03d}.{extension}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def make_shards(c, size):
    for i in range(SHARDS):
        c.put("quickstart", f"shard-{i:05d}.tar", shard(i, size))


def all_samples(size):
    return [f"{i:05d}-{n:03d} {size}" for i in range(SHARDS) for n in range(SAMPLES)]


def away_for_a_while(c, node):
    c.kill(node, "-9")
    back = threading.Timer(AWAY_SECONDS, c.start, [node])
    back.start()
    return back


def read_over_a_kill(c, code, size, before):
    """The owner of the shard after the one in which the kill comes is away; each sample comes once,
    in order."""
    epoch = Epoch(c, code)
    for _ in range(before):
        check(epoch.step() is not None, "the epoch has begun")
    current = (before - 1) // SAMPLES
    owners = [c.owner("quickstart", f"shard-{i:05d}.tar") for i in range(SHARDS)]
    back = away_for_a_while(c, owners[current if before % SAMPLES else current + 1])
    epoch.finish()
    back.join()
    equal(epoch.read, all_samples(size), "samples")
    for node in c.targets():
        c.wait_node(node, "active")


# --- the tests ------------------------------------------------------------------------------------

def test_the_epoch(c):
    c.create("quickstart")
    make_shards(c, SMALL)
    for marker in ("redirect=never", "dfcctl"):
        epoch = Epoch(c, example(c, marker))
        epoch.finish()
        equal(epoch.read, all_samples(SMALL), f"samples, {marker}")


def test_http_over_a_target_that_is_away(c):
    """Its curl repeats a request that is refused (502, 503): the shards that begin meanwhile are
    read."""
    read_over_a_kill(c, example(c, "redirect=never"), SMALL, before=2 * SAMPLES)


def test_dfcctl_in_the_middle_of_a_shard(c):
    """More than the buffers on the way hold: dfcctl goes on where it was."""
    make_shards(c, LARGE)
    read_over_a_kill(c, example(c, "dfcctl"), LARGE, before=2 * SAMPLES + 2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="dfc-webdataset-") as directory:
        PYTHON = python_with_webdataset(directory)
        main(targets=3)
