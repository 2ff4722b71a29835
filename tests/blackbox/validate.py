#!/usr/bin/env python3
"""dfcctl storage validate: what somebody has done to the disks behind the targets' backs is found,
by name, and nothing else is, while clients write."""

import json
import os
import threading

from lib import check, equal, in_parallel, main, wait_for

ATTRIBUTE = "user.dfc"
NAMES = [f"n/{i:03d}" for i in range(60)]


def attribute_of(path):
    return os.getxattr(path, ATTRIBUTE) if ATTRIBUTE in os.listxattr(path) else b""


def file_of(c, name):
    """The one file whose attribute has this name."""
    found = [path for node in c.targets() for path in c.object_files(node)
             if f"{name}\0".encode() in attribute_of(path)]
    equal(len(found), 1, f"files of {name}")
    return found[0]


def validate(c, *flags):
    """Its exit code, and {(what, bucket/name)}, as its JSON and its table say."""
    done = c.dfcctl("storage", "validate", *flags, "-o", "json")
    check(done.returncode in (0, 1), done.stderr)
    doc = json.loads(done.stdout)
    equal(doc["state"], "finished", "the job")
    found = {(d["what"], d["name"]) for report in doc["targets"].values()
             for d in report["status"]["differences"]}
    counted = sum(n for r in doc["targets"].values() for n in r["status"]["found"].values())
    equal(counted, len(found), "the sum of what was found")
    equal(done.returncode, 1 if found else 0, "the exit code")
    return found, doc


def test_nothing_differs_while_clients_write(c):
    c.create("b")
    c.create("loose", durability="async")
    in_parallel(lambda name: c.put("b", name, name.encode() * 100), NAMES)
    c.object("DELETE", "b", NAMES[0]).expect(204)
    stop = threading.Event()
    wrong = []

    def write(number):
        i = 0
        while not stop.is_set():
            bucket, name = ("b", "loose")[i % 2], f"busy/{number}/{i % 7}"
            reply = c.object("DELETE" if i % 5 == 0 else "PUT", bucket, name, b"x" * (i % 5000))
            if reply.status not in (200, 204, 404):
                wrong.append(repr(reply))
            i += 1

    writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for w in writers:
        w.start()
    try:
        for flags in ((), ("--checksums",), ("--checksums", "--rate=100MiB")):
            found, doc = validate(c, *flags)
            equal(found, set(), "differences")
            check(doc["progress"]["objects"]["done"] >= len(NAMES) - 1, repr(doc["progress"]))
            read = doc["progress"]["bytes"]["done"]
            check(read > 100 * 5 * len(NAMES) / 2 if flags else read == 0, f"{read} bytes read")
    finally:
        stop.set()
        for w in writers:
            w.join()
    equal(wrong, [], "what the writers were told")


def test_what_differs_is_named(c):
    gone, short, other, nameless = (NAMES[i] for i in (1, 2, 3, 4))
    files = {name: file_of(c, name) for name in (gone, short, other, nameless)}
    os.unlink(files[gone])
    os.truncate(files[short], 7)
    with open(files[other], "r+b") as f:
        f.write(b"?")
    os.removexattr(files[nameless], ATTRIBUTE)
    expected = {("file_missing", gone), ("size_differs", short), ("attribute_damaged", nameless)}
    equal(validate(c)[0], expected, "without checksums")
    found, doc = validate(c, "--checksums")
    equal(found, expected | {("checksum_differs", other)}, "with checksums")
    check(any("file_missing" in w for w in doc["warnings"]), repr(doc["warnings"]))
    done = c.dfcctl("storage", "validate", "--checksums")
    equal(done.returncode, 1, "the exit code")
    for what, name in found:
        check(any(what in line and f"b/{name}" in line for line in done.stdout.splitlines()),
              f"{what} of {name} is not in {done.stdout}")
    check("4 differences" in done.stdout, done.stdout)
    check(validate(c)[0] == expected, "looking has changed something")


def test_what_the_index_lacks(c):
    """A file that comes back when the index has been made without it."""
    name = NAMES[5]
    path = file_of(c, name)
    away = path + "-aside-with-a-name-that-no-object-has"
    os.rename(path, away)
    for node in c.targets():
        equal(c.dfcctl("storage", "reindex", node, "--wait").returncode, 0, "the rebuild")
    os.rename(away, path)
    found = validate(c)[0]
    check(("not_indexed", name) in found, repr(found))
    check(not any(what == "file_missing" for what, _ in found), "the rebuild has mended that")
    for node in c.targets():
        equal(c.dfcctl("storage", "reindex", node, "--wait").returncode, 0, "the rebuild")
    check(("not_indexed", name) not in validate(c)[0], "it is listed again")


def test_what_was_mended_is_well(c):
    for name in NAMES[1:5]:
        c.put("b", name, b"again").expect(200)
    equal(validate(c, "--checksums")[0], set(), "differences")


def test_a_target_that_is_away(c):
    c.stop("t2")
    c.wait_node("t2", "unreachable")
    done = c.dfcctl("storage", "validate")
    check(done.returncode not in (0, 1), f"exit code {done.returncode}")
    check("t2" in done.stderr, done.stderr)
    c.start("t2")
    c.wait_node("t2", "active")


def test_it_can_be_aborted(c):
    """At a rate that would take hours."""
    body = {"action": "start", "name": "validate", "value": {"checksums": True, "rate": "1KiB"}}
    c.put("b", "large", b"z" * (8 << 20))
    job = c.call("POST", "/v1/jobs", body).expect(202).json()["id"]
    wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] == "running", "the job")
    c.call("DELETE", f"/v1/jobs/{job}").expect(202)
    wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] == "aborted", "its end")


def test_mistakes_are_refused(c):
    for value in ({"checksum": True}, {"rate": "fast"}, {"checksums": 1}, []):
        body = {"action": "start", "name": "validate", "value": value}
        c.call("POST", "/v1/jobs", body).expect(400)
    body = {"action": "start", "name": "cleanup", "value": {"checksums": True}}
    c.call("POST", "/v1/jobs", body).expect(400, "invalid_argument", "takes none")
    equal(c.dfcctl("storage", "validate", "--rate=1MiB").returncode, 2, "the exit code")


if __name__ == "__main__":
    main(targets=2)
