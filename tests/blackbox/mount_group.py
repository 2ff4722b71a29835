#!/usr/bin/env python3
"""A cache group of three members: data is kept once, and leaves the store once; members that are
killed, frozen, lie, join, flap, drain or have another key cost requests and no reads."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from group_lib import (GROUP, Cached, await_members, await_reports, kept, key_of, said_by_members,
                       show)
from lib import BUILD, check, equal, in_parallel, main, wait_for
from mount_bucket import read
from mount_cache import given, put_all, stats
from mount_lib import directory_of, mounted, needs_fuse, said_by_sanitizers, to_be_cleaned, umount

KIB, MIB = 1 << 10, 1 << 20
PIECE = 4 * MIB
FILES = {**{f"set/small/{i:02}": random.Random(i).randbytes(100 * KIB + i) for i in range(24)},
         **{f"set/large/{size}": random.Random(size).randbytes(size)
            for size in (1, MIB, PIECE - 1, PIECE, PIECE + 1, 13 * MIB + 4321)}}
TOTAL = sum(map(len, FILES.values()))


def flags(c, *more, key="group"):
    """Times that a slow machine does not exceed."""
    return ["--cache-group=" + GROUP, f"--group-key-file={key_of(c, key)}", "--group-wait=20s",
            "--group-connect=5s", "--group-refresh=100ms", *more]


def check_all(path, files=None):
    for name in files or FILES:
        check(read(os.path.join(path, name)) == FILES[name], f"{name}: other bytes")


def read_by(c, bucket, *more, name="one"):
    """A mount reads all → bytes that members gave, bytes that they did not give."""
    with mounted(c, "dfc://" + bucket, *flags(c, *more), name=name) as path:
        check_all(path)
        of = stats(path)
        return of["dfc_group_read_bytes_total"], of["dfc_group_passed_bytes_total"]


def set_time(c, **params):
    for name, value in params.items():
        c.administer("PUT", "/v1/daemon", {"action": "setparam", "name": name, "value": value}
                     ).expect(200)


def await_kept(members):
    wait_for(lambda: kept(members) == TOTAL, "the members have all pieces")


class Group:
    """Members 1 to n, and a bucket with all files."""

    def __init__(self, c, bucket, count=3, **options):
        self.members = [Cached(c, i + 1, **options) for i in range(count)]
        await_members(c, [m.name for m in self.members])
        put_all(c, bucket, FILES)

    def __enter__(self):
        return self.members

    def __exit__(self, *_):
        for member in self.members:
            member.remove()


def test_data_is_kept_once_and_leaves_the_store_once(c):
    with Group(c, "once") as members:
        before = given(c)
        in_parallel(lambda name: equal(read_by(c, "once", name=name), (TOTAL, 0), name),
                    ["one", "two", "three"], 3)
        await_kept(members)
        equal(given(c) - before, TOTAL, "bytes that left the store")
        equal(sum(m.stat("group_fetched_bytes_total") for m in members), TOTAL, "fetched")
        equal(sum(m.stat("group_sent_bytes_total") for m in members), 3 * TOTAL, "sent")
        check(all(m.pieces() for m in members), "a member has no piece")
        names = [os.path.basename(p) for m in members for p in m.pieces()]
        equal(len(names), len(set(names)), "pieces that two members have")
        for member in members:  # what is kept survives
            member.kill()
            member.start()
        equal(read_by(c, "once"), (TOTAL, 0), "after kill -9 of all")
        equal(given(c) - before, TOTAL, "bytes that left the store after kill -9 of all")
        with mounted(c, "dfc://once") as path:  # this test sees what it looks for
            check_all(path, list(FILES)[:3])
            check(given(c) - before > TOTAL, "bytes of a mount without a group are not counted")


def test_one_mount_warms_the_group_for_all(c):
    with Group(c, "warm") as members:
        before = given(c)
        with mounted(c, "dfc://warm", *flags(c)) as one, \
                mounted(c, "dfc://warm", *flags(c), name="two") as two:
            warm = lambda path, *more: c.dfcctl("fs", "warmup", path, *more)  # noqa: E731
            check(" 0 B are cached" in warm(one, "--check").stdout, "cached at first")
            for done in in_parallel(warm, [one, two], 2):
                equal(done.returncode, 0, done.stderr)
            equal(kept(members), TOTAL, "bytes kept when the command returns")
            equal(given(c) - before, TOTAL, "bytes that left the store")
            said = warm(two, "--check").stdout
            check("28.3 MiB are cached" in said, said)
            members[0].kill()  # the cluster does not know yet
            done = warm(one)
            check(done.returncode == 6 and "set/small" in done.stderr, done)
        equal(given(c) - before, TOTAL, "bytes that left the store in the end")


def test_a_local_disk_keeps_what_members_gave(c):
    with Group(c, "both") as members:
        cache = os.path.join(c.dir, "both")
        os.makedirs(cache)
        equal(read_by(c, "both", f"--cache-dir={cache}"), (TOTAL, 0), "first")
        equal(read_by(c, "both", f"--cache-dir={cache}"), (0, 0), "from the disk")
        equal(sum(m.stat("group_sent_bytes_total") for m in members), TOTAL, "sent")


def test_a_replaced_object_is_never_served_old(c):
    with Group(c, "replaced"):
        for version in range(3):
            data = random.Random(version).randbytes(5 * MIB)
            c.put("replaced", "o", data).expect(200)
            with mounted(c, "dfc://replaced", *flags(c)) as path:
                check(read(path + "/o") == data, f"not version {version}")
        c.destroy("replaced")
        c.create("replaced")
        data = random.Random(9).randbytes(5 * MIB)
        c.put("replaced", "o", data).expect(200)
        with mounted(c, "dfc://replaced", *flags(c)) as path:
            check(read(path + "/o") == data, "bytes of another bucket")
            equal(stats(path)["dfc_group_passed_bytes_total"], 0, "not from the group")


def test_members_that_are_killed_or_frozen_are_passed_by(c):
    with Group(c, "dead") as members:
        equal(read_by(c, "dead"), (TOTAL, 0), "all well")
        set_time(c, cache_away="1h")  # nobody is told
        with mounted(c, "dfc://dead", *flags(c, "--group-wait=200ms")) as path:
            members[0].kill()
            members[1].process.send_signal(signal.SIGSTOP)
            try:
                check_all(path)
                of = stats(path)
                check(0 < of["dfc_group_passed_bytes_total"] < TOTAL, f"passed by: {of}")
            finally:
                members[1].process.send_signal(signal.SIGCONT)
        for member in members:
            member.kill()
        equal(read_by(c, "dead"), (0, TOTAL), "without members")
        set_time(c, cache_away="10s")


def test_bytes_that_are_damaged_or_invented_are_fetched_again(c):
    with Group(c, "liar") as members:
        equal(read_by(c, "liar"), (TOTAL, 0), "all well")
        await_kept(members)
        liar = members[0]
        for fault in ("group.damage=EIO", "group.lie[small]=EIO"):
            liar.kill()
            liar.start({"DFC_FAULTS": fault})
            read_bytes, passed = read_by(c, "liar")
            equal(read_bytes + passed, TOTAL, "bytes")
            check(passed > 0, f"{fault}: nothing was passed by")
        liar.kill()
        liar.start()
        for path in liar.pieces():  # the disk's damage
            with open(path, "r+b") as f:
                f.seek(os.path.getsize(path) // 3)
                byte = f.read(1)
                f.seek(-1, os.SEEK_CUR)
                f.write(bytes([byte[0] ^ 1]))
        equal(read_by(c, "liar"), (TOTAL, 0), "with damaged pieces")
        check(liar.stat("cache_damaged_total") > 0, "no damage was seen")


def test_a_join_pulls_from_the_earlier_owner(c):
    set_time(c, cache_settle="10s")
    with Group(c, "join", 2) as members:
        equal(read_by(c, "join"), (TOTAL, 0), "two members")
        await_kept(members)
        wait_for(lambda: all(m["present_ms"] > 10000 for m in show(c).values()), "two have settled")
        before = given(c)
        members.append(Cached(c, 3))
        await_members(c, [m.name for m in members])
        equal(read_by(c, "join"), (TOTAL, 0), "three members")
        pulled = members[2].stat("group_pulled_bytes_total")
        check(0 < pulled < TOTAL, f"pulled: {pulled}")
        equal(given(c), before, "bytes of the store after the join")
        equal(members[2].stat("group_fetched_bytes_total"), 0, "fetched by the new member")
    set_time(c, cache_settle="5m")


def test_a_flap_moves_nothing(c):
    with Group(c, "flap") as members:
        equal(read_by(c, "flap"), (TOTAL, 0), "all well")
        await_kept(members)
        before, pieces = given(c), [m.pieces() for m in members]
        set_time(c, cache_away="500ms")
        members[1].kill()
        await_members(c, ["m1", "m3"])
        check("m2" in show(c), "a member that is away is forgotten")
        members[1].start()
        await_members(c, ["m1", "m2", "m3"])
        equal(read_by(c, "flap"), (TOTAL, 0), "after the flap")
        equal(given(c), before, "bytes of the store after the flap")
        equal([m.pieces() for m in members], pieces, "pieces")
    set_time(c, cache_away="10s")


def test_a_member_that_is_out_is_replaced_by_the_next_in_rank(c):
    with Group(c, "out") as members:
        equal(read_by(c, "out"), (TOTAL, 0), "all well")
        await_kept(members)
        had = members[2].stat("cache_written_bytes_total")
        before = given(c)
        members[2].stop()  # says that it leaves
        equal(show(c)["m3"]["state"], "away", "state")
        equal(read_by(c, "out"), (TOTAL, 0), "two members")
        equal(given(c) - before, had, "bytes of the store: the pieces of the third")
        equal(read_by(c, "out"), (TOTAL, 0), "again")
        equal(given(c) - before, had, "bytes of the store, again")


def test_a_member_that_drains_gives_what_it_has(c):
    with Group(c, "drain") as members:
        equal(read_by(c, "drain"), (TOTAL, 0), "all well")
        await_kept(members)
        before = given(c)
        had = members[0].stat("cache_written_bytes_total")
        drain(c, members[0])
        wait_for(lambda: show(c)["m1"]["weight"] == 0, "it drains")
        await_reports(c, members)
        equal(read_by(c, "drain"), (TOTAL, 0), "while it drains")
        equal(given(c), before, "bytes of the store")
        equal(sum(m.stat("group_pulled_bytes_total") for m in members[1:]), had, "pulled")
        wait_for(lambda: kept(members[1:]) == TOTAL, "the others have all pieces")
        members[0].stop()
        equal(read_by(c, "drain"), (TOTAL, 0), "without it")
        equal(given(c), before, "bytes of the store, without it")


def drain(c, member):
    done = c.dfcctl("fs", "cache", "drain", GROUP, member.name, f"--group-key-file={key_of(c)}")
    equal(done.returncode, 0, done.stderr)


def test_the_command_lists_the_members(c):
    with Group(c, "list") as members:
        done = c.dfcctl("fs", "cache", "ls", GROUP)
        equal(done.returncode, 0, done.stderr)
        for member in members:
            check(member.name in done.stdout and member.url in done.stdout, done.stdout)
        done = c.dfcctl("fs", "cache", "drain", GROUP, "nobody", f"--group-key-file={key_of(c)}")
        check(done.returncode == 3 and "nobody" in done.stderr, (done.returncode, done.stderr))
        done = c.dfcctl("fs", "cache", "drain", GROUP, "m1", f"--group-key-file={key_of(c, 'other')}")
        check(done.returncode != 0 and done.stderr, "another key drains a member")
        equal(show(c)["m1"]["weight"], 1, "weight")


def test_another_key_is_refused(c):
    with Group(c, "keys") as members:
        with mounted(c, "dfc://keys", *flags(c, key="other")) as path:
            check_all(path)
            of = stats(path)
            equal((of["dfc_group_read_bytes_total"], of["dfc_group_passed_bytes_total"]),
                  (0, TOTAL), "with another key")
        equal(sum(m.stat("group_sent_bytes_total") for m in members), 0, "sent")
        try:
            urllib.request.urlopen(members[0].url + "/v1/piece?bucket=keys", timeout=60)
            check(False, "an unsigned call was answered")
        except urllib.error.HTTPError as e:
            equal(e.code, 401, "an unsigned call")
    key = os.path.join(c.dir, "open.key")
    with open(key, "w", encoding="ascii") as f:
        f.write("x" * 40)
    os.chmod(key, 0o644)
    for more, text in ((["--group-key-file=" + key], "open.key"),
                       (["--listen=0.0.0.0"], "0.0.0.0"),
                       (["--cache-dir=/nowhere"], "/nowhere"), (["--group="], "--group"),
                       (["--group=a b"], "a b"), (["--endpoint=http://127.0.0.1:1"], "127.0.0.1:1")):
        cache = os.path.join(c.dir, "refused")
        os.makedirs(cache, exist_ok=True)
        done = subprocess.run([os.path.join(BUILD, "dfc-cached"), "--group=g", "--id=x",
                               "--cache-dir=" + cache, *more], capture_output=True, text=True,
                              env=dict(os.environ, **c.dfcctl_environment()), timeout=120,
                              check=False)
        check(done.returncode == 1 and text in done.stderr, f"{more}: {done}")


def test_a_member_ends_while_requests_wait(c):
    """Those in its queue look at the members until the last one is answered."""
    c.create("ending")
    bucket = c.get_json("/v1/buckets/ending")
    member = Cached(c, 1, "--workers=1", group="ending", key=None)

    def ask(i):
        query = urllib.parse.urlencode({
            "bucket": "ending", "object": "o", "etag": f'"{i}"', "checksum": "", "how": "fetch",
            "scope": f"{bucket['id']}/{bucket['created_ms']}", "size": 9, "offset": 0, "length": 9})
        try:
            with urllib.request.urlopen(f"{member.url}/v1/piece?{query}", timeout=60) as reply:
                return reply.status
        except urllib.error.HTTPError as e:
            return e.code
        except OSError:
            return 0

    equal(ask(0), 412, "an object that is not there")
    targets = [c.pid(f"t{i}") for i in (1, 2, 3)]
    for pid in targets:
        os.kill(pid, signal.SIGSTOP)
    try:
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(1, 9)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        member.stop()
        for thread in threads:
            thread.join()
    finally:
        for pid in targets:
            os.kill(pid, signal.SIGCONT)


def test_a_second_member_of_one_id_is_refused(c):
    with Group(c, "twice", 1):
        cache = os.path.join(c.dir, "second")
        os.makedirs(cache, exist_ok=True)
        done = subprocess.run([os.path.join(BUILD, "dfc-cached"), "--group=" + GROUP, "--id=m1",
                               "--cache-dir=" + cache], capture_output=True, text=True,
                              env=dict(os.environ, **c.dfcctl_environment()), timeout=120,
                              check=False)
        check(done.returncode == 1 and "another id" in done.stderr, done)


def test_a_mount_without_its_cluster_s_group(c):
    put_all(c, "none", FILES)
    equal(read_by(c, "none"), (0, TOTAL), "a group that nobody has heard of")
    for name in ("%ff", "a%20b", "x" * 4096):
        c.call("GET", "/v1/cache-groups/" + name).expect(400, "invalid_argument")
    done = c.dfcctl("fs", "cache", "ls", "")
    check(done.returncode == 2 and "GROUP is empty" in done.stderr, done)
    done = c.dfcctl("fs", "mount", "dfc://none", c.dir, "--cache-group=")
    check(done.returncode == 2 and "--cache-group is empty" in done.stderr, done)
    done = c.dfcctl("fs", "mount", "dfc://none", c.dir, "--group-key-file=/k")
    check(done.returncode == 2 and "--cache-group" in done.stderr, done)


def test_a_member_for_all_needs_a_key(c):
    done = subprocess.run([os.path.join(BUILD, "dfc-cached"), "--group=g", f"--cache-dir={c.dir}", "--listen=0.0.0.0"],
                          capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 1, done.stderr)
    check("--group-key-file" in done.stderr and "--listen" in done.stderr, done.stderr)
    check("--cluster-key-file" not in done.stderr, done.stderr)


def test_a_group_without_members_is_told_once(c):
    c.create("alone")
    for i in range(40):
        c.put("alone", f"o{i:02}", b"data").expect(200)
    log, path = os.path.join(c.dir, "alone.log"), directory_of(c, "alone")
    to_be_cleaned(path)
    done = c.dfcctl("fs", "mount", "dfc://alone", path, "--cache-group=nobody", "--group-refresh=100ms",
                    f"--log-file={log}")
    equal((done.returncode, done.stderr.count("no members")), (0, 1), f"fs mount: {done.stderr}")
    check("nobody" in done.stderr, done.stderr)
    wait_for(lambda: b"no members" in read(log), "the log")
    done = c.dfcctl("fs", "warmup", path)
    equal((done.returncode, len(done.stderr.splitlines())), (1, 1), f"fs warmup: {done.stderr}")
    check("cache group has no members" in done.stderr, done.stderr)
    equal(read(path + "/o07"), b"data", "a file")
    equal(read(log).count(b"no members"), 1, "the log")
    umount(c, path)


def test_no_sanitizer_found_anything(c):
    equal(said_by_sanitizers(), [], "reports of sanitizers")
    equal(said_by_members(c), [], "logs with reports")


if __name__ == "__main__":
    needs_fuse()
    sys.exit(main(targets=3))
