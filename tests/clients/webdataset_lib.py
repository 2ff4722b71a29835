"""WebDataset for tests: the package, programs that read sample by sample, shards.

    python = python_with("webdataset", (PACKAGE,))     # of venv_lib: or the test is skipped
    epoch = Epoch(python, "import webdataset …", env)  # its prints are steps
    epoch.finish()
    equal(epoch.read, all_samples(SMALL), "samples")
"""

import io
import os
import random
import subprocess
import tarfile
import tempfile
import threading

import frame  # noqa: F401 (first: the next one is found by it)
from lib import BUILD, WAIT_SECONDS, Failed

PACKAGE = "webdataset==1.0.2"
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


# --- programs -------------------------------------------------------------------------------------

class Epoch:
    """One run of a program, sample by sample."""

    def __init__(self, python, code, env):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".py")
        self.file.write(code)
        self.file.flush()
        env = {**os.environ, "PATH": BUILD + os.pathsep + os.environ["PATH"],
               "no_proxy": "127.0.0.1", **env}
        self.process = subprocess.Popen([python, "-W", "ignore", "-c", STEPPED, self.file.name],
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
