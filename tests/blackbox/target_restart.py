#!/usr/bin/env python3
"""A target dies and comes back: 503 naming it, never 404; then everything is there again."""

import contextlib
import os
import shutil
import socket
import threading

from lib import check, equal, in_parallel, main, wait_for

NAMES = [f"n/{i:03d}" for i in range(200)]
VICTIM = "t2"


def contents(name):
    return name.encode() * 100


def owned_by(c, victim):
    return [name for name in NAMES if c.owner("b", name) == victim]


def test_before(c):
    c.create("b")
    in_parallel(lambda name: c.put("b", name, contents(name)), NAMES)
    check(0 < len(owned_by(c, VICTIM)) < len(NAMES), "the victim owns some of the objects")


def unreachable(c, name):
    """True once the proxy answers by a map that has the victim unreachable."""
    try:
        reply = c.get("b", name)
    except ConnectionError:
        return False  # redirected to where nobody listens: the map does not know yet
    check(reply.status == 503, f"an object of a dead node: {reply!r}")
    return reply.json()["code"] == "node_unreachable"


def test_its_objects_are_unavailable_not_missing(c):
    mine = owned_by(c, VICTIM)
    c.kill(VICTIM, "-9")
    wait_for(lambda: unreachable(c, mine[0]), "503 for an object of the dead node")
    for name in mine:
        reply = c.get("b", name).expect(503, "node_unreachable", VICTIM)
        check(int(reply.headers["Retry-After"]) > 0, "no Retry-After")
        c.object("PUT", "b", name, b"new").expect(503, "node_unreachable", VICTIM)
        c.object("DELETE", "b", name).expect(503, "node_unreachable", VICTIM)
        c.get("b", name, {"Dfc-Redirect": "never"}).expect(503, "node_unreachable", VICTIM)
    equal(c.state(VICTIM), "dead", "its state by the script")
    nodes = {n["id"]: n for n in c.get_json("/v1/cluster")["nodes"]}
    equal(nodes[VICTIM]["state"], "unreachable", "its state in the map")
    equal(c.get_json("/v1/cluster")["healthy"], False, "healthy")


def test_the_others_objects_are_served(c):
    for name in NAMES:
        if c.call("GET", f"/v1/objects/b/{name}", follow=False).status == 307:
            equal(c.get("b", name).expect(200).body, contents(name), name)
    served = sum(c.get("b", name).status == 200 for name in NAMES)
    check(served > len(NAMES) / 2, f"only {served} objects are served")


def test_lists_do_not_fall_short_silently(c):
    c.call("GET", "/v1/objects/b").expect(503, "node_unreachable", VICTIM)
    page = c.get_json("/v1/objects/b?partial=true")
    equal(page["incomplete"], True, "incomplete")
    check(0 < len(page["entries"]) < len(NAMES), "what the others have is listed")


def test_nothing_is_lost(c):
    c.start(VICTIM)
    c.wait_node(VICTIM, "active")
    for name in NAMES:
        equal(c.get("b", name).expect(200).body, contents(name), name)
    equal(c.names("b"), NAMES, "names")
    equal(c.get_json("/v1/cluster")["healthy"], True, "healthy")


def test_what_is_written_up_to_the_kill_is_there_or_was_not_acknowledged(c):
    """Writes run while the node is killed; each 200 must hold."""
    acknowledged = []

    def write(i):
        name = f"w/{i:04d}"
        try:
            reply = c.object("PUT", "b", name, contents(name))
        except OSError:
            return
        if reply.status == 200:
            acknowledged.append(name)

    def kill_in_between(i):
        if i == 150:
            c.kill(VICTIM, "-9")
        else:
            write(i)

    in_parallel(kill_in_between, range(300))
    c.start(VICTIM)
    c.wait_node(VICTIM, "active")
    check(acknowledged, "nothing was acknowledged")
    for name in acknowledged:
        equal(c.get("b", name).expect(200).body, contents(name), name)
    listed = c.names("b", prefix="w/")
    equal(sorted(set(acknowledged) - set(listed)), [], "acknowledged names that are not listed")
    for name in listed:
        c.get("b", name).expect(200)


def test_all_targets_at_once(c):
    for target in c.targets():
        c.kill(target, "-9")
    for target in c.targets():
        c.start(target)
    for target in c.targets():
        c.wait_node(target, "active")
    equal(c.names("b", prefix="n/"), NAMES, "names")
    in_parallel(lambda n: equal(c.get("b", n).expect(200).body, contents(n), n), NAMES)


def test_a_hung_target_is_not_waited_for_forever(c):
    mine = owned_by(c, VICTIM)
    c.kill(VICTIM, "-s", "STOP")
    try:
        wait_for(lambda: c.get("b", mine[0], follow=False).status == 503, "503 for a hung node")
    finally:
        c.kill(VICTIM, "-s", "CONT")
    c.ended_by_test.discard(VICTIM)
    c.wait_node(VICTIM, "active")
    equal(c.get("b", mine[0]).expect(200).body, contents(mine[0]), "after it went on")


def test_empty_mountpaths_are_not_taken_for_its_disks(c):
    """As after a boot that has not mounted them: its objects are unavailable, not missing."""
    mine = owned_by(c, VICTIM)
    disks = sorted(d for d in os.listdir(c.node_dir(VICTIM)) if d.startswith("mp"))
    c.stop(VICTIM)
    for disk in disks:
        path = os.path.join(c.node_dir(VICTIM), disk)
        os.rename(path, path + "-elsewhere")
    failed = c.run("start", VICTIM, "--ready-seconds", 5, ok=False)
    check(failed.returncode != 0, "a target without its disks is ready")
    check("see that its disks are mounted" in c.log(VICTIM), "its log says what is wrong")
    c.wait_node(VICTIM, "unreachable")
    c.get("b", mine[0]).expect(503, "node_unreachable", VICTIM)
    if c.state(VICTIM) != "dead":
        c.kill(VICTIM)
    for disk in disks:
        path = os.path.join(c.node_dir(VICTIM), disk)
        shutil.rmtree(path)
        os.rename(path + "-elsewhere", path)
    c.start(VICTIM)
    c.wait_node(VICTIM, "active")
    for name in mine:
        equal(c.get("b", name).expect(200).body, contents(name), name)


def ask_all_the_time(port, over):
    """Requests of a sender with a newer state, from the moment on at which somebody listens."""
    request = (b"GET /v1/objects/b/x?dfcb=1&dfcv=9999999999999.1 HTTP/1.1\r\nHost: localhost\r\n"
               b"Connection: close\r\n\r\n")
    while not over.is_set():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(request)
            s.recv(4096)


def test_requests_do_not_wait_until_it_is_up(c):
    """They come as soon as it listens, and may make it ask for a newer state at once."""
    port = c.address(VICTIM)[1]
    for _ in range(8):
        c.stop(VICTIM)
        over = threading.Event()
        askers = [threading.Thread(target=ask_all_the_time, args=(port, over), daemon=True)
                  for _ in range(8)]
        for asker in askers:
            asker.start()
        try:
            c.start(VICTIM)
        finally:
            over.set()
            for asker in askers:
                asker.join()
    c.wait_node(VICTIM, "active")


def test_disks_that_are_lost_for_good(c):
    mine = owned_by(c, VICTIM)
    c.stop(VICTIM)
    for entry in os.listdir(c.node_dir(VICTIM)):
        if entry.startswith("mp"):
            shutil.rmtree(os.path.join(c.node_dir(VICTIM), entry))
    c.start(VICTIM, "--arg=--mountpath-lost-ok=true")
    c.wait_node(VICTIM, "active")
    for name in mine:
        c.get("b", name).expect(404, "object_not_found")
    c.restart(VICTIM)


if __name__ == "__main__":
    main(targets=3)
