#!/usr/bin/env python3
"""Damage to one of two copies: a flipped byte, a truncated file, a deleted file, a swapped pair of
files, a lost attribute are found by a read that checks and by a scrub, never served, and mended
from the other copy; the bad file stays in quarantine.  Where both copies are damaged nothing older
comes back, and the name can be written and deleted."""

import http.client
import json
import os
import random
import shutil

from copies import get, holders, patient, wait_repaired
from lib import ENDED, Failed, check, contents, equal, in_parallel, main, wait_for
from object_jobs import document
from scrub import ATTRIBUTE, exchange, found_by, quarantine

PATIENCE = 120
LARGE = 3 << 20


def flip(path, _):
    with open(path, "r+b") as f:
        f.seek(777)
        byte = f.read(1)
        f.seek(777)
        f.write(bytes([byte[0] ^ 1]))


def cut(path, _):
    os.truncate(path, 7)


def delete(path, _):
    os.unlink(path)


def swap(path, other):
    exchange(path, other)


def lose_attribute(path, _):
    os.removexattr(path, ATTRIBUTE)


DAMAGES = {"flip": flip, "cut": cut, "delete": delete, "swap": swap, "attribute": lose_attribute}
# The others may have been mended before, by an owner that had yet to be told that all have it.
SURELY_FOUND = ("flip", "swap")
BODIES = {}
PLACES = {}  # {name: {target: path}}


def named(path, name):
    """Does the file at this path say that it is this object's?"""
    try:
        return f"{name}\0".encode() in os.getxattr(path, ATTRIBUTE)
    except OSError:
        return False


def put(c, name, size=9000):
    BODIES[name] = random.Random(name).randbytes(size)
    patient(c, "PUT", "d", name, BODIES[name])[0].expect(200)
    PLACES[name] = {node: path for node in c.targets() for path in c.object_files(node)
                    if named(path, name)}
    equal(len(PLACES[name]), 2, f"files of {name}")


def whole(name):
    """The targets that have it as it should be, where it belongs."""
    found = set()
    for node, path in PLACES[name].items():
        try:
            with open(path, "rb") as f:
                if named(path, name) and f.read() == BODIES[name]:
                    found.add(node)
        except OSError:
            continue
    return found


def wait_whole(name):
    wait_for(lambda: len(whole(name)) == 2, f"two good copies of {name}", PATIENCE)


def acting(c, name):
    return c.owner("d", name)


def pair_on(c, name, node):
    """Another object that lies beside this one's copy, and is read there."""
    def beside(path):
        return os.path.dirname(os.path.dirname(path))

    for i in range(1000):
        other = f"{name}/pair{i}"
        put(c, other)
        if beside(PLACES[other].get(node, "")) == beside(PLACES[name][node]) and \
                acting(c, other) == node:
            return other
    raise Failed(f"nothing lies beside {name}")


def damage(c, kind, name, node):
    """Damages the copy on this target; the names that have suffered."""
    suffered = [name] + ([pair_on(c, name, node)] if kind == "swap" else [])
    paths = [PLACES[n][node] for n in suffered]
    DAMAGES[kind](paths[0], paths[-1])
    return suffered


def read_whole(c, name):
    """A client that repeats what failed: what it gets whole is right."""
    def right():
        try:
            reply = c.get("d", name)
        except (OSError, http.client.HTTPException):
            return False  # cut off before its end
        if reply.status == 200:
            check(reply.body == BODIES[name], f"{name}: damaged bytes were served")
        else:
            check(reply.status in (500, 503), f"{name}: {reply!r}")
        return reply.status == 200

    wait_for(right, f"{name} to be read", PATIENCE)


def test_a_read_that_checks_finds_it_and_has_it_mended(c):
    c.create("d", copies=2, verify_on_read=True)
    aside = set()
    for kind in DAMAGES:
        name = f"read/{kind}"
        put(c, name)
        acts = acting(c, name)
        suffered = damage(c, kind, name, acts)
        if kind in SURELY_FOUND:
            aside |= {PLACES[n][acts] for n in suffered}
        for n in suffered:
            read_whole(c, n)
            wait_for(lambda n=n: len(whole(n)) == 2 or read_whole(c, n), f"two good copies of {n}",
                     PATIENCE)
    equal(aside & set(quarantine(c)), aside, "places of what is in quarantine")


def test_a_large_one_is_cut_off_and_mended_for_the_next(c):
    for kind in ("flip", "cut"):
        name = f"large/{kind}"
        put(c, name, LARGE)
        damage(c, kind, name, acting(c, name))
        read_whole(c, name)
        wait_whole(name)


def scrub(c):
    done = c.dfcctl("storage", "scrub", "--wait", "-o", "json")
    check(done.returncode in (0, 1), done.stderr)
    return found_by(json.loads(done.stdout))


def test_a_scrub_finds_it_and_has_it_mended(c):
    suffered, surely = [], set()
    for i, kind in enumerate(DAMAGES):
        name = f"scrub/{kind}"
        put(c, name)
        acts = acting(c, name)
        other = next(n for n in PLACES[name] if n != acts)
        names = damage(c, kind, name, acts if i % 2 == 0 else other)
        suffered += names
        surely |= set(names if kind in SURELY_FOUND else ())
    found = {name for _, name in scrub(c)}
    equal(found & surely, surely, "what the scrub has found")
    for name in suffered:
        wait_whole(name)
    equal(scrub(c), set(), "what the next scrub has found")


def test_a_copy_job_reads_what_another_owner_has(c):
    """What is damaged at the target that works on the name is mended in passing."""
    c.create("to")
    for kind in sorted(set(DAMAGES) -
                       {"swap"}):  # docs/project/known-issues.md: a copy job may wait for a read
        put(c, f"job/{kind}")
        damage(c, kind, f"job/{kind}", acting(c, f"job/{kind}"))
    names = sorted(n for n in BODIES if n.startswith("job/"))
    body = {"action": "copy", "value": {"list": names, "to": "to"}}
    job_id = c.call("POST", "/v1/buckets/d", body).expect(202).json()["id"]
    wait_for(lambda: document(c, job_id)["state"] in ENDED, "the end of the copy", PATIENCE)
    job = document(c, job_id)
    equal((job["state"], job["progress"]["objects"]["done"]), ("finished", len(names)),
          f"{job['errors']}")
    for name in names:
        check(
            patient(c, "GET", "to", name)[0].expect(200).body == BODIES[name],
            f"{name}: other bytes")
        wait_whole(name)


def test_a_lost_mountpath_is_repaired_by_itself(c):
    c.setting("repair_delay", "0s")
    names = [f"disk/{i}" for i in range(30)]
    in_parallel(lambda name: put(c, name), names)
    check(patient(c, "DELETE", "d", names[0])[0].status in (204, 404), "not deleted")
    lost = os.path.join(c.node_dir("t1"), "mp1")
    c.kill("t1")
    patient(c, "DELETE", "d", names[1])
    shutil.rmtree(lost)
    c.start("t1", "--arg=--mountpath-lost-ok=true")
    c.wait_node("t1", "active")
    wait_repaired(c)
    for name in names[:2]:
        patient(c, "GET", "d", name)[0].expect(404, "object_not_found")
    for name in names[2:]:  # not where they were: t1 has one mountpath less
        equal(len(set(holders(c, BODIES[name]))), 2, f"copies of {name}")
        check(patient(c, "GET", "d", name)[0].body == BODIES[name], f"{name}: other bytes")


def lost(c, bucket):
    """What the summary names, where it says so in all ways."""
    summary = c.dfcctl("storage", "summary", bucket, "-o", "json")
    row = json.loads(summary.stdout).get(bucket, {}) if summary.returncode in (0, 6) else {}
    names = set(row.get("lost_names", ()))
    equal(row.get("lost", 0), len(names), "how many are lost")
    equal(row.get("protection") == "lost", bool(names), f"protection of {row}")
    return names


def wait_lost(c, bucket, names):
    """And health is red for it, or is not."""
    wait_for(lambda: lost(c, bucket) == names, f"{names or 'nothing'} to be shown as lost",
             PATIENCE)

    def is_told():
        return ("no target has the bytes" in c.dfcctl("cluster", "health").stdout) == bool(names)

    wait_for(is_told, "health to say so", PATIENCE)


def test_where_both_are_damaged_nothing_comes_back(c):
    for name in ("both/put", "both/delete"):
        put(c, name)
        for path in PLACES[name].values():
            flip(path, None)
        wait_for(lambda name=name: c.get("d", name).status == 500, f"{name} to be lost", PATIENCE)
    wait_lost(c, "d", {"both/put", "both/delete"})
    put(c, "both/put", 100)
    read_whole(c, "both/put")
    check(patient(c, "DELETE", "d", "both/delete")[0].status in (204, 404), "not deleted")
    get(c, "d", "both/delete").expect(404, "object_not_found")
    wait_lost(c, "d", set())


def test_what_one_copy_was_all_of_is_shown_as_lost(c):
    c.create("one")
    for name in ("gone", "flipped"):
        c.put("one", name, BODIES.setdefault(name, random.Random(name).randbytes(9000)))
    paths = {name: path for name in ("gone", "flipped") for node in c.targets()
             for path in c.object_files(node) if named(path, name)}
    flip(paths["flipped"], None)
    os.unlink(paths["gone"])
    scrub(c)
    wait_lost(c, "one", {"gone", "flipped"})
    c.put("one", "gone", b"again")
    wait_lost(c, "one", {"flipped"})
    owner = c.owner("one", "flipped")
    c.restart(owner)
    wait_lost(c, "one", {"flipped"})
    c.object("DELETE", "one", "flipped").expect(204)
    wait_lost(c, "one", set())


def test_what_was_missed_does_not_come_back_for_one_that_cannot_be_read(c):
    """One owner missed a write and is back; the attribute of the other one's copy is gone. A repair
    does not
    take the first one's for the newest: nobody has the write any more, and that is said."""
    c.setting("repair_delay", "1h")
    c.create("missed", copies=2)
    patient(c, "PUT", "missed", "a", b"older")[0].expect(200)
    acts = get(c, "missed", "a").expect(200).headers["Dfc-Node"]
    paths = {
        node: path
        for node in c.targets() for path in c.object_files(node) if contents(path) == b"older"
    }
    other = next(node for node in paths if node != acts)
    c.kill(other)
    c.wait_node(other, "unreachable")
    patient(c, "PUT", "missed", "a", b"newer")[0].expect(200)
    c.start(other)
    c.wait_node(other, "active")
    lose_attribute(paths[acts], None)
    check(not named(paths[acts], "a"), "its attribute is there")
    c.call("POST", "/v1/jobs", {"action": "start", "name": "repair"}).expect(202)
    wait_for(lambda: named(paths[acts], "a"), "the repair to have seen it", PATIENCE)

    def is_said():
        reply = c.get("missed", "a")
        check(reply.status in (500, 503), f"{reply!r}: {reply.body}")
        return reply.status == 500

    wait_for(is_said, "it to be lost", PATIENCE)
    patient(c, "PUT", "missed", "a", b"newest")[0].expect(200)
    equal(get(c, "missed", "a").expect(200).body, b"newest", "what was put over it")


def send_other(c, name, node, status):
    """Another content, without a checksum and with more metadata, of the version that there is."""
    state = c.get_json("/v1/cluster?what=state")
    number = next(b["id"] for b in state["bmd"]["buckets"] if b["name"] == "d")
    url = c.get_json("/v1/daemon", node)["data_url"] + f"/v1/objects/d/{name}" \
        f"?dfcb={number}&dfcv={state['term']}.{state['version']}"
    version = c.object("HEAD", "d", name).expect(200).headers["Dfc-Version"]
    c.member.request(
        "PUT", url, b"", {
            "Dfc-Copy": "move", "Dfc-Version": version, "Dfc-Meta-More": "pairs",
            "Dfc-Modified": "1700000000000"
        }).expect(status)


def test_more_metadata_do_not_make_another_content_pass(c):
    """It does not take the place of what is there, and gives way where it is there already."""
    put(c, "content")
    node = next(n for n in PLACES["content"] if n != acting(c, "content"))
    send_other(c, "content", node, 304)
    equal(len(whole("content")), 2, "good copies")
    os.unlink(PLACES["content"][node])
    send_other(c, "content", node, 200)
    equal(os.path.getsize(PLACES["content"][node]), 0, "bytes of the other content")
    first = acting(c, "content")
    c.kill(first)
    c.wait_node(first, "unreachable")
    c.start(first)
    c.wait_node(first, "active")
    start = {"action": "start", "name": "repair"}  # 409 while an earlier one goes on
    wait_for(lambda: c.call("POST", "/v1/jobs", start).status == 202, "a repair", PATIENCE)
    wait_whole("content")
    equal(get(c, "d", "content").body, BODIES["content"], "what is read")


if __name__ == "__main__":
    main(targets=3)
