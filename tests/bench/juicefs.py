"""JuiceFS, if the machine has the program: volumes, and mounts of them."""

import os
import pathlib
import subprocess
import time

PATIENCE_S = 60
# Nothing but the mount: no report to its makers, no work in the background.
FLAGS = ("--no-usage-report", "--no-bgjob", "--backup-meta=0")
KEYS = {"ACCESS_KEY": "bench", "SECRET_KEY": "bench-secret"}  # of an S3 store that asks nobody's


def run(work, *words):
    """`work`: what it takes for its user's home, which has its logs."""
    done = subprocess.run(["juicefs", *map(str, words)], env={**os.environ, **KEYS, "HOME": str(work)},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"juicefs {words[0]}: {done.stdout[-2000:]}")


def make(work, meta, *flags):
    run(work, "format", "--trash-days=0", *flags, meta, "bench")


def child_of(pid):
    """The only child of a process, whichever thread has it."""
    child, = (int(word) for listed in pathlib.Path(f"/proc/{pid}/task").glob("*/children")
              for word in listed.read_text(encoding="ascii").split())
    return child


def await_that(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.02)


class Mount:
    """pid: the process that serves; the one that was started watches it."""

    def __init__(self, work, meta, path, *flags):
        self.path = path
        with open(work / "juicefs.log", "ab") as log:
            self.process = subprocess.Popen(
                ["juicefs", "mount", *FLAGS, *map(str, flags), meta, str(path)],
                env={**os.environ, "HOME": str(work)}, stdout=log, stderr=log)

        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"juicefs has ended: {(work / 'juicefs.log').read_text()[-2000:]}")
            return os.path.ismount(path)

        await_that(ready, "juicefs to mount")
        self.pid = child_of(self.process.pid)

    def end(self):
        """A program may still look at what it served."""
        await_that(lambda: subprocess.run(["umount", str(self.path)], check=False,
                                          stderr=subprocess.DEVNULL).returncode == 0, f"umount of {self.path}")
        self.process.wait(PATIENCE_S)
