#!/usr/bin/env python3
"""A mounted dataset image: its files, attributes and links as the image has them; the same bytes
while processes and targets are killed; EIO, and no other byte, where an object was replaced."""

import errno
import glob
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys

from group_lib import Cached, await_members
from lib import check, equal, in_parallel, main, wait_for
from mount_cache import stats
from mount_group import flags as group_flags
from mount_lib import (directory_of, has_ended, mounts, needs_fuse, said_by_sanitizers,
                       server, to_be_cleaned, umount)

MIB = 1 << 20
TIME = 1_700_000_000
COUNT = 300
READER = """
import hashlib, os, random, sys
directory, seed, end = sys.argv[1:]
rounds = 0
while not os.path.exists(end):
    names = sorted(os.listdir(directory + "/many"))
    if len(names) != 300:
        sys.exit(f"{len(names)} names")
    for name in random.Random(seed + str(rounds)).sample(names, 40):
        fd = os.open(f"{directory}/many/{name}", os.O_RDONLY)
        data = os.read(fd, 1 << 20)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        if hashlib.sha256(data).hexdigest()[:16] != name.split(".")[1]:
            sys.exit(f"other bytes of {name}")
    rounds += 1
    open(f"{end}.{seed}.{rounds}", "w").close()
print(rounds)
"""


def sha(data):
    return hashlib.sha256(data).hexdigest()


def files():
    rng = random.Random(5)
    made = {}
    for i in range(COUNT):
        data = rng.randbytes(rng.choice([1, 100, 2048, 20000]))
        made[f"many/{i:04}.{sha(data)[:16]}"] = data
    made["large"] = rng.randbytes(9 * MIB + 77)
    made["empty"] = b""
    made["deep/" + "n" * 253] = b"a long name"
    return made


FILES = files()


def write_tree(c):
    root = os.path.join(c.dir, "tree")
    for name, data in FILES.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o640)
        os.utime(path, (TIME, TIME))
    os.symlink("../large", os.path.join(root, "deep", "link"))
    return root


def image(name):
    return f"dfc://images/{name}.vdsc"


def burn(c, name, *words, code=0):
    done = c.dfcctl("vdisc", "burn", *words, "-o", image(name))
    equal(done.returncode, code, f"burn {name}: {done.stderr}")


def mount(c, name, *flags, at=None):
    path = directory_of(c, at or name)
    to_be_cleaned(path)
    done = c.dfcctl("vdisc", "mount", image(name), path, *flags)
    equal((done.returncode, len(mounts(path))), (0, 1), f"mount {name}: {done.stderr}")
    return path


def read(path):
    with open(path, "rb") as f:
        return f.read()


def drop(path):
    """The kernel's copy of the bytes."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def check_all(root):
    found = sorted(os.path.relpath(os.path.join(at, name), root)
                   for at, _, names in os.walk(root) for name in names)
    equal(found, sorted([*FILES, "deep/link"]), "names")
    for name, data in FILES.items():
        check(read(os.path.join(root, name)) == data, f"other bytes of {name}")


def test_files_links_and_attributes(c):
    c.create("images", copies=2)
    root = write_tree(c)
    for store in ("unique", "pack"):
        burn(c, store, "--tree", root, "--store", store)
        path = mount(c, store)
        check_all(path)
        st = os.lstat(os.path.join(path, "large"))
        equal((st.st_mode & 0o7777, st.st_size, st.st_mtime, st.st_uid), (0o640, len(FILES["large"]), TIME, 0), "large")
        equal(os.readlink(os.path.join(path, "deep", "link")), "../large", "the link")
        equal(os.lstat(os.path.join(path, "deep", "link")).st_size, len("../large"), "its size")
        check(os.stat(os.path.join(path, "deep", "link")).st_size == st.st_size, "what it leads to")
        equal(os.listdir(path), sorted(os.listdir(path)), "the order of names")
        check(os.getxattr(os.path.join(path, "large"), "user.dfc.object").startswith(b"dfc://images/.dfc-"), "object")
        equal(os.statvfs(path).f_bfree, 0, "free blocks")


def test_nothing_can_be_written(c):
    path = os.path.join(c.dir, "mnt-unique")
    for call in (lambda: open(os.path.join(path, "new"), "wb").close(),
                 lambda: os.unlink(os.path.join(path, "large")),
                 lambda: os.mkdir(os.path.join(path, "d")),
                 lambda: os.chmod(os.path.join(path, "large"), 0o777)):
        with_errno(errno.EROFS, call)
    with_errno(errno.ENOENT, lambda: os.stat(os.path.join(path, "none")))
    with_errno(errno.ENOENT, lambda: os.stat(os.path.join(path, "none")))
    with_errno(errno.ENODATA, lambda: os.getxattr(path, "user.none"))


def with_errno(wanted, call):
    try:
        call()
    except OSError as e:
        equal(e.errno, wanted, str(e))
        return
    raise AssertionError(f"no error, and {errno.errorcode[wanted]} was expected")


def test_other_programs_copy_all_of_it(c):
    out = os.path.join(c.dir, "copy")
    subprocess.run(["cp", "-r", "--preserve=timestamps", os.path.join(c.dir, "mnt-pack"), out], check=True)
    check_all(out)
    shutil.rmtree(out)


def test_what_is_wrong(c):
    path = directory_of(c, "wrong")
    for url, code, said in (("dfc://images/none.vdsc", 3, "none.vdsc"), ("dfc://none/x.vdsc", 3, "none"),
                            ("dfc://images", 2, "no image"), ("x", 2, "is not dfc://")):
        done = c.dfcctl("vdisc", "mount", url, path, "--retries", "0")
        equal(done.returncode, code, f"{url}: {done.stderr}")
        check(said in done.stderr, done.stderr)
    c.put("images", "bad.vdsc", b"no table").expect(200)
    equal(c.dfcctl("vdisc", "mount", image("bad"), path).returncode, 1, "the code of a damaged table")
    equal(mounts(path), [], "mounts after failures")


def readers(c, path, count=4):
    return [subprocess.Popen([sys.executable, "-c", READER, path, str(i), os.path.join(c.dir, "end")],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for i in range(count)]


def rounds_of(c, number):
    """How many rounds this reader has made."""
    return len(glob.glob(os.path.join(c.dir, f"end.{number}.*")))


def finish(c, running):
    with open(os.path.join(c.dir, "end"), "w", encoding="utf-8"):
        pass
    for process in running:
        out, err = process.communicate(timeout=300)
        equal((process.returncode, err), (0, ""), "a reader")
        check(int(out) > 0, "no round was read")
    for path in glob.glob(os.path.join(c.dir, "end*")):
        os.unlink(path)


def test_a_target_is_killed(c):
    """With two copies no read fails."""
    for store in ("unique", "pack"):
        path = mount(c, store, "--buffer-size", "8MiB", at="kill-" + store)
        running = readers(c, path)
        victim = sorted(c.targets())[0]
        wait_for(lambda: os.getxattr(path, "user.dfc.stats"), "the metrics")
        c.kill(victim)
        check_all(path)
        before = [rounds_of(c, i) for i in range(len(running))]
        wait_for(lambda b=before: all(rounds_of(c, i) > n for i, n in enumerate(b)), "a round of each reader")
        c.start(victim)
        c.wait_node(victim, "active")
        finish(c, running)
        umount(c, path)


def test_the_process_is_killed(c):
    """Another one takes over: no read fails, and directories that are open go on."""
    path = mount(c, "pack", "--restarts", "100", at="again")
    running = readers(c, path)
    held = os.open(os.path.join(path, "large"), os.O_RDONLY)
    names = os.scandir(os.path.join(path, "many"))
    first = next(names).name
    for _ in range(5):
        pid = server(path)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda p=pid: has_ended(p), "the process to end")
        before = [rounds_of(c, i) for i in range(len(running))]
        check(server(path) != pid, "the same process")
        wait_for(lambda b=before: all(rounds_of(c, i) > n for i, n in enumerate(b)), "a round of each reader")
        os.posix_fadvise(held, 0, 0, os.POSIX_FADV_DONTNEED)
        check(os.pread(held, MIB, 3 * MIB) == FILES["large"][3 * MIB:4 * MIB], "other bytes")
    equal(len({first, *(e.name for e in names)}), COUNT, "names of an open directory")
    os.close(held)
    finish(c, running)
    umount(c, path)


def test_an_object_is_replaced(c):
    """EIO and a line of the log; what other objects have is read."""
    c.create("raw", copies=2)
    data = {f"o{i}": random.Random(i).randbytes(300000) for i in range(4)}
    in_parallel(lambda key: c.put("raw", key, data[key]).expect(200), data)
    listed = os.path.join(c.dir, "raw.csv")
    with open(listed, "w", encoding="utf-8") as f:
        f.write("".join(f"/{key},dfc://raw/{key},{len(value)}\n" for key, value in data.items()))
    burn(c, "raw", "-i", listed)
    log = os.path.join(c.dir, "image.log")
    path = mount(c, "raw", "--log-file", log)
    c.put("raw", "o1", b"x" * 300000).expect(200)
    equal(c.dfcctl("rm", "raw/o2").returncode, 0, "rm")
    for name in ("o1", "o2"):
        with_errno(errno.EIO, lambda n=name: read(os.path.join(path, n)))
        check(any("has been replaced or removed" in line and f"raw/{name}" in line
                  for line in read(log).decode().splitlines()), read(log).decode())
    for name in ("o0", "o3"):
        check(read(os.path.join(path, name)) == data[name], f"other bytes of {name}")
    c.put("raw", "o1", data["o1"]).expect(200)  # the same bytes: it is what it was
    check(read(os.path.join(path, "o1")) == data["o1"], "other bytes after it was put back")
    umount(c, path)


def test_a_disk_cache_outlives_the_mount(c):
    cache = os.path.join(c.dir, "cache")
    os.mkdir(cache)
    path = mount(c, "pack", "--cache-dir", cache, at="cached")
    check_all(path)
    umount(c, path)
    path = mount(c, "pack", "--cache-dir", cache, at="cached")
    check_all(path)
    stats = os.getxattr(path, "user.dfc.stats").decode()
    check(any(line.startswith("dfc_cache_read_bytes") and float(line.split()[-1]) > 9 * MIB
              for line in stats.splitlines()), stats)
    umount(c, path)


def test_a_cache_group_gives_what_it_keeps(c):
    members = [Cached(c, i + 1) for i in range(2)]
    await_members(c, [m.name for m in members])
    fetched = []
    for at in ("first", "second"):
        path = mount(c, "pack", *group_flags(c), at=at)
        check_all(path)
        of = stats(path)
        check(of["dfc_group_read_bytes_total"] > 9 * MIB, of)
        equal(of["dfc_group_passed_bytes_total"], 0, "bytes that no member gave")
        fetched.append(sum(m.stat("group_fetched_bytes_total") for m in members))
        umount(c, path)
    equal(fetched[0], fetched[1], "bytes that the members fetched for the second mount")
    for member in members:
        member.kill()
    path = mount(c, "pack", *group_flags(c), at="without")
    check_all(path)
    equal(stats(path)["dfc_group_read_bytes_total"], 0, "bytes of members that are dead")
    umount(c, path)
    for words, says in ((("--cache-group=",), "--cache-group is empty"),
                        (("--group-key-file=/k",), "needs --cache-group")):
        done = c.dfcctl("vdisc", "mount", image("pack"), directory_of(c, "none"), *words)
        check(done.returncode == 2 and says in done.stderr, f"{words}: {done}")


def test_at_the_end(c):
    for store in ("unique", "pack"):
        umount(c, os.path.join(c.dir, "mnt-" + store))
    equal(said_by_sanitizers(), [], "what sanitizers found")


if __name__ == "__main__":
    needs_fuse()
    main(targets=3)
