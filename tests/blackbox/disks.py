#!/usr/bin/env python3
"""What clients get, and what is lost, when a disk is full, dies or becomes read-only, and when it
comes back: the table of docs/guide/troubleshooting.md, printed as it was found.

    disks.py [--write]      also writes the table into docs/guide/troubleshooting.md

One target with two mountpaths, file systems of one size on loop devices: with the one it is done,
the other must not mind.  Held to in every case:

    what was acknowledged is there once the disk is back, with its bytes, and nothing else is
    an object that exists is never "not found", and a list is whole or refused
    objects of the other disk are read and written all the time

Skipped (77) without root, loop devices or the programs that make the file systems."""

import errno
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import namespaces
from lib import Cluster, Failed, check, end_on_signals, equal, run_one, skip, wait_for

DOCUMENT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "docs",
                        "guide", "troubleshooting.md")
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"], "xfs": ["mkfs.xfs", "-q", "-f"]}
IMAGE_BYTES = 320 << 20
SHUTDOWN = 0x8004587D  # _IOR('X', 125, uint32_t): ext4 and XFS drop dead
SHUTDOWN_AT_ONCE = struct.pack("I", 2)
OPERATIONS = ("PUT new", "overwrite", "DELETE", "GET", "HEAD", "list")


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(argv)}: {done.stderr}")
    return done.stdout.strip()


def unmount(path):
    """What a killed process had under way in its io_uring may hold the file system for a moment."""
    wait_for(lambda: subprocess.run(["umount", path], capture_output=True, check=False)
             .returncode == 0, f"{path} unmounted")


# --- the disk ------------------------------------------------------------------------------------

class Disk:
    """A file system of its own on a loop device, which is there as long as it is mounted."""

    def __init__(self, kind, *options):
        self.kind, self.path = kind, None
        self.image = tempfile.NamedTemporaryFile(prefix="dfc-disk-", dir="/dev/shm")
        self.image.truncate(IMAGE_BYTES)
        run(*MAKE[kind], *options, self.image.name)

    def mount(self, path):
        self.path = path
        options = "loop,errors=remount-ro" if self.kind == "ext4" else "loop"
        run("mount", "-o", options, self.image.name, path)

    def remount(self):
        unmount(self.path)
        self.mount(self.path)

    def unmounted(self):
        """Tries; nobody may have a file of it open."""
        return subprocess.run(["umount", self.path], capture_output=True,
                              check=False).returncode == 0

    def remove(self):
        with open("/proc/mounts", encoding="utf-8") as f:  # a dead one cannot be looked at
            mounted = any(line.split()[1] == self.path for line in f)
        if mounted:
            unmount(self.path)
        self.image.close()

    def fill(self):
        with open(os.path.join(self.path, "filler"), "wb", buffering=0) as f:
            for piece in (1 << 20, 4096):
                try:
                    while f.write(bytes(piece)) > 0:
                        os.fsync(f.fileno())
                except OSError as e:
                    equal(e.errno, errno.ENOSPC, "the error of a full disk")

    def make_room(self):
        os.unlink(os.path.join(self.path, "filler"))

    def die(self):
        fd = os.open(self.path, os.O_RDONLY)
        fcntl.ioctl(fd, SHUTDOWN, SHUTDOWN_AT_ONCE)
        os.close(fd)

    def protect(self):
        """As the kernel does when it finds the file system damaged."""
        number = os.stat(self.path).st_dev
        device = os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        with open(f"/sys/fs/ext4/{os.path.basename(device)}/trigger_fs_error", "w",
                  encoding="ascii") as f:
            f.write("a test")


class DiskCluster(Cluster):
    """One target; `disk` is the one with which it is done."""

    def __init__(self, disks, *args):
        self.disks, self.disk = disks, disks[0]
        super().__init__(targets=1, mountpaths=len(disks), args=args)

    def run(self, command, *args, ok=True):
        if command == "up":
            for i, disk in enumerate(self.disks):
                path = os.path.join(self.dir, "t1", f"mp{i + 1}")
                os.makedirs(path)
                disk.mount(path)
        return super().run(command, *args, ok=ok)


# --- the cases -----------------------------------------------------------------------------------

class Case:
    """One way in which the disk fails; name, what is done to it, how it comes back."""

    def __init__(self, kind, name, fail, restore, restart):
        self.kind, self.name, self.fail, self.restore, self.restart = \
            kind, name, fail, restore, restart
        self.answers = {}

    def title(self):
        return f"{self.name}, {self.kind}"


def cases():
    for kind in MAKE:
        yield Case(kind, "full", Disk.fill, Disk.make_room, restart=False)
        yield Case(kind, "dead", Disk.die, Disk.remount, restart=True)
    yield Case("ext4", "read-only", Disk.protect, Disk.remount, restart=True)


NAMES = [f"o{i:02d}" for i in range(48)]


def body_of(name, version=0):
    return f"{name} {version} ".encode() * 300


def on_disk(c):
    """Those of NAMES that lie on the disk."""
    found = set()
    for at, _, files in os.walk(os.path.join(c.disk.path, ".dfc", "obj")):
        for name in files:
            raw = os.getxattr(os.path.join(at, name), "user.dfc")
            found.update(n for n in NAMES if n.encode() + b"\0" in raw)
    return sorted(found)


def answer_of(reply):
    """ "507 no_space", or "200": what the table says."""
    if reply.status < 400 or not reply.body:
        return str(reply.status)
    return f"{reply.status} {reply.json()['code']}"


class Trial:
    """One case, run: `holds` is what each name must have, or None; `may` what else it may."""

    def __init__(self, c, case):
        self.c, self.case = c, case
        c.create("b")
        for name in NAMES:
            c.put("b", name, body_of(name))
        bad = on_disk(c)
        check(len(bad) >= 12, f"only {len(bad)} objects lie on the disk")
        self.bad, self.good = bad, [n for n in NAMES if n not in bad]
        self.holds = {name: body_of(name) for name in NAMES}
        self.may = {name: set() for name in NAMES}
        for name in bad[:2] + self.good[:2]:
            c.object("DELETE", "b", name).expect(204)
            self.holds[name] = None

    def write(self, method, name, body=None):
        """Takes down what the name holds then, by what the client was told."""
        reply = self.c.object(method, "b", name, body)
        if reply.status in (200, 204):
            self.holds[name] = body
            self.may[name].clear()
        else:
            self.may[name].add(body)
        return answer_of(reply)

    def read(self, method, name):
        reply = self.c.object(method, "b", name)
        check(reply.status != 404, f"{method} {name}: 404, but it exists")
        if reply.status == 200 and method == "GET":
            equal(reply.body, self.holds[name], f"the bytes of {name}")
        return answer_of(reply)

    def list(self):
        reply = self.c.call("GET", "/v1/objects/b")
        if reply.status == 200:
            self.expect_list(reply.json())
        return answer_of(reply)

    def expect_list(self, page):
        must = {n for n, body in self.holds.items() if body is not None}
        can = must | {n for n, bodies in self.may.items() if bodies - {None}}
        without = {n for n, bodies in self.may.items() if None in bodies}
        names = {e["name"] for e in page["entries"]}
        if not page.get("incomplete"):
            check(must - without <= names <= can, f"the list falls short of {must - names} or has "
                                                  f"{names - can} too many")

    def ask(self, names):
        """The answer to each operation; the first two of `names` hold nothing."""
        return {
            "PUT new": self.write("PUT", names[0], body_of(names[0], 1)),
            "overwrite": self.write("PUT", names[2], body_of(names[2], 1)),
            "DELETE": self.write("DELETE", names[3]),
            "GET": self.read("GET", names[4]),
            "HEAD": self.read("HEAD", names[5]),
            "list": self.list(),
        }

    def others_do_not_mind(self):
        answers = self.ask(self.good)
        del answers["list"]
        for operation, answer in answers.items():
            check(answer in ("200", "204"), f"{operation} on the other disk: {answer}")

    def nothing_is_lost(self):
        """Every name holds what was acknowledged, or what was begun since."""
        for name in NAMES:
            reply = self.c.get("b", name)
            got = None if reply.status == 404 else reply.expect(200).body
            check(got == self.holds[name] or got in self.may[name],
                  f"{name} holds {got and got[:9]}, not {self.holds[name]}")
            self.holds[name], self.may[name] = got, set()
        self.expect_list(self.c.get_json("/v1/objects/b"))

    def restore(self):
        if self.case.restart:
            if self.c.pid("t1") is not None:
                self.c.kill("t1", "-9")
                wait_for(lambda: self.c.pid("t1") is None, "the end of t1")
            self.case.restore(self.c.disk)
            self.c.start("t1")
            self.c.wait_node("t1", "active")
        else:
            self.case.restore(self.c.disk)

    def run(self):
        self.case.fail(self.c.disk)
        self.case.answers = self.ask(self.bad)
        self.others_do_not_mind()
        self.restore()
        self.nothing_is_lost()
        answers = self.ask(self.bad[:1] + self.bad[6:])
        for operation, answer in answers.items():
            check(answer in ("200", "204"), f"{operation} when the disk is back: {answer}")
        self.nothing_is_lost()


def try_on(disks, case):
    # The answers are those of the disk itself: it stays in (disk_health.py has it taken out).
    c = DiskCluster(disks, "--target-arg=--health=false")
    try:
        Trial(c, case).run()
    except Failed:
        c.print_logs()
        raise
    finally:
        c.run("down", ok=False)
        for disk in disks:
            disk.remove()
        c.remove()


def try_case(case):
    disks = []
    try:
        for _ in range(2):
            disks.append(Disk(case.kind))
        try_on(disks, case)
    finally:
        for disk in disks:
            disk.remove()


# --- the table -----------------------------------------------------------------------------------

def table(done):
    """Markdown."""
    lines = ["| the disk is | " + " | ".join(OPERATIONS) + " | lost |",
             "|---" * (len(OPERATIONS) + 2) + "|"]
    for case in done:
        lines.append(f"| {case.title()} | " + " | ".join(case.answers[o] for o in OPERATIONS) +
                     " | nothing |")
    return "\n".join(lines) + "\n"


def write_table(text):
    begin, end = "<!-- disks -->\n", "<!-- end -->\n"
    with open(DOCUMENT, encoding="utf-8") as f:
        document = f.read()
    before, _, rest = document.partition(begin)
    _, _, after = rest.partition(end)
    with open(DOCUMENT, "w", encoding="utf-8") as f:
        f.write(before + begin + text + end + after)


def enter():
    """A namespace for the mounts, and memory for the images that ends with it."""
    skip_without_disks()
    namespaces.enter()
    run("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")


def skip_without_disks():
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        skip("only root has loop devices, where there are any")
    for argv in MAKE.values():
        if shutil.which(argv[0]) is None:
            skip(f"there is no {argv[0]}")


def main():
    end_on_signals()
    enter()
    done, failed = [], 0
    for case in cases():
        if run_one(case.title(), try_case, case):
            done.append(case)
        else:
            failed += 1
    print(table(done))
    if "--write" in sys.argv and not failed:
        write_table(table(done))
    print(f"{len(done)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
