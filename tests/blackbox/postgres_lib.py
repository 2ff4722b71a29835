"""PostgreSQL servers of black-box tests."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess

from lib import skip, wait_for
from mount_lib import has_ended
from redis_lib import Redis

PROGRAMS = max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)
# It does not run as root.
AS_POSTGRES = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def needs_postgres():
    if PROGRAMS is None:
        skip("postgresql is not installed")


def program(name, *args):
    command = [os.path.join(PROGRAMS, name), *args]
    return AS_POSTGRES + command if os.getuid() == 0 else command


def children_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]
    return []


class Postgres(Redis):
    """A server in a directory of its own; it keeps the port from one start to the next."""

    def argv(self, options):
        if os.getuid() == 0:
            shutil.chown(self.dir, "postgres", "postgres")
        data = os.path.join(self.dir, "data")
        subprocess.run(program("initdb", "-D", data, "-A", "trust", "-N", "-U", "dfc",
                               "--no-locale", "-E", "UTF8"), check=True, capture_output=True)
        return program("postgres", "-D", data, "-p", str(self.port), "-c",
                       "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", *options)

    def answers(self):
        """What a killed server left may be in the way of a new one for a moment."""
        if has_ended(self.pid):
            self.starter.stdin.write("\n")
            self.pid = int(self.starter.stdout.readline())
        return subprocess.run(program("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)),
                              check=False).returncode == 0

    def kill(self):
        """kill -9, of the processes of its connections, too."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)
        for child in children_of(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            wait_for(lambda child=child: has_ended(child), "the end of a connection")
        super().kill()

    def sql(self, statement, database="postgres"):
        return subprocess.run(
            program("psql", "-qAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
                    str(self.port), "-U", "dfc", "-d", database, "-c", statement),
            check=True, capture_output=True, text=True).stdout.strip()

    def url(self, database=0, port=None):
        if not self.sql(f"SELECT 1 FROM pg_database WHERE datname = 'd{database}'"):
            self.sql(f"CREATE DATABASE d{database}")
        return f"postgres://dfc@127.0.0.1:{port or self.port}/d{database}"
