#!/usr/bin/env python3
"""A node comes with another one's name, at another address, with old documents or none, with a
clock that is an hour off, or died just when it was let in: what becomes of each."""

import contextlib
import json
import os
import shutil
import subprocess
import threading

from lib import BUILD, WAIT_SECONDS, Failed, check, equal, in_parallel, main, wait_for

NAMES = [f"n/{i:02d}" for i in range(60)]
HOUR_AHEAD, HOUR_BEHIND = "clock.wall=ahead:1h", "clock.wall=behind:1h"


def whole(c):
    in_parallel(lambda n: equal(c.get("b", n).expect(200).body, n.encode(), n), NAMES)
    equal(c.names("b"), NAMES, "names")


def node(c, name):
    return next((n for n in c.get_json("/v1/cluster")["nodes"] if n["id"] == name), None)


def spare_port(c, number):
    return c.ports.base + c.ports.SIZE - 1 - number


def join(c):
    return c.get_json("/v1/daemon", "p1")["control_url"]


@contextlib.contextmanager
def impostor(c, program, name):
    """Another process that was given this node's name."""
    directory = os.path.join(c.dir, "impostor-" + name)
    argv = [os.path.join(BUILD, program), "--id", name, "--dir", directory, "--join", join(c),
            "--cluster-key-file", c.key_file, "--public-port", str(spare_port(c, 0)),
            "--control-port", str(spare_port(c, 1))]
    if program == "dfc-targetd":
        argv += [f"--mountpaths={directory}/mp", "--data-port", str(spare_port(c, 2))]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def says(process, words):
    said = []
    too_long = threading.Timer(WAIT_SECONDS, process.kill)
    too_long.start()
    try:
        for line in process.stderr:
            said.append(line)
            if words in line:
                return
    finally:
        too_long.cancel()
    raise Failed(f"it did not say '{words}': {said}")


def test_a_second_node_of_one_name_is_refused(c):
    before = node(c, "t1")
    with impostor(c, "dfc-targetd", "t1") as process:
        says(process, "give this node another id")
    with impostor(c, "dfc-proxyd", "p2") as process:
        says(process, "give this node another id")
    with impostor(c, "dfc-proxyd", "t1") as process:
        says(process, "is a target already")
    with impostor(c, "dfc-proxyd", "p1") as process:
        says(process, "the primary's own")
    after = node(c, "t1")
    equal((after["state"], after["public_url"]), ("active", before["public_url"]), "t1")
    equal(node(c, "p2")["state"], "active", "p2")


def test_nor_where_there_are_objects(c):
    c.create("b")
    in_parallel(lambda n: c.put("b", n, n.encode()), NAMES)
    with impostor(c, "dfc-targetd", "t1") as process:
        says(process, "comes with empty mountpaths")
        whole(c)


def test_the_name_of_a_dead_target_is_not_to_be_had_either(c):
    c.kill("t1")
    c.wait_node("t1", "unreachable")
    with impostor(c, "dfc-targetd", "t1") as process:
        says(process, "comes with empty mountpaths")
    c.get("b", next(n for n in NAMES if owner_is(c, n, "t1"))).expect(503, "node_unreachable")
    c.start("t1")
    c.wait_node("t1", "active")
    whole(c)


def owner_is(c, name, target):
    reply = c.get("b", name, follow=False)
    return reply.status == 503 and f"'{target}'" in reply.json()["message"]


def moved_to(c, name, first):
    ports = dict(zip(("public", "control", "data"), (spare_port(c, first + i) for i in range(3))))
    return ports, [f"--arg=--{net}-port={port}" for net, port in ports.items()
                   if net != "data" or name.startswith("t")]


def await_at(c, name, url):
    """Only when it has been silent for a while, else it could be a second one of its name."""
    wait_for(lambda: (node(c, name)["public_url"], node(c, name)["state"]) == (url, "active"),
             f"{name} is known to be at {url}")
    c.nodes[name]["url"] = url


def test_a_node_comes_back_at_another_address(c):
    homes = {name: c.url(name) for name in ("t1", "p2")}
    for name, first in (("t1", 10), ("p2", 13)):
        _, args = moved_to(c, name, first)
        c.kill(name)
        c.start(name, *args)
    for name, first in (("t1", 10), ("p2", 13)):
        ports, _ = moved_to(c, name, first)
        await_at(c, name, f"http://127.0.0.1:{ports['public']}")
    whole(c)
    wait_for(lambda: c.get("b", NAMES[0], node="p2").status == 200, "GET by p2")
    for name in homes:  # and back to where the script has them
        c.kill(name)
        c.start(name)
    for name, home in homes.items():
        await_at(c, name, home)
    whole(c)


def taken_over(c, name, dead, url):
    """`name` serves where `dead` did: never are both active there, and no list lacks names."""
    one, other = node(c, name), node(c, dead)
    check(one["public_url"] != other["public_url"] or other["state"] == "unreachable",
          f"two nodes at one address: {one}, {other}")
    c.call("GET", "/v1/objects/b").expect(503, "node_unreachable")
    return (one["public_url"], one["state"]) == (url, "active")


def swap_ports(c, one, other):
    """Each is where the other was, from its next start on."""
    path = os.path.join(c.dir, "cluster.json")
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    a, b = (next(n for n in document["nodes"] if n["name"] == name) for name in (one, other))
    a["port"], b["port"] = b["port"], a["port"]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(document, f)
    c.nodes = {n["name"]: n for n in c.status()}


def test_a_target_comes_back_at_the_address_of_a_dead_one(c):
    c.kill("t1")
    c.wait_node("t1", "unreachable")
    c.kill("t2")
    swap_ports(c, "t1", "t2")
    c.run("start", "t1", "--ready-seconds", 1, ok=False)
    c.ended_by_test.discard("t1")
    wait_for(lambda: taken_over(c, "t1", "t2", c.url("t1")), "t1 is where t2 was")
    check("belongs to node 't2'" in c.log("t1"), "it was told to wait")
    c.start("t2")
    await_at(c, "t2", c.url("t2"))
    whole(c)


def documents(c, target):
    top = c.node_dir(target)
    return [os.path.join(top, mp, ".dfc", "docs", "state.json") for mp in sorted(os.listdir(top))
            if mp.startswith("mp")]


def version_of(c, target):
    return c.get_json("/v1/daemon", target)["version"]


def test_a_target_without_its_documents_gets_them(c):
    c.stop("t1")
    for path in documents(c, "t1"):
        os.unlink(path)
    c.start("t1")
    c.wait_node("t1", "active")
    whole(c)
    for path in documents(c, "t1"):
        check(os.path.exists(path), f"{path} is there again")


def test_a_target_with_old_documents_gets_the_new_ones(c):
    c.create("gone")
    c.put("gone", "o", b"old")
    c.stop("t1")
    for path in documents(c, "t1"):
        shutil.copy(path, path + ".old")
    c.start("t1")
    c.wait_node("t1", "active")
    c.destroy("gone")
    c.create("gone")
    c.stop("t1")
    for path in documents(c, "t1"):
        os.rename(path + ".old", path)
    c.start("t1")
    c.wait_node("t1", "active")
    wait_for(lambda: version_of(c, "t1") >= c.get_json("/v1/cluster")["version"], "t1 follows")
    c.get("gone", "o").expect(404, "object_not_found")
    equal(c.names("gone"), [], "names of the bucket that was made anew")
    c.destroy("gone")
    whole(c)


def test_a_target_with_documents_of_the_future_is_refused_with_a_way_out(c):
    """As after a primary was put back to an earlier time by hand."""
    c.kill("t1")  # the map has it active for a while yet
    for path in documents(c, "t1"):
        shutil.copy(path, path + ".good")
        with open(path, encoding="utf-8") as f:
            state = json.load(f)
        state["version"] += 1000
        with open(path, "w", encoding="utf-8") as f:
            json.dump(state, f)
    c.start("t1")
    wait_for(lambda: "stale_map" in c.log("t1"), "its log says that it knows more")
    c.wait_node("t1", "unreachable")
    copies = c.get_json("/v1/cluster/documents")["copies"]
    check("t1" in [k["node"] for k in copies], f"it can be recovered from: {copies}")
    c.stop("t1")
    for path in documents(c, "t1"):
        os.rename(path + ".good", path)
    c.start("t1")
    c.wait_node("t1", "active")
    whole(c)


@contextlib.contextmanager
def clocks(c, **wrong):
    """These nodes are restarted with clocks that are wrong."""
    for name, fault in wrong.items():
        c.stop(name)
        c.start(name, f"--arg=--faults={fault}")
        wait_for(lambda n=name: node(c, n)["state"] == "active", f"{name} is active")
    yield
    for name in wrong:
        c.stop(name)
        c.start(name)
        wait_for(lambda n=name: node(c, n)["state"] == "active", f"{name} is active")


def overwrite_all(c, text):
    in_parallel(lambda n: c.put("b", n, f"{n} {text}".encode()), NAMES)


def all_have(c, text):
    in_parallel(lambda n: equal(c.get("b", n).expect(200).body, f"{n} {text}".encode(), n), NAMES)
    equal(c.names("b"), NAMES, "names")


def rebalanced(c, action, name):
    c.call("PUT", "/v1/cluster", {"action": action, "name": name}).expect(200)
    wait_for(lambda: not c.get_json("/v1/cluster?what=smap").get("earlier"), "all has moved")


def test_clocks_that_are_an_hour_off_change_nothing(c):
    """Versions count, and not times: the later write wins wherever it was made, also over moves."""
    for name, value in (("rebalance_delay", "100ms"), ("rebalance_keep", "2s")):
        c.setting(name, value)
    with clocks(c, p1=HOUR_BEHIND, t1=HOUR_AHEAD, t2=HOUR_BEHIND):
        overwrite_all(c, "ahead")
        c.create("clock")
        rebalanced(c, "startmaintenance", "t1")  # what t1 wrote by its clock goes to the others
        all_have(c, "ahead")
        overwrite_all(c, "behind")
        c.object("DELETE", "b", NAMES[0]).expect(204)
        rebalanced(c, "stopmaintenance", "t1")
        c.get("b", NAMES[0]).expect(404, "object_not_found")
        c.put("b", NAMES[0], f"{NAMES[0]} behind".encode())
        all_have(c, "behind")
        job = c.call("POST", "/v1/buckets/b", {"action": "copy", "value": {
            "prefix": "n/", "to": "clock"}}).expect(202).json()["id"]
        wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] == "finished", "a job")
        equal(c.names("clock"), NAMES, "copies")
    all_have(c, "behind")  # the clocks are right again: t1's went back, t2's ahead
    overwrite_all(c, "in the end")
    all_have(c, "in the end")
    equal(c.get_json("/v1/cluster")["healthy"], True, "healthy")


def test_who_died_when_it_was_let_in_comes_back(c):
    """With a bucket there, a target that the map has and that has forgotten everything is refused;
    not one that has never got as far as to know anything."""
    os.environ["DFC_FAULTS"] = "member.let_in=kill"  # for this run alone
    try:
        failed = c.run("add-target", ok=False)
    finally:
        del os.environ["DFC_FAULTS"]
    check(failed.returncode != 0, "it was killed on its way")
    c.nodes = {n["name"]: n for n in c.status()}
    c.ended_by_test.add("t3")
    check(node(c, "t3"), "it was let in")
    c.start("t3")
    c.wait_node("t3", "active")
    all_have(c, "in the end")
    c.stop("t3")
    for mountpath in [d for d in os.listdir(c.node_dir("t3")) if d.startswith("mp")]:
        shutil.rmtree(os.path.join(c.node_dir("t3"), mountpath))
    for _ in range(2):  # empty mountpaths are refused as ever, however often it is tried
        refused = c.run("start", "t3", "--ready-seconds", 3, ok=False)
        check(refused.returncode != 0, "a target without its disks is ready")
        wait_for(lambda: "comes with empty mountpaths" in c.log("t3"), "its log says what is wrong")
        if c.pid("t3"):
            c.kill("t3")
    c.start("t3", "--arg=--mountpath-lost-ok=true")
    c.wait_node("t3", "active")


if __name__ == "__main__":
    main(proxies=2, targets=2, metastore="embedded")
