#!/usr/bin/env python3
"""A repair goes by danger and by a rate: what is left once only comes first, whatever its name; at
a rate of a byte a second each target has one object brought, and goes on when the rate is raised.
One that nobody can bring holds up no other.  However long the names are, they are asked about."""

import os
import random
import shutil

from copies import create, holders, put, wait_repaired
from copies_damage import named
from lib import check, equal, in_parallel, main, wait_for

PATIENCE = 120
SIZE = 20000
EACH = 5


def body(name):
    return random.Random(name).randbytes(SIZE)


def names_of(c, prefix, target):
    """So many names for which this target acts."""
    found = []
    for i in range(1000):
        name = f"{prefix}/{i}"
        if len(found) < EACH and c.owner("b", name) == target:
            found.append(name)
    return found


def come_back_empty(c, target):
    c.kill(target)
    for mountpath in [d for d in os.listdir(c.node_dir(target)) if d.startswith("mp")]:
        shutil.rmtree(os.path.join(c.node_dir(target), mountpath))
    c.start(target, "--arg=--mountpath-lost-ok=true")
    c.wait_node(target, "active")


def are_at(c, target, names):
    return [n for n in names if any(named(path, n) for path in c.object_files(target))]


def test_names_that_grow_in_json(c):
    """520 names of 1004 bytes, each byte of which takes six: more than one question holds."""
    create(c, "long", 3)
    names = [f"{i:04d}" + "\x01" * 1000 for i in range(520)]
    c.kill("t3")
    put(c, "long", names[0], b"0")
    in_parallel(lambda name: put(c, "long", name, name[:4].encode()), names)
    c.start("t3")
    c.wait_node("t3", "active")
    wait_repaired(c)
    state = c.get_json("/v1/cluster?what=state")
    number = next(b["id"] for b in state["bmd"]["buckets"] if b["name"] == "long")
    url = c.get_json(
        "/v1/daemon",
        "t3")["data_url"] + f"/v1/list/{number}?dfcv={state['term']}.{state['version']}"
    there = c.member.request("GET", url).expect(200).json()["entries"]
    equal([e["name"] for e in there], names, "names at t3")
    c.destroy("long")


def test_what_is_left_once_comes_first(c):
    c.setting("repair", False)
    create(c, "b", 3)
    many, few = names_of(c, "a", "t1"), names_of(c, "z", "t1")
    for name in many + few:
        put(c, "b", name, body(name))
    come_back_empty(c, "t3")
    for path in c.object_files("t2"):
        if any(named(path, name) for name in few):
            os.unlink(path)
    c.setting("repair_rate", 1)
    done = c.dfcctl("job", "start", "repair", "-o", "json")
    equal(done.returncode, 0, f"the end of {done.args}: {done.stderr}")
    wait_for(lambda: are_at(c, "t3", few), "the first of what is left once", PATIENCE)
    check(len(are_at(c, "t3", many)) <= 1, "others came before it")  # t2, which has none of these
    check(len(are_at(c, "t3", few)) <= 1, "faster than the rate")


def test_the_rate_changes_while_it_runs(c):
    c.setting("repair_rate", 0)
    job = c.get_json("/v1/jobs?kind=repair")["jobs"][-1]["id"]
    c.wait_job(job, "finished", seconds=PATIENCE)
    for i in range(EACH):
        for name in (n for n in c.names("b") if n.endswith(f"/{i}")):
            equal(len(set(holders(c, body(name)))), 3, f"copies of {name}")


def test_one_that_resists_holds_up_nobody(c):
    create(c, "two", 2)
    stored = [f"r/{i}" for i in range(24)]
    for name in stored:
        put(c, "two", name, random.Random("r").randbytes(200000))
    names = sorted(set(are_at(c, "t1", stored)) & set(are_at(c, "t3", stored)))
    check(len(names) > 1, f"names of t1 and t3: {names}")
    come_back_empty(c, "t3")
    for path in c.object_files("t1"):
        if named(path, names[0]):
            os.truncate(path, 1)  # nobody has it whole
    c.setting("repair_rate", 1 << 20)  # one of these in each group
    done = c.dfcctl("job", "start", "repair", "-o", "json")
    equal(done.returncode, 0, f"the end of {done.args}: {done.stderr}")
    wait_for(lambda: are_at(c, "t3", names[1:]) == names[1:], "the others", PATIENCE)
    job = c.get_json("/v1/jobs?kind=repair")["jobs"][-1]
    equal(job["progress"]["objects"]["failed"], 0, "what was given up before")


if __name__ == "__main__":
    main(targets=3, mountpaths=1)
