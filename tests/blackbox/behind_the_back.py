#!/usr/bin/env python3
"""Somebody removes files of a target that runs, gives two daemons one directory, puts a mountpath
inside another: it is said, and nothing else is touched."""

import os
import re
import shutil
import subprocess

from lib import BUILD, WAIT_SECONDS, check, equal, in_parallel, main, wait_for

T = "t1"  # the only target
NAMES = [f"n/{i:02d}" for i in range(40)]


def file_of(c, name):
    return next(path for path in c.object_files(T)
                if f"{name}\0".encode() in os.getxattr(path, "user.dfc"))


def path(c, number):
    return os.path.join(c.node_dir(T), f"mp{number}")


def errors(c):
    """Of all mountpaths, as /metrics has them."""
    text = c.call("GET", "/metrics", node=T).body.decode()
    return sum(int(n) for n in re.findall(r"^dfc_mountpath_errors_total\S* (\d+)", text, re.M))


def state_of(c, number):
    mountpaths = c.get_json("/v1/daemon?what=mountpaths", node=T)["mountpaths"]
    return next(m for m in mountpaths if m["path"] == path(c, number))


def test_before(c):
    c.create("b")
    in_parallel(lambda name: c.put("b", name, name.encode() * 50), NAMES)


def test_a_removed_file_is_no_404(c):
    before = errors(c)
    os.unlink(file_of(c, NAMES[0]))
    c.get("b", NAMES[0]).expect(500, "corrupt", "removed behind the target's back")
    c.object("HEAD", "b", NAMES[0]).expect(500)
    check(errors(c) >= before + 2, "the mountpath's errors")
    check(NAMES[0] in c.names("b"), "it is listed until the index is rebuilt")
    c.get("b", "never").expect(404, "object_not_found")
    equal(c.get("b", NAMES[1]).expect(200).body, NAMES[1].encode() * 50, "another one")
    check(f"name={NAMES[0]}" in c.log(T), "the log does not name it")
    equal([state_of(c, i)["state"] for i in (1, 2)], ["enabled"] * 2, "the mountpaths")


def test_it_can_be_put_and_deleted(c):
    tag = c.put("b", NAMES[0], b"again").headers["ETag"]
    os.unlink(file_of(c, NAMES[0]))
    c.object("DELETE", "b", NAMES[0]).expect(204)
    c.get("b", NAMES[0]).expect(404, "object_not_found")
    c.object("DELETE", "b", NAMES[0]).expect(404)
    check(NAMES[0] not in c.names("b"), "it is not listed any more")
    check(c.put("b", NAMES[0], b"again").headers["ETag"] != tag, "an entity tag comes again")


def test_jobs_meet_what_is_lost_and_damaged(c):
    os.unlink(file_of(c, NAMES[2]))
    os.setxattr(file_of(c, NAMES[3]), "user.dfc", b"\x01nonsense")
    c.create("other")
    copy = {"action": "copy", "value": {"list": [NAMES[1], NAMES[2]], "to": "other"}}
    job = c.call("POST", "/v1/buckets/b", copy).expect(202).json()["id"]
    ended = wait_for(lambda: c.get_json(f"/v1/jobs/{job}"), "the copy")
    wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] in ("failed", "finished"), "its end")
    ended = c.get_json(f"/v1/jobs/{job}")
    equal((ended["state"], ended["errors"][0]["code"]), ("failed", "corrupt"), "a lost original")
    equal(c.names("other"), [NAMES[1]], "what could be copied")
    delete = {"action": "delete", "value": {"list": [NAMES[2], NAMES[3]]}}
    job = c.call("POST", "/v1/buckets/b", delete).expect(202).json()["id"]
    wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] == "finished", "the delete")
    for name in (NAMES[2], NAMES[3]):
        c.get("b", name).expect(404, "object_not_found")


def test_a_sort_says_that_its_shard_is_lost(c):
    c.put("b", "shard-0.tar", b"\0" * 10240)
    os.unlink(file_of(c, "shard-0.tar"))
    job = c.sort({"input_bck": {"name": "b"}, "input_format": {"objnames": ["shard-0.tar"]},
                  "output_format": "out-{0..0}.tar", "output_shard_size": "1MB",
                  "input_extension": ".tar"})
    ended = c.wait_job(job)
    equal((ended["state"], ended["errors"][0]["code"]), ("failed", "corrupt"), "the sort")
    c.object("DELETE", "b", "shard-0.tar").expect(204)


def test_mountpaths_inside_one_another(c):
    for inside in (os.path.join(path(c, 1), "sub"), os.path.join(path(c, 1), ".dfc")):
        body = {"action": "attach", "value": {"path": inside, "create": True}}
        c.call("PUT", "/v1/daemon/mountpaths", body, node=T).expect(409, "mountpath_state",
                                                                    "inside")
    body = {"action": "attach", "value": c.node_dir(T)}  # the directory of all of them
    c.call("PUT", "/v1/daemon/mountpaths", body, node=T).expect(400, None, "--mountpath-roots")
    c.restart(T)
    equal(c.get("b", NAMES[1]).expect(200).body, NAMES[1].encode() * 50, "an object")


def refused(program, *args):
    """What a daemon says that ends by itself."""
    done = subprocess.run([os.path.join(BUILD, program), *args], capture_output=True, text=True,
                          check=False, timeout=WAIT_SECONDS)
    equal(done.returncode, 1, f"exit code of {program}")
    return done.stderr


def test_two_daemons_do_not_share_a_directory(c):
    control = next(n["control_url"] for n in c.get_json("/v1/cluster")["nodes"] if n["id"] == "p1")
    said = refused("dfc-targetd", "--id=t9", f"--dir={c.node_dir(T)}",
                   f"--mountpaths={os.path.join(c.dir, 'new')}", f"--join={control}")
    check("is locked" in said and str(c.pid(T)) in said, said)
    check(not os.path.exists(os.path.join(c.dir, "new")), "it has made a mountpath")
    for more in ([], [f"--join={control}"]):
        said = refused("dfc-proxyd", "--id=p9", f"--dir={c.node_dir('p1')}", *more)
        check("is locked" in said and str(c.pid("p1")) in said, said)
    c.get_json("/v1/health", node=T)


def test_a_mountpath_that_was_removed_is_taken_out(c):
    names = {name for name in NAMES[4:]
             if file_of(c, name).startswith(os.path.join(path(c, 2), ""))}
    check(names, "no object lies there")
    shutil.rmtree(path(c, 2))

    def is_out():
        for name in sorted(names):  # somebody has to meet it
            reply = c.get("b", name)
            check(reply.status in (500, 503), f"{name}: {reply!r}")
        return state_of(c, 2)["state"] == "disabled"

    wait_for(is_out, "the mountpath to be taken out")
    for name in NAMES[4:]:
        if name in names:
            c.get("b", name).expect(503, "mountpath_disabled")
        else:
            equal(c.get("b", name).expect(200).body, name.encode() * 50, name)
    check("test" in state_of(c, 2)["why"], "it does not say why")


if __name__ == "__main__":
    main(targets=1)
