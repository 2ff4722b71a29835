#!/usr/bin/env python3
"""Large programs on a volume: the tests of CPython that use files, dbench, a build of this project,
SQLite and PostgreSQL.  The databases and the mount are killed (SIGKILL) under load: what was
committed is there, once, and nothing is damaged."""

import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

import postgres_lib
from lib import check, equal, main, skip, wait_for
from mount_bucket import read
from mount_kill import kill_server
from mount_lib import clean, kill_all, mount, mounted, needs_fuse, said_by_sanitizers
from mount_programs import run
from mount_volume import made
from postgres_lib import Postgres, program

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PYTHON = "/usr/bin/python3"
MODULES = ("test_dbm_dumb", "test_fcntl", "test_file", "test_fileio", "test_glob", "test_gzip", "test_mailbox",
           "test_mmap", "test_os", "test_pathlib", "test_posix", "test_shelve", "test_shutil", "test_tempfile",
           "test_zipfile", "test_zipimport")
BUILT = "mount/volume/volume_sim"
MANY = "--restarts=1000"
ROWS = 150
LOCK_SECONDS = 180  # three times as long as the session of a mount that was killed
LOAD_SECONDS = 4
DBENCH_SECONDS = 15
CLIENTS = 4
ROUNDS = int(os.environ.get("DFC_ROUNDS", 2))


def open_to_users(c):
    os.chmod(c.dir, 0o755)


def test_the_tests_of_cpython_pass(c):
    """Those of scheduling are no business of files, and fail below chrt(1)."""
    with mounted(c, made(c, "cpython"), "--allow-other") as path:
        for module in MODULES:
            began = time.monotonic()
            said = run(PYTHON, "-m", "test", "--tempdir", path, "-i", "*sched*", module, cwd=path,
                       env=dict(os.environ, TMPDIR=path))
            check("1 test OK" in said, said[-2000:])
            print(f"{module}: {time.monotonic() - began:.1f} s", flush=True)
    check(len(c.names("cpython")) > 1, "no test has written to the volume")


def test_dbench(c):
    with mounted(c, made(c, "dbench"), "--allow-other") as path:
        said = run("dbench", "--directory", path, "--timelimit", str(DBENCH_SECONDS), str(CLIENTS))
        wrong = [line for line in said.splitlines() if ("ERROR" in line or "failed" in line) and
                 "barrier semaphore" not in line]  # it does without
        equal(wrong, [], "errors")
        check("Throughput" in said, said)


def copy_of_the_source(path):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-zco", "--exclude-standard"], check=True,
                            capture_output=True).stdout
    for name in filter(None, listed.split(b"\0")):
        to = os.path.join(os.fsencode(path), name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.join(os.fsencode(ROOT), name), to)


def built(path):
    """The bytes of a program that is built there."""
    copy_of_the_source(path)
    env = dict(os.environ, CC="gcc", CCACHE_DISABLE="1")
    run("meson", "setup", "-Ddebug=false", "-Dtests=enabled", "b", cwd=path, env=env)
    run("ninja", "-C", "b", BUILT, cwd=path, env=env)
    run(f"./b/{BUILT}", "--seeds", "1-3", cwd=path)
    return read(f"{path}/b/{BUILT}")


def test_this_project_is_built(c):
    """The program is the same as one that is built on another file system."""
    beside = os.path.join(c.dir, "beside")
    os.mkdir(beside)
    with mounted(c, made(c, "built")) as path:
        check(built(path) == built(beside), "the programs differ")


INSERT = """
import sqlite3, sys
d = sqlite3.connect(sys.argv[1], timeout=30)
d.execute("pragma locking_mode = " + sys.argv[3])
d.execute("create table t(a integer primary key, b)")
d.commit()
for i in range(int(sys.argv[2])):
    d.execute("insert into t values(?, zeroblob(?))", (i, i * 97 % 5000))
    d.commit()
    print(i, flush=True)
"""


def test_sqlite_outlives_the_mount(c):
    """An exclusive lock is never given back, which would store the file: its fsync alone does."""
    for number, locking in enumerate(["exclusive", "normal"] * ROUNDS):
        url = made(c, f"sqlite-{number}")
        path = mount(c, url)
        with subprocess.Popen([sys.executable, "-c", INSERT, path + "/t.db", str(ROWS), locking],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
            last, end = -1, random.Random(number).randrange(ROWS // 4, ROWS // 2)
            while last < end:
                last = int(writer.stdout.readline())
            kill_all(path)
            last = max([last] + [int(line) for line in writer.stdout])
            check(writer.wait() != 0, f"the writer has ended without an error, at row {last}")
        clean()
        with mounted(c, url) as again, contextlib.closing(
                sqlite3.connect(again + "/t.db", timeout=LOCK_SECONDS)) as d:
            equal(d.execute("pragma integrity_check").fetchone(), ("ok",), "the database")
            rows = [row for row, in d.execute("select a from t order by a")]
            equal(rows, list(range(len(rows))), "rows")
            check(last < len(rows) <= last + 2, f"{len(rows)} rows, and row {last} was committed")


class Bank:
    """pgbench's tables in a server whose data are in the mount."""

    def __init__(self, path):
        self.server = Postgres(parent=path)
        self.committed = self.doubtful = 0
        self.pgbench("-i", "-q")
        self.server.sql("create extension amcheck")

    def pgbench(self, *flags):
        run(*self.command(*flags))

    def command(self, *flags):
        return program("pgbench", "-h", "127.0.0.1", "-p", str(self.server.port), "-U", "dfc", *flags,
                       "postgres")

    def load(self, fault):
        """Transactions of many clients, with a fault in the middle.  pgbench says how many were
        committed; one more of each client may be."""
        with subprocess.Popen(self.command("-n", "-c", str(CLIENTS), "-T", str(LOAD_SECONDS)), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as bench:
            time.sleep(LOAD_SECONDS / 2)  # anywhere in their work
            fault()
            said = bench.communicate(timeout=240)[0]
        counted = [line.split()[-1] for line in said.splitlines()
                   if line.startswith("number of transactions actually processed")]
        equal(len(counted), 1, said)
        self.committed += int(counted[0].split("/")[0])
        self.doubtful += CLIENTS

    def await_server(self):
        wait_for(lambda: self.server.sql("select 1") == "1", "the server")

    def verify(self):
        history, *sums = self.server.sql(
            "select count(*), coalesce(sum(delta), 0), (select sum(abalance) from pgbench_accounts), "
            "(select sum(tbalance) from pgbench_tellers), (select sum(bbalance) from pgbench_branches) "
            "from pgbench_history").split("|")
        equal(len(set(sums)), 1, f"sums of {history} transactions: {sums}")
        check(self.committed <= int(history) <= self.committed + self.doubtful,
              f"{history} transactions, and {self.committed} to {self.committed + self.doubtful} were committed")
        run(*program("pg_amcheck", "-h", "127.0.0.1", "-p", str(self.server.port), "-U", "dfc",
                     "--heapallindexed", "--parent-check", "postgres"))


def restarted(bank):
    """After a kill of the mount's process: what was not stored is an error for PostgreSQL, which
    then ends itself and recovers, or does not start again."""
    bank.server.kill()
    bank.server.start()


def outlives(c, name, kill, start):
    """kill(bank, path) while it works, and start(bank) afterwards, again and again."""
    open_to_users(c)
    with mounted(c, made(c, name), "--allow-other", MANY) as path:
        os.chmod(path, 0o755)
        bank = Bank(path)
        for _ in range(ROUNDS):
            bank.load(lambda: kill(bank, path))
            start(bank)
            bank.verify()
        check(bank.committed > 0, "no transaction was committed")
        bank.server.remove()


def test_postgres_is_killed(c):
    outlives(c, "postgres", lambda bank, _: bank.server.kill(), lambda bank: bank.server.start())


def test_postgres_outlives_kills_of_the_process_of_the_mount(c):
    outlives(c, "postgres-takeover", lambda _, path: kill_server(path), restarted)


def test_postgres_outlives_the_mount(c):
    """As after a crash of the machine: both are gone at once."""
    open_to_users(c)
    url = made(c, "postgres-mount")
    path = mount(c, url, "--allow-other")
    os.chmod(path, 0o755)
    bank = Bank(path)
    for _ in range(ROUNDS):
        def crash(path=path):
            kill_all(path)
            bank.server.kill()

        bank.load(crash)
        clean()
        path = mount(c, url, "--allow-other")
        bank.server.start()
        bank.verify()
    check(bank.committed > 0, "no transaction was committed")
    bank.server.remove()
    clean()


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    for needed, package in (("dbench", "dbench"), ("meson", "meson"), ("git", "git")):
        if shutil.which(needed) is None:
            skip(f"the program {needed} is missing: Debian's package {package}")
    if postgres_lib.PROGRAMS is None:
        skip("postgresql is not installed")
    if subprocess.run([PYTHON, "-c", "import test.test_os"], capture_output=True, check=False).returncode != 0:
        skip("the tests of CPython are missing: Debian's package libpython3.11-testsuite")
    needs_fuse()
    main(targets=2)
