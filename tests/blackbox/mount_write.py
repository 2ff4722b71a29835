#!/usr/bin/env python3
"""A writable mount: files become objects when they are closed, whole or not at all.  Programs of
every day, two writers of one name, refusals of the cluster, kills of the program, of the mount and
of a target."""

import errno
import os
import random
import shutil
import subprocess
import sys
import tarfile

from lib import check, equal, main, wait_for
from mount_bucket import fails, read, tree
from mount_lib import kill_all, mount, mounted, mounts, needs_fuse, said_by_sanitizers, server, umount

MIB = 1 << 20
LARGE = random.Random(5).randbytes(23 * MIB + 4321)
SMALL_PARTS = ("--part-size=5MiB", "--write-buffer=15MiB")
WRITER = """
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
for _ in range(int(sys.argv[2])):
    os.write(f, b"x" * 1000000)
print("written", flush=True)
sys.stdin.readline()
"""


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def write_files(path, files):
    """{name: data}, and their directories."""
    for name, data in files.items():
        os.makedirs(os.path.dirname(f"{path}/{name}"), exist_ok=True)
        write(f"{path}/{name}", data)


def check_files(path, files):
    for name, data in files.items():
        check(read(f"{path}/{name}") == data, f"{name}: other bytes")


def wrote(c, bucket, name):
    """The object's bytes, or None."""
    reply = c.get(bucket, name)
    if reply.status == 404:
        return None
    return reply.expect(200).body


def shell(path, text, status=0):
    done = subprocess.run(["bash", "-c", text], cwd=path, capture_output=True, text=True, timeout=120,
                          check=False)
    equal(done.returncode, status, f"{text}: {done.stderr}")
    return done.stdout + done.stderr


def open_uploads(c, bucket):
    return c.get_json(f"/v1/uploads/{bucket}")["uploads"]


def test_files_are_objects_once_closed(c):
    c.create("w")
    with mounted(c, "dfc://w", "--writable") as path:
        with open(path + "/new", "wb", buffering=0) as f:
            f.write(b"hello ")
            equal(os.fstat(f.fileno()).st_size, 6, "the size so far")
            equal(wrote(c, "w", "new"), None, "an open file's object")
            fails(errno.EBUSY, read, path + "/new")
            f.write(b"world")
        equal(wrote(c, "w", "new"), b"hello world", "the object")
        equal(read(path + "/new"), b"hello world", "the file")
        write(path + "/empty", b"")
        equal(wrote(c, "w", "empty"), b"", "an empty one")
        write(path + "/new", b"other")
        equal(wrote(c, "w", "new"), b"other", "what replaced it")
        equal((read(path + "/new"), os.stat(path + "/new").st_size), (b"other", 5), "the file")
        write(path + "/größe ☃", b"x")
        equal(wrote(c, "w", "größe ☃"), b"x", "a name")
        fails(errno.EEXIST, os.open, path + "/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.mkdir(path + "/d")
        write(path + "/d/in", b"1")
        equal(tree(path), {"new": b"other", "empty": b"", "größe ☃": b"x", "d": None, "d/in": b"1"}, "all")
    with mounted(c, "dfc://w/d", "--writable") as path:
        write(path + "/below", b"2")
    equal(wrote(c, "w", "d/below"), b"2", "a prefix")


def test_large_files_are_sent_in_parts(c):
    c.create("large")
    local = os.path.join(c.dir, "local")
    write(local, LARGE)
    with mounted(c, "dfc://large", "--writable", *SMALL_PARTS) as path:
        at_once = "".join(f"cp {local} {name} & {name}=$!; " for name in ("one", "two", "three"))
        shell(path, at_once + "wait $one && wait $two && wait $three")
        for name in ("one", "two", "three"):
            check(wrote(c, "large", name) == LARGE, f"{name}: other bytes")
            subprocess.run(["cmp", local, f"{path}/{name}"], check=True)
        equal(open_uploads(c, "large"), [], "open uploads")
        for size in (5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 10 * MIB, 64 << 10, (64 << 10) + 1):
            write(path + "/sized", LARGE[:size])
            check(wrote(c, "large", "sized") == LARGE[:size], f"{size} bytes: others")
        pid = server(path)
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            peak = int(next(line for line in f if line.startswith("VmHWM")).split()[1])
        print(f"peak resident memory: {peak >> 10} MiB")


def test_a_reader_keeps_its_version(c):
    c.create("keep")
    with mounted(c, "dfc://keep", "--writable", "--attr-ttl=1h", "--max-readahead=0") as path:
        write(path + "/o", LARGE[:3 * MIB])
        reader = os.open(path + "/o", os.O_RDONLY)
        equal(os.pread(reader, 4096, 0), LARGE[:4096], "before")
        with open(path + "/o", "wb", buffering=0) as f:
            f.write(b"new " * 100000)
            equal(os.pread(reader, 4096, 0), LARGE[:4096], "while it is written")
            equal(os.pread(reader, 4096, 2 * MIB), LARGE[2 * MIB:2 * MIB + 4096], "the rest, too")
            equal(os.fstat(reader).st_size, 3 * MIB, "its size")
            equal(read(path + "/o"), LARGE[:3 * MIB], "a new open reads the present object")
        equal(os.pread(reader, 4096, 0), LARGE[:4096], "what is in memory")
        fails(errno.ESTALE, os.pread, reader, 4096, 3 * MIB - 4096)
        equal(read(path + "/o"), b"new " * 100000, "a new open")
        os.close(reader)


def test_names_come_and_go(c):
    c.create("names")
    c.put("names", "implied/deep/o", b"1").expect(200)
    with mounted(c, "dfc://names", "--writable", "--attr-ttl=0") as path:
        os.mkdir(path + "/d")
        fails(errno.EEXIST, os.mkdir, path + "/d")
        write(path + "/d/a", b"a")
        fails(errno.ENOTEMPTY, os.rmdir, path + "/d")
        os.rename(path + "/d/a", path + "/d/b")
        equal(tree(path + "/d"), {"b": b"a"}, "a rename")
        write(path + "/d/c", b"c")
        os.rename(path + "/d/b", path + "/d/c")
        equal(tree(path + "/d"), {"c": b"a"}, "a rename over another")
        fails(errno.EXDEV, os.rename, path + "/d", path + "/e")
        fails(errno.EISDIR, os.rename, path + "/d/c", path + "/implied")
        fails(errno.ENOENT, os.rename, path + "/none", path + "/e")
        os.unlink(path + "/d/c")
        fails(errno.ENOENT, os.unlink, path + "/d/c")
        equal(os.listdir(path + "/d"), [], "the directory stays")
        os.rmdir(path + "/d")
        fails(errno.ENOENT, os.stat, path + "/d")
        fails(errno.ENOENT, os.rmdir, path + "/d")
        os.unlink(path + "/implied/deep/o")
        equal(tree(path), {"implied": None, "implied/deep": None}, "a directory that lost its last name")
        shutil.rmtree(path + "/implied")
        equal(c.names("names"), [], "what is left")
        fails(errno.ENAMETOOLONG, write, path + "/" + "x" * 256, b"")
        deep = path + "".join("/" + "x" * 250 for _ in range(4))
        os.makedirs(deep)
        fails(errno.ENAMETOOLONG, write, deep + "/" + "y" * 100, b"")
        fails(errno.EILSEQ, write, path.encode() + b"/\xff", b"")


def test_an_open_file_is_unlinked(c):
    c.create("gone")
    with mounted(c, "dfc://gone", "--writable") as path:
        with open(path + "/new", "wb", buffering=0) as f:
            f.write(b"1")
            os.unlink(path + "/new")
            f.write(b"2")
            equal(os.listdir(path), [], "names")
        c.put("gone", "old", b"old").expect(200)
        with open(path + "/old", "wb", buffering=0) as f:
            f.write(b"1")
            os.unlink(path + "/old")
        write(path + "/again", b"3")
        equal(c.names("gone"), ["again"], "objects")
        with open(path + "/busy", "wb", buffering=0):
            fails(errno.EBUSY, os.rename, path + "/busy", path + "/other")
            fails(errno.EBUSY, os.open, path + "/busy", os.O_WRONLY | os.O_TRUNC)


def test_what_is_not_supported_fails_at_once(c):
    c.create("no")
    with mounted(c, "dfc://no", "--writable") as path:
        file = path + "/f"
        write(file, b"data")
        fails(errno.EOPNOTSUPP, os.open, file, os.O_WRONLY | os.O_APPEND)
        fails(errno.EOPNOTSUPP, os.open, file, os.O_WRONLY)
        fails(errno.EOPNOTSUPP, os.open, file, os.O_RDWR)
        fails(errno.EOPNOTSUPP, os.truncate, file, 1)
        fails(errno.EOPNOTSUPP, os.symlink, "f", path + "/s")
        fails(errno.EOPNOTSUPP, os.link, file, path + "/l")
        fails(errno.EOPNOTSUPP, os.mkfifo, path + "/p")
        fails(errno.EOPNOTSUPP, os.setxattr, file, "user.a", b"1")
        f = os.open(path + "/g", os.O_RDWR | os.O_CREAT, 0o644)
        os.write(f, b"0123")
        fails(errno.EOPNOTSUPP, os.pread, f, 1, 0)
        fails(errno.EOPNOTSUPP, os.ftruncate, f, 0)
        os.ftruncate(f, 4)
        os.close(f)
        equal(read(path + "/g"), b"0123", "what was written")
        equal(read(file), b"data", "the file")
        os.chmod(file, 0o600)
        os.utime(file, (1, 1))
        equal(os.stat(file).st_mode, 0o100644, "the mode of the mount")


def test_a_failed_write_leaves_no_object(c):
    with mounted(c, "dfc://no", "--writable") as path:
        write(path + "/old", b"old")
        for name, at, kept in (("back", 0, None), ("gap", 5, None), ("old", 0, b"old")):
            f = os.open(f"{path}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.write(f, b"abc")
            fails(errno.EOPNOTSUPP, os.pwrite, f, b"z", at)
            fails(errno.EOPNOTSUPP, os.close, f)
            equal(wrote(c, "no", name), kept, name)
        f = os.open(path + "/synced", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(f, b"abc")
        os.fsync(f)
        fails(errno.EOPNOTSUPP, os.pwrite, f, b"z", 0)
        fails(errno.EOPNOTSUPP, os.close, f)
        equal(wrote(c, "no", "synced"), b"abc", "what was synced before")


def test_programs_of_every_day(c):
    c.create("every")
    source = os.path.join(c.dir, "source")
    os.makedirs(source + "/sub/deep")
    files = {"a": b"1", "sub/b": LARGE[:100000], "sub/deep/c": b"", "d e": b"x" * 70000}
    for name, data in files.items():
        write(os.path.join(source, name), data)
    wanted = {**files, "sub": None, "sub/deep": None}
    archive = os.path.join(c.dir, "archive.tar")
    with tarfile.open(archive, "w") as t:
        t.add(source, ".")
    with mounted(c, "dfc://every", "--writable") as path:
        shell(path, f"cp -r {source} copied && cp -a {source} kept")
        equal(tree(path + "/copied"), wanted, "cp -r")
        equal(tree(path + "/kept"), wanted, "cp -a")
        shell(path, "mv copied moved")
        equal(tree(path + "/moved"), wanted, "mv of a directory")
        shell(path, f"mkdir untarred && tar xf {archive} -C untarred")
        equal(tree(path + "/untarred"), wanted, "tar x")
        shutil.copytree(source, path + "/python")
        equal(tree(path + "/python"), wanted, "shutil.copytree")
        shell(path, "{ /bin/echo a; echo b; (echo c); } > group; echo one > redirect; : > nothing; touch touched")
        equal([read(f"{path}/{n}") for n in ("group", "redirect", "nothing", "touched")],
              [b"a\nb\nc\n", b"one\n", b"", b""], "the shell")
        equal(wrote(c, "every", "group"), b"a\nb\nc\n", "one object of several writers")
        shell(path, "sed -i s/one/two/ redirect && dd if=/dev/zero of=zeros bs=64k count=20 conv=fsync")
        equal((read(path + "/redirect"), read(path + "/zeros")), (b"two\n", bytes(20 << 16)), "sed -i, dd")
        with open(path + "/log", "wb") as f:
            child = subprocess.Popen(["bash", "-c", "echo begin; read; echo end"], stdin=subprocess.PIPE, stdout=f)
        child.communicate(b"\n")
        wait_for(lambda: wrote(c, "every", "log") == b"begin\nend\n", "what a child wrote after its parent's close")
        shell(path, "rm -r kept moved python untarred && ls")
        equal(sorted(os.listdir(path)), ["group", "log", "nothing", "redirect", "touched", "zeros"], "rm -r")


def test_rsync_and_git(c):
    c.create("tools")
    source = os.path.join(c.dir, "source")
    with mounted(c, "dfc://tools", "--writable") as path:
        shell(path, f"rsync -r {source}/ synced/")
        equal(tree(path + "/synced"), tree(source), "rsync -r")
        write(path + "/synced/a", b"2")
        said = shell(path, f"rsync -r --inplace --checksum {source}/ synced/", status=23)
        check("not supported" in said, said)
        equal(read(path + "/synced/a"), b"2", "what rsync --inplace refused to change")
        shell(path, "git init -q repo && cd repo && git config user.email a@b && git config user.name a && git config core.logAllRefUpdates false && "
              "echo 1 > f && git add f && git commit -qm one && echo 2 > f && git commit -qam two && git log --oneline")


def test_two_clients_write_one_name(c):
    c.create("two")
    with mounted(c, "dfc://two", "--writable") as one, mounted(c, "dfc://two", "--writable", name="two") as two:
        for existing in (False, True):
            files = [open(p + "/o", "wb", buffering=0) for p in (one, two)]
            for i, f in enumerate(files):
                f.write(b"%d" % i * 100)
            files[1].close()
            fails(errno.ESTALE, files[0].close)
            equal(read(one + "/o"), b"1" * 100, f"the first that was closed ({existing})")
        write(one + "/o", b"next")
        equal(read(two + "/o"), b"next", "close-to-open")
        with open(one + "/o", "wb", buffering=0) as f:
            f.write(b"x")
            os.unlink(two + "/o")
            fails(errno.ESTALE, os.fsync, f.fileno())
            fails(errno.ESTALE, os.write, f.fileno(), b"y")
            fails(errno.ESTALE, f.close)
    equal(c.names("two"), [], "objects")


def restart_targets(c, *args):
    for node in c.targets():
        c.restart(node, *args)


def test_the_cluster_has_no_room(c):
    c.create("small", quota_bytes=100000)
    c.create("full")
    with mounted(c, "dfc://small", "--writable") as path:
        write(path + "/fits", b"x" * 50000)
        fails(errno.EDQUOT, write, path + "/more", b"x" * 70000)
        equal(os.listdir(path), ["fits"], "names")
    restart_targets(c, "--arg=--space-low=0%", "--arg=--space-high=1%", "--arg=--space-out=2%")
    with mounted(c, "dfc://full", "--writable", *SMALL_PARTS) as path:
        fails(errno.ENOSPC, write, path + "/o", b"x")
        fails(errno.ENOSPC, write, path + "/large", LARGE)
        equal(os.listdir(path), [], "names")
        restart_targets(c, "--arg=--space-low=97%", "--arg=--space-high=98%", "--arg=--space-out=99%")
        write(path + "/large", LARGE)
        check(read(path + "/large") == LARGE, "with room: other bytes")
    equal(open_uploads(c, "full"), [], "open uploads")


def writer(path, parts):
    process = subprocess.Popen([sys.executable, "-c", WRITER, path, str(parts)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    equal(process.stdout.readline(), b"written\n", "the writer")
    return process


def test_a_killed_program_leaves_nothing_half(c):
    c.create("killed")
    with mounted(c, "dfc://killed", "--writable", *SMALL_PARTS) as path:
        write(path + "/old", b"old")
        for name, parts in (("new", 1), ("old", 1), ("large", 13)):
            process = writer(f"{path}/{name}", parts)
            process.kill()
            process.communicate()
            write(path + "/next", b"1")
        equal(sorted(c.names("killed")), ["next", "old"], "objects")
        equal(read(path + "/old"), b"old", "what was to be replaced")
        wait_for(lambda: not open_uploads(c, "killed"), "the upload's end")
        process = writer(path + "/ended", 2)
        process.communicate(b"\n")  # it ends without a close
        equal(len(wrote(c, "killed", "ended")), 2000000, "a program that ended")


def test_a_killed_mount_leaves_nothing_half(c):
    c.put("killed", "old", b"old").expect(200)
    path = mount(c, "dfc://killed", "--writable", *SMALL_PARTS)
    processes = [writer(f"{path}/{name}", parts) for name, parts in (("n", 1), ("old", 1), ("l", 13))]
    kill_all(path)
    for process in processes:
        process.communicate(b"\n")
    equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
    equal(mounts(path), [], "what is mounted")
    with mounted(c, "dfc://killed", "--writable") as path:
        equal(sorted(os.listdir(path)), ["ended", "next", "old"], "names")
        equal(read(path + "/old"), b"old", "what was to be replaced")


def test_a_target_dies_under_writes(c):
    c.create("copies", copies=2)
    with mounted(c, "dfc://copies", "--writable", "--retries=200", *SMALL_PARTS) as path:
        names = [f"n{i:02}" for i in range(12)]
        for i, name in enumerate(names):
            with open(f"{path}/{name}", "wb", buffering=0) as f:
                f.write(name.encode() * 1000)
                if i == 4:
                    c.kill("t2")
                if i == 8:
                    c.start("t2")
        c.wait_node("t2", "active")
        for name in names:
            equal(read(f"{path}/{name}"), name.encode() * 1000, name)


def test_umount_waits_for_what_is_stored(c):
    c.create("end")
    path = mount(c, "dfc://end", "--writable", *SMALL_PARTS)
    shell(path, "head -c 12000000 /dev/zero > large & head -c 100 /dev/zero > small; wait")
    umount(c, path)
    equal({n: len(wrote(c, "end", n)) for n in ("large", "small")}, {"large": 12000000, "small": 100}, "objects")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=3)
