"""Members of a cache group for black-box tests: processes of dfc-cached, each with a directory."""

import atexit
import glob
import json
import os
import secrets
import signal
import subprocess
import time
import urllib.request

from lib import BUILD, Failed, equal, wait_for

GROUP = "g"
FOOT = 1 << 16  # more than what a piece's file has behind its bytes
RUNNING = []


def key_of(c, name="group"):
    """A file with a key."""
    path = os.path.join(c.dir, name + ".key")
    if not os.path.exists(path):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(secrets.token_hex(32) + "\n")
    return path


def kill_all():
    for member in RUNNING:
        member.end(signal.SIGKILL)


class Cached:
    """One member, started, and known to the cluster."""

    def __init__(self, c, number, *flags, group=GROUP, env=None, key="group"):
        if not RUNNING:
            atexit.register(kill_all)
        self.c, self.name, self.group = c, f"m{number}", group
        self.dir = os.path.join(c.dir, f"cached-{group}-{number}")
        self.cache = os.path.join(self.dir, "cache")
        os.makedirs(self.cache, exist_ok=True)
        self.log_path = self.dir + ".log"
        self.argv = [os.path.join(BUILD, "dfc-cached"), f"--group={group}", f"--id={self.name}",
                     f"--cache-dir={self.cache}", f"--dir={self.dir}", "--cache-size=1GiB",
                     "--cache-free=0", f"--port={c.ports.base + 40 + number}",
                     "--report-interval=200ms", "--group-wait=20s", "--group-connect=5s",
                     *([f"--group-key-file={key_of(c, key)}"] if key else []), *flags]
        self.process = None
        RUNNING.append(self)
        self.start(env)

    def start(self, env=None):
        ready = os.path.join(self.dir, "ready.json")
        if os.path.exists(ready):
            os.remove(ready)
        environment = dict(os.environ, **self.c.dfcctl_environment(), **(env or {}))
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.argv, env=environment, stdout=log, stderr=log)
        wait_for(lambda: os.path.exists(ready) or self.process.poll() is not None,
                 f"member {self.name} is ready")
        if self.process.poll() is not None:
            raise Failed(f"dfc-cached ended with {self.process.returncode}: {self.log()}")
        with open(ready, encoding="utf-8") as f:
            self.url = json.load(f)["url"]

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self, number):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait()

    def stop(self):
        self.end(signal.SIGTERM)
        equal(self.process.returncode, 0, f"status of {self.name}: {self.log()[-2000:]}")

    def kill(self):
        self.end(signal.SIGKILL)

    def remove(self):
        """For good, and the cluster knows it: the next test has others."""
        self.end(signal.SIGTERM)
        RUNNING.remove(self)

    def stat(self, name):
        with urllib.request.urlopen(self.url + "/metrics", timeout=60) as reply:
            lines = reply.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("dfc_" + name))

    def pieces(self):
        return sorted(glob.glob(self.cache + "/dfc-cache/pieces/*/*/*"))


def show(c, group=GROUP):
    return {m["id"]: m for m in c.get_json("/v1/cache-groups/" + group)["members"]}


def await_members(c, present, group=GROUP):
    """Until the cluster has these members present, and no others."""
    wait_for(lambda: {i for i, m in show(c, group).items() if m["state"] == "present"} == set(present),
             f"members {present}")


def kept(members):
    """Bytes of pieces that the members have written, and that are there."""
    return sum(m.stat("cache_written_bytes_total") for m in members)


def await_reports(c, members):
    """Until each has reported once more, and so knows of all others what the cluster knows now."""
    begun = time.monotonic()

    def all_have():
        ms = 1000 * (time.monotonic() - begun)
        of = show(c, members[0].group)
        return all(of[m.name]["silent_ms"] < ms - 20 for m in members)

    wait_for(all_have, "a report of each member")


def said_by_members(c):
    """Logs of members that have a sanitizer's report."""
    paths = glob.glob(os.path.join(c.dir, "cached-*.log"))
    return [p for p in paths if b"Sanitizer" in open(p, "rb").read()]
