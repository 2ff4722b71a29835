#!/usr/bin/env python3
"""A mount in a cluster with access control: it has the rights of the user who mounted, by keys or
by a token, and programs meet a refusal as EACCES."""

import errno
import os
import subprocess

from access_lib import GuardedCluster, make_user
from lib import check, equal, main, wait_for
from mount_bucket import fails, read
from mount_lib import directory_of, mounted, needs_fuse, said_by_sanitizers
from mount_write import write

DENIED = 7
GRANT = {"rights": ["read", "list"], "bucket": "box"}
DATA = os.urandom(1_000_000)


def keys(user):
    return {"DFC_ACCESS_KEY": user.access, "DFC_SECRET_KEY": user.secret,
            "DFC_CLUSTER_KEY_FILE": ""}


def refused(path):
    try:
        read(path)
    except PermissionError:
        return True
    return False


def write_refused(path):
    try:
        write(path, b"1")
    except PermissionError:
        return True
    return False


def test_the_mount_is_of_its_user(c):
    c.create("box")
    c.put("box", "d/o", DATA).expect(200)
    reader = make_user(c, "reader", [GRANT])
    with mounted(c, "dfc://box", env=keys(reader)) as path:
        equal(os.listdir(path + "/d"), ["o"], "a list")
        check(read(path + "/d/o") == DATA, "other bytes")
        os.statvfs(path)
    with mounted(c, "dfc://box", env={"DFC_TOKEN": reader.headers()["Authorization"].split()[1],
                                      "DFC_CLUSTER_KEY_FILE": ""}) as path:
        check(read(path + "/d/o") == DATA, "other bytes, by the token")


def test_a_user_without_rights_is_refused(c):
    stranger = make_user(c, "stranger", [{"rights": ["read", "list"], "bucket": "other"}])
    for env in (keys(stranger), {"DFC_ACCESS_KEY": "", "DFC_CLUSTER_KEY_FILE": ""}):
        done = c.dfcctl("fs", "mount", "dfc://box", directory_of(c, "refused"), env=env)
        equal(done.returncode, DENIED, done.stderr)


def test_writes_need_the_right(c):
    reader = make_user(c, "only-reader", [GRANT])
    writer = make_user(c, "writer", [{"rights": ["read", "list", "write"], "bucket": "box", "prefix": "mine/"},
                                     {"rights": ["list"], "bucket": "box"}])
    with mounted(c, "dfc://box", "--writable", env=keys(reader)) as path:
        for name, flags in (("new", os.O_CREAT), ("o", os.O_TRUNC), ("new", os.O_CREAT | os.O_EXCL)):
            fails(errno.EACCES, os.open, f"{path}/d/{name}", os.O_WRONLY | flags)
        said = subprocess.run(["sh", "-c", f"echo x > {path}/d/new"], capture_output=True, text=True, check=False)
        check(said.returncode != 0 and "Permission denied" in said.stderr, f"the shell: {said}")
        fails(errno.EACCES, os.unlink, path + "/d/o")
        fails(errno.EACCES, os.mkdir, path + "/e")
        check(read(path + "/d/o") == DATA, "other bytes")
    with mounted(c, "dfc://box/mine", "--writable", env=keys(writer)) as path:
        write(path + "/new", b"1")
        write(path + "/large", DATA)
        check(read(path + "/large") == DATA, "other bytes")
        with open(path + "/kept", "wb", buffering=0) as f:
            f.write(b"1")
            fails(errno.EACCES, os.unlink, path + "/kept")
            f.write(b"2")
        equal(read(path + "/kept"), b"12", "what an unlink that failed left")
    equal(c.names("box"), ["d/o", "mine/kept", "mine/large", "mine/new"], "objects")


def test_rights_end_while_it_is_mounted(c):
    user = make_user(c, "former", [GRANT])
    with mounted(c, "dfc://box", "--attr-ttl=0", env=keys(user)) as path:
        check(read(path + "/d/o") == DATA, "other bytes")
        c.call("POST", "/v1/users/former/grants", {"action": "revoke", "value": GRANT}).expect(200)
        wait_for(lambda: refused(path + "/d/o"), "the refusal")


def test_a_right_to_write_comes_and_goes(c):
    user = make_user(c, "changing", [GRANT])
    grant = {"rights": ["write"], "bucket": "box", "prefix": "c/"}
    with mounted(c, "dfc://box", "--writable", env=keys(user)) as path:
        c.put("box", "c/old", b"old").expect(200)
        fails(errno.EACCES, os.open, path + "/c/f", os.O_WRONLY | os.O_CREAT)
        c.call("POST", "/v1/users/changing/grants", {"action": "grant", "value": grant}).expect(200)
        wait_for(lambda: not write_refused(path + "/c/f"), "the right")
        equal(read(path + "/c/f"), b"1", "what was written")
        c.call("POST", "/v1/users/changing/grants", {"action": "revoke", "value": grant}).expect(200)
        wait_for(lambda: write_refused(path + "/c/old"), "the refusal")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(make=GuardedCluster, targets=2)
