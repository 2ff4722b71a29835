"""Programs that speak S3, as a user of a cluster with access control.

    class Rclone(Program):
        name, package = "rclone", "rclone"

    main(cluster_for(Rclone), targets=2)

Each test gets the cluster.  `c.program` is the program; `c.directory` has files of the test.
"""

import os
import random
import shutil
import subprocess
import tempfile

import frame  # noqa: F401 (first: the next ones are found by it)
from large_lib import large_data
from lib import check, equal, skip
from s3_lib import S3Cluster

SIZE = 3_000_001
DATA = random.Random(11).randbytes(SIZE)
LARGE = large_data(12, 17)  # more than programs send in one request
RUN_SECONDS = 120 + (len(LARGE) >> 21)


class Program:
    """One program.  Subclasses say how it is called."""

    name = package = None
    options = ()  # before every command

    def __init__(self, c):
        self.endpoint, self.key, self.directory = c.s3_url("p1"), c.root, c.directory
        self.environment = {**os.environ, "HOME": c.directory,
                            "AWS_ACCESS_KEY_ID": c.root.access,
                            "AWS_SECRET_ACCESS_KEY": c.root.secret,
                            "AWS_DEFAULT_REGION": "us-east-1"}
        self.prepare()

    def prepare(self):
        """Writes the program's configuration."""

    def run(self, *arguments, ok=True, text=None):
        """What the program prints; `ok`: whether it must end with 0; `text`: what it reads."""
        argv = [self.name, *self.options, *arguments]
        done = subprocess.run(argv, env=self.environment, cwd=self.directory, text=True,
                              input=text, capture_output=True, check=False, timeout=RUN_SECONDS)
        check((done.returncode == 0) == ok,
              f"{' '.join(argv)} ends with {done.returncode}: {done.stderr[-2000:]}{done.stdout}")
        return done.stdout


def cluster_for(kind):
    """Makes the cluster of a test for one kind of program, if the program is installed."""
    if shutil.which(kind.name) is None:
        skip(f"{kind.name} is not installed (Debian: {kind.package})")

    class ProgramCluster(S3Cluster):
        """Has the program, and a directory with a file of SIZE bytes."""

        def __init__(self, **shape):
            super().__init__(**shape)
            self.folder = tempfile.TemporaryDirectory(prefix="dfc-program-")
            self.directory = self.folder.name
            write(self, "data", DATA)
            self.program = kind(self)

    return ProgramCluster


def path_of(c, name):
    return os.path.join(c.directory, name)


def write(c, name, data):
    os.makedirs(os.path.dirname(path_of(c, name)), exist_ok=True)
    with open(path_of(c, name), "wb") as f:
        f.write(data)


def read(c, name):
    with open(path_of(c, name), "rb") as f:
        return f.read()


def same(c, name, data=DATA):
    """Compares a file of the test."""
    check(read(c, name) == data, f"{name}: other bytes")


def stored(c, bucket, key, data=DATA):
    """Compares an object, read by the native API at a target."""
    got = c.call("GET", f"/v1/objects/{bucket}/{key}", node="t1").expect(200)
    check(got.body == data, f"{bucket}/{key}: other bytes")


def gone(c, bucket, key):
    equal(c.call("HEAD", f"/v1/objects/{bucket}/{key}").status, 404, f"{bucket}/{key}")
