"""Mounts of a user without rights, by fusermount3."""

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile

from lib import BUILD, equal
from mount_lib import clean, to_be_cleaned

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


def open_device(directory):
    """/dev/fuse as Debian has it: for all users.  The mount namespace is the test's own."""
    device = os.path.join(directory, "fuse")
    os.mknod(device, stat.S_IFCHR, os.makedev(10, 229))
    os.chmod(device, 0o666)
    subprocess.run(["mount", "--bind", device, "/dev/fuse"], check=True)


@contextlib.contextmanager
def place_of_a_user(c):
    """→ the place, and call(words…): a command of the user, in a directory with our programs."""
    directory = tempfile.mkdtemp(prefix="dfc-test-mount-")
    path = os.path.join(directory, "mnt")

    def call(*words):
        done = subprocess.run(words, cwd=directory, env={**c.dfcctl_environment(), "HOME": directory},
                              capture_output=True, text=True, timeout=120, check=False, **NOBODY)
        equal(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    try:
        os.mkdir(path)
        for name in ("dfcctl", "dfc-mount"):
            shutil.copy(os.path.join(BUILD, name), directory)
        for name in (directory, path):
            os.chown(name, NOBODY["user"], NOBODY["group"])
        open_device(directory)
        to_be_cleaned(path)
        yield path, call
    finally:
        clean()
        subprocess.run(["umount", "/dev/fuse"], check=False, capture_output=True)
        shutil.rmtree(directory)
