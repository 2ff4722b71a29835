#!/usr/bin/env python3
"""The scrub: a flipped byte, a truncated file, a deleted file, a swapped pair of files on the disk
are found by
name, moved aside, and never served; it goes on after a restart; it begins by itself; it lets others
be."""

import ctypes
import json
import os

from lib import ENDED, check, equal, in_parallel, main, wait_for

ATTRIBUTE = "user.dfc"
NAMES = [f"n/{i:03d}" for i in range(40)]
FLIPPED, SHORT, GONE, LEFT, RIGHT, NAMELESS = NAMES[:6]


def body(name):
    return name.encode() * 300


def file_of(c, name):
    """The one file whose attribute has this name."""
    found = [path for node in c.targets() for path in c.object_files(node)
             if ATTRIBUTE in os.listxattr(path)
             and f"{name}\0".encode() in os.getxattr(path, ATTRIBUTE)]
    equal(len(found), 1, f"files of {name}")
    return found[0]


def exchange(a, b):
    libc = ctypes.CDLL(None, use_errno=True)
    at_cwd, exchanging = -100, 2
    equal(libc.renameat2(at_cwd, os.fsencode(a), at_cwd, os.fsencode(b), exchanging), 0,
          "renameat2")


def quarantine(c):
    """{name: what was found}, as the notes there say."""
    notes = {}
    for node in c.targets():
        for number in (1, 2):
            place = os.path.join(c.node_dir(node), f"mp{number}", ".dfc", "quarantine")
            for entry in os.listdir(place) if os.path.isdir(place) else []:
                if entry.endswith(".json"):
                    with open(os.path.join(place, entry), encoding="utf-8") as f:
                        note = json.load(f)
                    check(os.path.exists(os.path.join(place, entry[:-5])), f"no file of {note}")
                    notes[note["path"]] = note
    return notes


def found_by(doc):
    return {(d["what"], d["name"]) for report in doc["targets"].values()
            for d in report["status"]["differences"]}


def scrub(c, *flags):
    done = c.dfcctl("storage", "scrub", "--wait", "-o", "json", *flags)
    check(done.returncode in (0, 1), done.stderr)
    doc = json.loads(done.stdout)
    equal(doc["state"], "finished", "the job")
    equal(done.returncode, 1 if found_by(doc) else 0, "the exit code")
    return doc


def mended(doc, what):
    return sum(r["status"]["mended"].get(what, 0) for r in doc["targets"].values())


def test_nothing_is_found_on_sound_disks(c):
    c.create("b", verify_on_read=True)
    in_parallel(lambda name: c.put("b", name, body(name)), NAMES)
    c.object("DELETE", "b", NAMES[-1]).expect(204)
    doc = scrub(c, "--rate=1GiB")
    equal(found_by(doc), set(), "differences")
    equal(doc["progress"]["objects"]["done"], len(NAMES) - 1, "objects")
    equal(doc["progress"]["bytes"]["done"], sum(len(body(n)) for n in NAMES[:-1]), "bytes read")


def test_damage_is_never_served_and_moved_aside(c):
    files = {name: file_of(c, name) for name in NAMES[:6]}
    with open(files[FLIPPED], "r+b") as f:
        f.seek(77)
        f.write(b"?")
    os.truncate(files[SHORT], 7)
    os.unlink(files[GONE])
    exchange(files[LEFT], files[RIGHT])
    os.removexattr(files[NAMELESS], ATTRIBUTE)
    damaged = (FLIPPED, SHORT, GONE, LEFT, RIGHT, NAMELESS)
    for name in damaged:  # verify_on_read
        c.get("b", name).expect(500, "corrupt")
    doc = scrub(c)
    equal(found_by(doc), {("checksum_differs", FLIPPED), ("size_differs", SHORT),
                          ("file_missing", GONE), ("misplaced", LEFT), ("misplaced", RIGHT),
                          ("attribute_damaged", NAMELESS)}, "differences")
    equal((mended(doc, "quarantined"), mended(doc, "repairs_wanted"), mended(doc, "failed")),
          (5, 6, 0), "what was done")
    notes = quarantine(c)
    equal(set(notes), {files[n] for n in damaged if n != GONE}, "places of what is in quarantine")
    equal(notes[files[SHORT]]["name"], SHORT, "a note")
    for name in damaged:
        c.get("b", name).expect(500, "corrupt")
        c.object("HEAD", "b", name).expect(500)
        check(name in c.names("b"), f"{name} is listed")
    for name in NAMES[6:-1]:
        equal(c.get("b", name).expect(200).body, body(name), name)


def test_health_and_metrics_say_so(c):
    def yellow():
        done = c.dfcctl("cluster", "health")
        return "in quarantine" in done.stdout

    wait_for(yellow, "the health")
    totals = [c.call("GET", "/metrics", node=node).body.decode() for node in c.targets()]
    count = sum(int(line.split()[-1]) for text in totals for line in text.splitlines()
                if line.startswith("dfc_quarantined_total"))
    equal(count, 5, "dfc_quarantined_total")
    files = sum(m["quarantined"] for node in c.targets()
                for m in c.get_json("/v1/daemon?what=mountpaths", node=node)["mountpaths"])
    equal(files, 5, "files in quarantine")


def test_the_next_scrub_tells_of_what_is_left(c):
    c.put("b", SHORT, body(SHORT)).expect(200)
    c.object("DELETE", "b", LEFT).expect(204)
    c.get("b", LEFT).expect(404)
    doc = scrub(c)
    equal(found_by(doc), {("quarantined", FLIPPED), ("file_missing", GONE), ("quarantined", RIGHT),
                          ("quarantined", NAMELESS)}, "differences")
    equal(mended(doc, "quarantined"), 0, "moved aside once more")
    for name in (FLIPPED, GONE, RIGHT, NAMELESS):
        c.put("b", name, body(name)).expect(200)
        equal(c.get("b", name).expect(200).body, body(name), name)
    equal(found_by(scrub(c)), set(), "differences")
    equal(len(quarantine(c)), 5, "nobody empties the quarantine")


def start(c, **value):
    request = {"action": "start", "name": "scrub", "value": value}
    return c.call("POST", "/v1/jobs", request).expect(202).json()["id"]


def state_of(c, job):
    return c.get_json(f"/v1/jobs/{job}")["state"]


def read_by(c, job):
    return c.get_json(f"/v1/jobs/{job}")["progress"]["bytes"]["done"]


def cursors(c):
    """Of all mountpaths: (job, bytes read before)."""
    saved = []
    for node in c.targets():
        for number in (1, 2):
            path = os.path.join(c.node_dir(node), f"mp{number}", ".dfc", "scrub.json")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    doc = json.load(f)
                saved.append((doc["job"], doc["report"]["bytes"]))
    return saved


def test_it_goes_on_after_a_restart(c):
    in_parallel(lambda i: c.put("b", f"large/{i:03d}", b"l" * (64 << 10)), range(40))
    total = sum(len(body(n)) for n in NAMES[:-1] if n != LEFT) + 40 * (64 << 10)
    c.setting("scrub_rate", "128KiB")
    job = start(c)

    def has_saved():
        return any(of == job and done > 0 for of, done in cursors(c))

    wait_for(has_saved, "a cursor")
    c.kill("t1")
    c.start("t1")
    c.wait_node("t1", "active")
    check(state_of(c, job) in ("running", "queued"), "it waits for the target")
    request = {"action": "start", "name": "scrub"}
    c.call("POST", "/v1/jobs", request).expect(409)
    c.setting("scrub_rate", "0")
    wait_for(lambda: state_of(c, job) == "finished", "its end")
    equal(read_by(c, job), total, "what was read is counted once")
    equal(found_by(c.get_json(f"/v1/jobs/{job}")), set(), "differences")


def test_a_change_of_mountpaths_does_not_wait_for_it(c):
    job = start(c, rate="4KiB")
    wait_for(lambda: state_of(c, job) == "running", "the job")
    value = {"path": os.path.join(c.node_dir("t1"), "mp9"), "create": True}
    attach = {"action": "attach", "value": value}
    c.call("PUT", "/v1/daemon/mountpaths", attach, node="t1").expect(200)

    def is_settled():
        return c.get_json("/v1/daemon?what=mountpaths", node="t1")["settled"]

    wait_for(is_settled, "the mountpaths to be settled")
    equal(state_of(c, job), "running", "the scrub")
    c.call("DELETE", f"/v1/jobs/{job}").expect(202)
    wait_for(lambda: state_of(c, job) == "aborted", "its end")


def test_it_begins_by_itself(c):
    def scrubs():
        return [j for j in c.get_json("/v1/jobs")["jobs"] if j["kind"] == "scrub"]

    before = {j["id"] for j in scrubs()}
    c.setting("scrub_interval", "100ms")
    wait_for(lambda: any(j["id"] not in before and j["state"] == "finished" for j in scrubs()),
             "a scrub that nobody has started")
    c.setting("scrub_interval", "0")
    wait_for(lambda: all(j["state"] in ENDED for j in scrubs()), "the end of the last of them")
    equal(c.get("b", NAMES[7]).expect(200).body, body(NAMES[7]), "an object")


def test_mistakes_are_refused(c):
    for value in ({"checksums": True}, {"rate": "fast"}, []):
        request = {"action": "start", "name": "scrub", "value": value}
        c.call("POST", "/v1/jobs", request).expect(400)


def test_a_rate_of_null_is_none(c):
    request = {"action": "start", "name": "scrub", "value": {"rate": None}}

    def started():
        reply = c.call("POST", "/v1/jobs", request)
        return None if reply.status == 409 else reply.expect(202).json()["id"]

    # One that began by itself just before the interval became 0 may still run.
    job_id = wait_for(started, "the start")
    wait_for(lambda: c.get_json(f"/v1/jobs/{job_id}")["state"] == "finished", "the scrub's end")
    equal(c.get_json(f"/v1/jobs/{job_id}")["spec"], {}, "what was asked for")


if __name__ == "__main__":
    main(targets=2, args=("--target-arg=--scrub-save-interval=10ms",))
