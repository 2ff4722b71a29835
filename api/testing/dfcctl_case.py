"""A dfcctl that runs against a cluster which follows the HTTP contract and misbehaves on demand.

DFC_BUILD names the build directory, DFC_TEST_SLOW how many times slower than usual this machine
is."""
import json
import os
import pty
import random
import shutil
import subprocess
import tempfile
import unittest

from mock_cluster import MockCluster

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
DFCCTL = os.path.join(os.environ.get("DFC_BUILD", os.path.join(ROOT, "build")), "dfcctl")
SLOW = float(os.environ.get("DFC_TEST_SLOW", "1"))


def pattern(size, seed=1):
    return random.Random(seed).randbytes(size)


class Case(unittest.TestCase):
    def setUp(self):
        self.mock = MockCluster()
        self.addCleanup(self.mock.close)
        self.dir = tempfile.mkdtemp(prefix="dfcctl-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if k != "NO_COLOR" and not k.startswith("DFC_")}
        env["XDG_CONFIG_HOME"] = self.path("config")
        env["XDG_CACHE_HOME"] = self.path("cache")
        env["DFC_ENDPOINT"] = self.mock.endpoint
        env["http_proxy"] = "http://127.0.0.1:9"  # must be ignored
        env.update(more)
        return env

    def start(self, *words, **options):
        env = options.pop("env", None) or self.environment()
        return subprocess.Popen([DFCCTL, *words], cwd=self.dir, env=env, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def run_ctl(self, *words, code=0, stdin=b"", env=None):
        p = self.start(*words, env=env)
        out, err = p.communicate(stdin, timeout=60 * SLOW)
        self.assertEqual(p.returncode, code, "%s\nout: %s\nerr: %s" % (words, out[-2000:], err))
        self.out, self.err = out, err.decode()
        return out

    def text(self, *words, **options):
        return self.run_ctl(*words, **options).decode()

    def json(self, *words, **options):
        return json.loads(self.run_ctl(*words, "-o", "json", **options))

    def json_error(self, *words, **options):
        self.run_ctl(*words, "-o", "json", **options)
        self.assertEqual(self.out, b"")
        return json.loads(self.err)["error"]

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def files(self, below="."):
        found = []
        for at, _, names in os.walk(self.path(below)):
            found += [os.path.relpath(os.path.join(at, n), self.path(below)) for n in names]
        return sorted(found)


def terminal(case, words, keys=b"", **environment):
    """Run on a terminal of its own: everything that is shown, and the exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(case.dir)
        os.execve(DFCCTL, [DFCCTL, *words], case.environment(TERM="xterm", **environment))
    if keys:
        os.write(fd, keys)
    shown = b""
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(fd)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
