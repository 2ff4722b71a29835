#!/usr/bin/env python3
"""dfcctl put in parts: a file becomes the same object as by a whole put, and a put that was killed
goes on.  The target's parts and its count of received bytes say that no part is sent twice.

DFC_PART (5): MiB a part.  DFC_SIZE (60): MiB of the file that is killed.  DFC_KILLS (4)."""

import json
import os
import random
import re
import shutil
import subprocess

from cold_lib import metric
from lib import BUILD, check, equal, main, wait_for
from uploads_lib import MIB, Upload, all_uploads, list_of

PART = int(os.environ.get("DFC_PART", "5")) * MIB
SIZE = int(os.environ.get("DFC_SIZE", "60")) * MIB
KILLS = int(os.environ.get("DFC_KILLS", "4"))
COUNT = 6
SMALL = (COUNT - 1) * PART + 77
SECONDS = 60 + SIZE // MIB
KINDS = ("one", "two", "sliced", "tagged")


class Files:
    """A directory of files, and dfcctl in it."""

    def __init__(self, c):
        self.c, self.dir = c, os.path.join(c.dir, "files")
        os.makedirs(self.dir, exist_ok=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, size=SMALL):
        """Other bytes each time; where the file is."""
        with open(self.path(name), "wb") as f:
            for at in range(0, size, 8 * MIB):
                f.write(random.randbytes(min(8 * MIB, size - at)))
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def argv(self, name, to, *flags):
        return ("put", self.path(name), to, "--part-size", f"{PART // MIB}MiB", *flags)

    def try_put(self, name, to, *flags, env=None):
        return self.c.dfcctl(*self.argv(name, to, *flags), env=env, timeout=SECONDS)

    def put_or_none(self, name, to):
        done = self.try_put(name, to, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def put(self, name, to, *flags, env=None):
        done = self.try_put(name, to, *flags, "-o", "json", env=env)
        equal(done.returncode, 0, f"exit code of put {name}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def start(self, name, to, *flags):
        argv = [os.path.join(BUILD, "dfcctl"), *self.argv(name, to, *flags)]
        return subprocess.Popen(argv, env=self.c.dfcctl_environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def states(self):
        where = os.path.join(self.c.dir, "cache", "dfc", "uploads")
        return os.listdir(where) if os.path.isdir(where) else []


def the_upload(c, bucket, key):
    """The one open upload of the object, or None."""
    found = [Upload(c, bucket, key, upload) for name, upload in all_uploads(c, bucket)
             if name == key]
    check(len(found) <= 1, f"{key} has {len(found)} open uploads")
    return found[0] if found else None


def parts_of(upload):
    return set(upload.parts()[0]) if upload is not None else set()


def connections(c):
    """Of clients at targets.  A killed client has one until the target has read what it had sent."""
    return sum(metric(c, 'dfc_http_connections{listener="public"}', node=t) for t in c.targets())


def kill_at(c, files, name, to, count):
    """Starts a put and kills it when the cluster has `count` parts.  The upload and its parts then;
    None, None where the put ended before."""
    bucket, _, key = to.partition("/")
    before = connections(c)
    p = files.start(name, to, "-j", "2")
    wait_for(lambda: p.poll() is not None or len(parts_of(the_upload(c, bucket, key))) >= count,
             f"{count} parts", SECONDS)
    p.kill()
    _, err = p.communicate()
    if p.returncode == 0:
        return None, None
    equal(p.returncode, -9, f"how put ended: {err}")
    wait_for(lambda: connections(c) <= before, "the end of the killed put's connections", SECONDS)
    upload = the_upload(c, bucket, key)
    return upload, parts_of(upload)


def has_bytes(c, files, name, to):
    got = files.path("got")
    equal(c.dfcctl("get", to, got, timeout=SECONDS).returncode, 0, f"exit code of get {to}")
    same = subprocess.run(["cmp", got, files.path(name)], capture_output=True, check=False)
    equal((same.returncode, same.stdout), (0, b""), f"{to} and its file")


def is_stored(c, files, name, to):
    bucket, _, key = to.partition("/")
    has_bytes(c, files, name, to)
    equal((the_upload(c, bucket, key), files.states()), (None, []), f"what is left of {to}")


def received(c):
    return sum(metric(c, "dfc_http_bytes_received_total", node=t) for t in c.targets())


def part_requests(c):
    """{node: {class of codes: parts}}"""
    return {t: {code: metric(c, f'dfc_http_requests_total{{route="upload_part",code="{code}"}}', t)
                for code in ("2xx", "3xx", "4xx", "5xx")} for t in c.targets()}


def broken(c, files, to, name="f"):
    """A new file, whose put was killed with two parts or more, but not all."""
    upload, parts = None, set()
    while upload is None or len(parts) == COUNT:
        files.write(name)
        upload, parts = kill_at(c, files, name, to, 2)
    return upload, parts


def complete_broken(c, files, to):
    """As if put had been killed before it got the reply to its completion: the reply."""
    upload, have = broken(c, files, to)
    data = files.read("f")
    bodies = [data[at:at + PART] for at in range(0, len(data), PART)]
    for number in set(range(1, COUNT + 1)) - have:
        upload.part(number, bodies[number - 1])
    return upload.complete(list_of(bodies))


def test_buckets(c):
    c.create("one")
    c.create("two", copies=2)
    c.create("sliced", ec={"data": 2, "parity": 1, "min_size": 100000})
    c.create("tagged", etag="md5")


def test_the_object_is_that_of_a_whole_put(c):
    files = Files(c)
    files.write("f")
    about = ("-m", "Color=red", "-m", "step=7", "--content-type", "a/b")
    for kind in KINDS:
        whole = files.put("f", f"{kind}/whole", *about, "--part-size", "0")
        parts = files.put("f", f"{kind}/parts", *about)
        equal({k: parts[k] for k in ("size", "checksum", "resumed")},
              {"size": SMALL, "checksum": whole["checksum"], "resumed": 0}, kind)
        is_stored(c, files, "f", f"{kind}/parts")
        replies = [c.object("HEAD", kind, key).expect(200).headers for key in ("whole", "parts")]
        equal((replies[1]["ETag"], replies[1]["Dfc-Version"]), (parts["etag"], parts["version"]),
              "version")
        for header in ("Content-Length", "Content-Type", "Dfc-Meta-Color", "Dfc-Meta-step",
                       "Dfc-Checksum-Type", "Dfc-Checksum-Value"):
            equal(replies[1][header], replies[0][header], f"{header} in {kind}")
        check(re.fullmatch("[0-9a-f]{32}-%d" % COUNT, replies[1]["Dfc-Md5"]), f"Dfc-Md5 in {kind}")


def test_a_put_that_is_killed_sends_no_part_twice(c):
    files = Files(c)
    files.write("f", SIZE)
    before, first, have, kills = received(c), None, set(), 0
    for i in range(KILLS):
        count = (i + 1) * (SIZE // PART) // (KILLS + 1) + random.randrange(2)
        upload, parts = kill_at(c, files, "f", "one/killed", count)
        if upload is None:
            break
        kills += 1
        first = first or upload.id
        equal(upload.id, first, "the upload")
        check(have <= parts, f"parts {have - parts} are lost")
        have = parts
    check(kills > 0, "put was killed while it was at work")
    doc = files.put("f", "one/killed")
    is_stored(c, files, "f", "one/killed")
    check(doc["resumed"] >= len(have) * PART, f"{doc['resumed']} bytes are from earlier runs, of "
                                              f"{len(have)} parts")
    sent = (received(c) - before) // MIB
    wasted = kills * 2 * PART // MIB + 1  # two parts were on their way at each kill
    check(sent <= SIZE // MIB + wasted, f"targets received {sent} MiB, for {kills} kills, by these "
                                        f"requests: {part_requests(c)}")


def test_a_put_that_is_killed_at_any_moment(c):
    """Also before the upload is begun, and while it is completed."""
    files = Files(c)
    files.write("f")
    for i in range(8):
        to = f"one/moment-{i}"
        p = files.start("f", to, "-j", "2")
        try:
            p.wait(random.uniform(0, 0.4))
        except subprocess.TimeoutExpired:
            p.kill()
        p.communicate()
        equal(files.put("f", to)["size"], SMALL, "size")
        has_bytes(c, files, "f", to)
    for key, upload in all_uploads(c, "one"):  # begun, and not noted before the kill
        equal(Upload(c, "one", key, upload).parts(), ([], False), f"parts of {key}")
        Upload(c, "one", key, upload).abort().expect(204)
    equal(files.states(), [], "states")


def test_a_completion_without_its_reply(c):
    files = Files(c)
    version = complete_broken(c, files, "one/completed")["version"]
    doc = files.put("f", "one/completed")
    equal((doc["resumed"], doc["version"]), (SMALL, version), "the object of the first run")
    is_stored(c, files, "f", "one/completed")
    complete_broken(c, files, "one/completed")
    c.put("one", "completed", b"of somebody else")
    equal(files.put("f", "one/completed")["resumed"], 0, "bytes from an earlier run")
    is_stored(c, files, "f", "one/completed")


def test_what_is_another_file_begins_anew(c):
    files = Files(c)
    for flags in ((), ("-m", "a=b"), ("--content-type", "x/y")):
        old, _ = broken(c, files, "two/changed")
        if not flags:
            files.write("f")
        equal(files.put("f", "two/changed", *flags)["resumed"], 0, "bytes from an earlier run")
        check(not old.is_open(), "the upload of the file as it was is open")
        is_stored(c, files, "f", "two/changed")


def test_a_file_that_changes_while_it_is_sent(c):
    files = Files(c)
    files.write("f", 2 * COUNT * PART)
    p = files.start("f", "one/moving", "-j", "1")
    wait_for(lambda: p.poll() is not None or parts_of(the_upload(c, "one", "moving")), "a part",
             SECONDS)
    os.utime(files.path("f"), (1, 1))
    _, err = p.communicate(timeout=SECONDS)
    if p.returncode != 0:  # else it had read all
        check("changed while it was sent: repeat the command" in err, err)
        equal((the_upload(c, "one", "moving"), files.states()), (None, []), "what is left")
    files.put("f", "one/moving")
    is_stored(c, files, "f", "one/moving")


def test_several_programs_send_the_same_file(c):
    files = Files(c)
    files.write("f")
    running = [files.start("f", "two/same") for _ in range(4)]
    for p in running:
        out, err = p.communicate(timeout=SECONDS)
        equal(p.returncode, 0, f"exit code of put: {out}{err}")
    is_stored(c, files, "f", "two/same")


def test_an_upload_that_is_gone(c):
    files = Files(c)
    upload, _ = broken(c, files, "one/gone")
    check(f"{upload.id}  gone" in c.dfcctl("upload", "ls", "one").stdout, "upload ls")
    equal(c.dfcctl("upload", "abort", "one/gone").stdout, f"aborted {upload.id}\n", "upload abort")
    equal(c.dfcctl("upload", "abort", "one/gone").returncode, 4, "exit code of a second abort")
    equal(files.put("f", "one/gone")["resumed"], 0, "bytes from an earlier run")
    is_stored(c, files, "f", "one/gone")

    files.write("f", 2 * COUNT * PART)
    p = files.start("f", "one/gone", "-j", "1")
    wait_for(lambda: p.poll() is not None or parts_of(the_upload(c, "one", "gone")), "a part",
             SECONDS)
    upload = the_upload(c, "one", "gone")
    if upload is not None:  # else the put has ended
        upload.abort()
    out, err = p.communicate(timeout=SECONDS)
    equal(p.returncode, 0, f"exit code of put: {out}{err}")
    is_stored(c, files, "f", "one/gone")


def test_an_upload_that_has_expired(c):
    files = Files(c)
    broken(c, files, "one/expired")
    target = c.owner("one", "expired")
    for args in (("--uploads-sweep=100ms", "--uploads-expire=1s"), ()):
        c.restart(target, *(f"--arg={a}" for a in args))
        if args:
            wait_for(lambda: the_upload(c, "one", "expired") is None, "the sweep", SECONDS)
    equal(files.put("f", "one/expired")["resumed"], 0, "bytes from an earlier run")
    is_stored(c, files, "f", "one/expired")


def refused_put(c, files, to, *flags):
    """A put whose condition does not hold; what it has sent."""
    before = received(c)
    done = files.try_put("f", to, *flags)
    equal(done.returncode, 1, f"exit code: {done.stdout}{done.stderr}")
    bucket, _, key = to.partition("/")
    equal((the_upload(c, bucket, key), files.states()), (None, []), "what is left")
    return received(c) - before


def test_conditions(c):
    files = Files(c)
    files.write("f")
    c.put("one", "cond", b"old")
    for flags in (("--if-absent",), ("--if-match", '"1.2.3"')):
        check(refused_put(c, files, "one/cond", *flags) < PART, "bytes were sent for nothing")
    etag = c.object("HEAD", "one", "cond").expect(200).headers["ETag"]
    files.put("f", "one/cond", "--if-match", etag)
    is_stored(c, files, "f", "one/cond")
    files.put("f", "one/cond-new", "--if-absent")
    is_stored(c, files, "f", "one/cond-new")

    broken(c, files, "one/cond-2")
    c.put("one", "cond-2", b"of somebody else")
    check(refused_put(c, files, "one/cond-2", "--if-absent") < PART, "bytes were sent for nothing")
    equal(c.get("one", "cond-2").expect(200).body, b"of somebody else", "the object")

    files.write("f", 2 * COUNT * PART)
    p = files.start("f", "one/cond-3", "-j", "1", "--if-absent")
    wait_for(lambda: p.poll() is not None or parts_of(the_upload(c, "one", "cond-3")), "a part",
             SECONDS)
    mine = c.object("PUT", "one", "cond-3", b"meanwhile", {"If-None-Match": "*"}).status
    p.communicate(timeout=SECONDS)
    equal((mine, p.returncode) in ((200, 1), (412, 0)), True, f"one of two: {mine}, {p.returncode}")
    equal(the_upload(c, "one", "cond-3"), None, "open upload")


def test_no_cache_directory(c):
    files = Files(c)
    files.write("f")
    file = files.path("f")
    for n, env in enumerate(({"XDG_CACHE_HOME": "", "HOME": ""}, {"XDG_CACHE_HOME": file},
                             {"XDG_CACHE_HOME": "relative", "HOME": "/dev/null"})):
        equal(files.put("f", f"one/homeless-{n}", env=env)["resumed"], 0, "resumed")
        is_stored(c, files, "f", f"one/homeless-{n}")
        equal(files.try_put("f", f"one/homeless-{n}", "--if-absent", env=env).returncode, 1, "code")
        equal(all_uploads(c, "one"), [], "open uploads")


def test_directories_and_sync(c):
    files = Files(c)
    shutil.rmtree(files.path("d"), ignore_errors=True)
    os.makedirs(files.path("d"))
    files.write("d/large")
    files.write("d/small", 1000)
    part_size = ("--part-size", f"{PART // MIB}MiB")
    for words in (("put", files.path("d"), "two/d"), ("sync", files.path("d"), "dfc://two/s")):
        done = c.dfcctl(*words, *part_size)
        equal(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
    for prefix in "ds":
        is_stored(c, files, "d/large", f"two/{prefix}/large")
    again = c.dfcctl("sync", files.path("d"), "dfc://two/s", *part_size, "-o", "json")
    equal([json.loads(again.stdout)[k] for k in ("done", "existed")], [0, 2], "a second sync")
    files.write("d/large")
    done = c.dfcctl("sync", files.path("d"), "dfc://two/s", *part_size)
    equal(done.returncode, 0, done.stderr)
    is_stored(c, files, "d/large", "two/s/large")


def test_a_target_that_dies(c):
    files = Files(c)
    upload, parts = broken(c, files, "one/dies")
    target = c.owner("one", "dies")
    c.kill(target)
    c.start(target)
    c.wait_node(target, "active")
    doc = files.put("f", "one/dies")
    check(doc["resumed"] >= PART * len(parts - {COUNT}), f"{doc['resumed']} of parts {parts}")
    is_stored(c, files, "f", "one/dies")
    check(not upload.is_open(), "the upload is open")


if __name__ == "__main__":
    main(targets=3)
