#!/usr/bin/env python3
"""What goes on in a cluster: events with cursors and waits, the rates of the targets, the mountpaths
of a target as a proxy shows them, and dfcctl cluster events and top."""

import json
import os
import subprocess
import threading

from lib import BUILD, check, equal, main, wait_for

ARGS = ("--proxy-arg=--stats-interval=3s", "--proxy-arg=--stats-keep=5m", "--proxy-arg=--events-max=50",
        "--proxy-arg=--events-waits-max=2")
SAMPLES = 100


def events(c, query="", node="p1"):
    return c.call("GET", "/v1/events" + query, node=node).expect(200).json()


def kinds(doc):
    return [(e["kind"], e.get("node") or e.get("bucket") or e.get("job")) for e in doc["events"]]


def wait_kind(c, after, kind, about):
    """The event; those before it do not matter."""
    found = []

    def there():
        for e in events(c, f"?after={after}&limit=1000")["events"]:
            if e["kind"] == kind and about in (e.get("node"), e.get("bucket"), e.get("job")):
                found.append(e)
        return found
    wait_for(there, f"the event {kind} of {about}")
    return found[0]


def test_a_young_cluster_tells_how_it_began(c):
    wait_for(lambda: ("node_joined", "t2") in kinds(events(c)), "t2 joined")
    doc = events(c)
    equal(kinds(doc)[:2], [("primary", "p1"), ("node_joined", "p1")], "the first events")
    check(("node_joined", "t1") in kinds(doc), doc)
    equal((doc["anew"], doc["missed"], doc["proxy"]), (False, 0, "p1"), "the page")
    check(all(e["text"] and e["at_ms"] > 0 and e["level"] in ("info", "warning", "error")
              for e in doc["events"]), doc)


def test_a_cursor_gives_what_is_later(c):
    after = events(c)["next"]
    equal(kinds(events(c, f"?after={after}")), [], "nothing yet")
    c.create("b")
    c.call("PUT", "/v1/buckets/b", {"action": "setprops", "value": {"verify_on_read": True}}).expect(200)
    c.create("e")
    page = events(c, f"?after={after}&limit=1")
    equal(kinds(page), [("bucket_created", "b")], "the first page")
    page = events(c, f"?after={page['next']}")
    equal(kinds(page), [("bucket_changed", "b"), ("bucket_created", "e")], "the second page")
    c.destroy("e")
    equal(kinds(events(c, f"?after={page['next']}")), [("bucket_destroyed", "e")], "the third page")


def test_wrong_questions_are_refused(c):
    for query in ("?after=7", "?after=x.y", "?limit=0", "?limit=1001", "?limit=x", "?wait=soon", "?wait=-1s"):
        c.call("GET", "/v1/events" + query).expect(400, "invalid_argument")
    for query in ("?samples=0", "?samples=x"):
        c.call("GET", "/v1/cluster/stats" + query).expect(400, "invalid_argument")


def test_another_run_is_told_apart(c):
    doc = events(c, "?after=another-run.3")
    equal((doc["anew"], doc["missed"]), (True, 0), "a cursor of another run")
    check(doc["events"], "all that it has")


def test_a_call_waits_for_the_next_event(c):
    after = events(c)["next"]
    replies = []
    waits = [threading.Thread(target=lambda: replies.append(events(c, f"?after={after}&wait=1h")))
             for _ in range(2)]
    for w in waits:
        w.start()
    c.create("awaited")
    for w in waits:
        w.join()
    equal(len(replies), 2, "replies")
    for doc in replies:  # nothing: the machine is so loaded that the wait has ended before
        check(kinds(doc) in ([("bucket_created", "awaited")], []), doc)
    equal(kinds(events(c, f"?after={after}&wait=1h")), [("bucket_created", "awaited")], "it is there already")


def test_jobs_begin_and_end(c):
    after = events(c)["next"]
    done = c.dfcctl("job", "start", "cleanup", "--wait")
    equal(done.returncode, 0, done.stderr)
    job = next(j["id"] for j in c.get_json("/v1/jobs")["jobs"] if j["kind"] == "cleanup")
    told = [e["kind"] for e in events(c, f"?after={after}&limit=1000")["events"] if e.get("job") == job]
    equal(told, ["job_created", "job_finished"], "its events")


def test_a_target_that_is_killed_and_comes_back(c):
    after = events(c)["next"]
    c.kill("t2")
    equal(wait_kind(c, after, "node_unreachable", "t2")["level"], "error", "its level")
    c.start("t2")
    wait_kind(c, after, "node_active", "t2")
    wait_kind(c, after, "node_restarted", "t2")


def test_a_disk_that_is_disabled(c):
    after = events(c)["next"]
    paths = c.call("GET", "/v1/nodes/t1/mountpaths").expect(200).json()["mountpaths"]
    equal([m["state"] for m in paths], ["enabled", "enabled"], "mountpaths of t1")
    check(all("total_bytes" in m and "load" in m for m in paths), paths)
    done = c.dfcctl("storage", "mountpath", "disable", "t1", paths[0]["path"])
    equal(done.returncode, 0, done.stderr)
    wait_kind(c, after, "disk_missing", "t1")
    now = c.call("GET", "/v1/nodes/t1/mountpaths").expect(200).json()["mountpaths"]
    equal(sorted(m["state"] for m in now), ["disabled", "enabled"], "mountpaths of t1")
    done = c.dfcctl("storage", "mountpath", "enable", "t1", paths[0]["path"])
    equal(done.returncode, 0, done.stderr)
    wait_kind(c, after, "disk_back", "t1")


def test_mountpaths_of_no_target(c):
    c.call("GET", "/v1/nodes/t9/mountpaths").expect(404, "node_not_found")
    c.call("GET", "/v1/nodes/p1/mountpaths").expect(400, "invalid_argument")


def test_rates_follow_the_work(c):
    def stats(query="?nodes=true"):
        return c.call("GET", "/v1/cluster/stats" + query).expect(200).json()
    for i in range(30):
        c.put("b", f"o{i}", b"x" * 1000)
        c.get("b", f"o{i}").expect(200)
    total = {}

    def counted():
        doc = stats()
        for name in ("reads", "writes", "read_bytes", "write_bytes"):
            total[name] = max(total.get(name, 0), sum(v or 0 for v in doc["cluster"][name]))
        return total["writes"] >= 30 and total["reads"] >= 30
    wait_for(counted, "samples with all of it")
    equal((total["writes"], total["write_bytes"]), (30, 30000), "writes")
    equal((total["reads"], total["read_bytes"]), (30, 30000), "reads")
    doc = stats()
    equal((doc["interval_ms"], doc["samples"], doc["proxy"]), (3000, SAMPLES, "p1"), "the shape")
    equal(sorted(doc["nodes"]), ["t1", "t2"], "nodes")
    check(all(len(series) == SAMPLES for series in doc["cluster"].values()), doc["cluster"])
    one = stats("?samples=1")
    equal((one["samples"], "nodes" in one), (1, False), "one sample of the cluster alone")
    check(max(v or 0 for v in doc["nodes"]["t1"]["memory_bytes"]) > 1 << 20, doc["nodes"]["t1"])


def test_dfcctl_shows_both(c):
    done = c.dfcctl("cluster", "events", "--limit", "3")
    equal(len(done.stdout.splitlines()), 3, done.stdout)
    doc = json.loads(c.dfcctl("cluster", "events", "-o", "json").stdout)
    check(0 < len(doc["events"]) <= 50 and doc["next"], doc)
    equal(c.dfcctl("cluster", "events", "--limit", "0").returncode, 2, "--limit 0")
    top = c.dfcctl("cluster", "top", "--count", "1")
    equal(top.returncode, 0, top.stderr)
    for word in ("READS/S", "t1", "t2", "all"):
        check(word in top.stdout, top.stdout)
    check("cluster" in json.loads(c.dfcctl("cluster", "top", "--count", "1", "-o", "json").stdout), "as JSON")


def test_dfcctl_follows_over_a_restart_of_the_primary(c):
    command = [os.path.join(BUILD, "dfcctl"), "cluster", "events", "--follow", "--limit", "1"]
    with subprocess.Popen(command, env=c.dfcctl_environment(), stdout=subprocess.PIPE, text=True) as follower:
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(iter(follower.stdout.readline, "")))
        reader.start()
        try:
            wait_for(lambda: lines, "the last event")
            c.create("followed")
            wait_for(lambda: any("'followed' was created" in line for line in lines), "a new bucket")
            c.stop("p1")
            c.start("p1")
            c.create("later")
            wait_for(lambda: any("'later' was created" in line for line in lines), "events of the next run")
        finally:
            follower.terminate()
            follower.wait()
            reader.join()
    equal(len([line for line in lines if "'followed' was created" in line]), 1, "each event once")


def test_a_stop_ends_waits(c):
    after = events(c)["next"]
    replies = []
    waiter = threading.Thread(target=lambda: replies.append(c.call("GET", f"/v1/events?after={after}&wait=1h").status))
    waiter.start()
    c.stop("p1")
    waiter.join()
    c.start("p1")
    check(replies, "the call ended")


if __name__ == "__main__":
    main(targets=2, mountpaths=2, args=ARGS)
