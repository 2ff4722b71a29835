"""A member of a cache group: one process of dfc-cached, with a directory of its own."""

import json
import subprocess
import time
import urllib.request


def metric(url, name):
    """The sum of a node's metrics whose names begin so."""
    with urllib.request.urlopen(url + "/metrics") as reply:
        lines = reply.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("dfc_" + name))


class Cached:
    """`inside`: what puts a command on the member's host; `flags`: where it listens."""

    def __init__(self, build, directory, group, name, env, flags=(), inside=()):
        self.name, self.dir, self.env, self.process = name, directory, env, None
        (directory / "cache").mkdir(parents=True)
        self.argv = [*inside, str(build / "dfc-cached"), "--group", group, "--id", name, "--cache-dir",
                     str(directory / "cache"), "--dir", str(directory), "--cache-size", "8GiB",
                     "--cache-free", "0", "--report-interval", "200ms", "--log-file",
                     str(directory / "log"), *flags]
        self.start()

    def start(self):
        ready = self.dir / "ready.json"
        ready.unlink(missing_ok=True)
        self.process = subprocess.Popen(self.argv, env=self.env)
        while not ready.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"dfc-cached ended with {self.process.returncode}")
            time.sleep(0.02)
        self.url = json.loads(ready.read_text())["url"]

    def stat(self, name):
        return metric(self.url, name)

    def kept(self):
        """Bytes of pieces, with what their files have behind the bytes."""
        return sum(p.stat().st_size for p in (self.dir / "cache").glob("dfc-cache/pieces/*/*/*"))

    def end(self, kill=False):
        if self.process.poll() is None:
            (self.process.kill if kill else self.process.terminate)()
            self.process.wait()
