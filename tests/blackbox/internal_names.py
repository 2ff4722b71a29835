#!/usr/bin/env python3
"""Internal names, which begin with .dfc-: lists and jobs over a prefix leave them out, unless the
prefix begins so, too, or the request wants them.  All else has them."""

import json

from lib import check, equal, in_parallel, main, wait_for

PLAIN = ["-", ".", ".dfc", ".dfc.", "a", "a/.dfc-b", "z"]
INTERNAL = [".dfc-", ".dfc-packs/0", *(f".dfc-unique/{i:02d}" for i in range(40))]
ALL = sorted(PLAIN + INTERNAL, key=str.encode)


def fill(c, bucket, **props):
    c.create(bucket, **props)
    in_parallel(lambda name: c.put(bucket, name, name.encode()), ALL)


def everything(c, bucket):
    return c.names(bucket, internal="true")


def run(c, bucket, action, value):
    reply = c.call("POST", f"/v1/buckets/{bucket}", {"action": action, "value": value})
    job = reply.expect(202).json()["id"]
    c.wait_job(job, "finished")


def test_lists(c):
    fill(c, "b", copies=2)
    for limit in (1, 3, 1000):
        equal(c.names("b", limit=limit), PLAIN, f"names, {limit} at a time")
        equal(c.names("b", limit=limit, internal="true"), ALL, f"all names, {limit} at a time")
    equal(c.names("b", prefix=".d"), [".dfc", ".dfc."], "names with a shorter prefix")
    equal(c.names("b", prefix=".dfc-u", limit=7), INTERNAL[2:], "names with an internal prefix")
    equal(c.names("b", start_after=".dfc-unique/07"), PLAIN[3:], "names behind an internal one")
    page = c.get_json("/v1/objects/b?delimiter=/")
    equal(page["prefixes"], ["a/"], "prefixes")
    page = c.get_json("/v1/objects/b?delimiter=/&internal=true")
    equal(page["prefixes"], [".dfc-packs/", ".dfc-unique/", "a/"], "all prefixes")
    c.call("GET", "/v1/objects/b?internal=perhaps").expect(400, "invalid_argument", "internal")


def test_the_program(c):
    def lines(*words):
        done = c.dfcctl(*words)
        equal(done.returncode, 0, done.stderr)
        return done

    def names(*words):
        return [line.split()[-1] for line in lines("ls", *words).stdout.splitlines()[1:]]

    equal(names("b"), PLAIN, "ls")
    equal(names("b", "--internal"), ALL, "ls --internal")
    equal(names("b/.dfc-p"), [".dfc-packs/0"], "ls of an internal prefix")
    for words, wanted in ((("du", "b"), PLAIN), (("du", "b", "--internal"), ALL)):
        equal(json.loads(lines(*words, "-o", "json").stdout)["objects"], len(wanted), words)
    summary = lines("storage", "summary", "b")
    check(f"{2 * len(INTERNAL)} of these objects" in summary.stderr, summary.stderr)


def test_jobs(c):
    c.create("whole")
    run(c, "b", "copy", {"to": "whole"})
    equal(everything(c, "whole"), ALL, "a copy of all")
    for value, names in (({"prefix": ""}, PLAIN), ({"prefix": "", "internal": True}, ALL),
                         ({"prefix": ".dfc-p"}, [".dfc-packs/0"])):
        c.create("part")
        run(c, "b", "copy", {"to": "part", **value})
        equal(everything(c, "part"), names, f"a copy of {value}")
        c.destroy("part")
    run(c, "whole", "delete", {"prefix": ""})
    equal(everything(c, "whole"), INTERNAL, "what a deletion leaves")
    done = c.dfcctl("rm", "whole", "--prefix", "", "--internal", "--yes", "--wait")
    equal((done.returncode, everything(c, "whole")), (0, []), "a deletion of all")
    c.call("POST", "/v1/buckets/b", {"action": "delete", "value": {
        "list": ["a"], "internal": True}}).expect(400, "invalid_spec", "internal")


def test_names_stay_where_a_bucket_is_renamed_and_objects_move(c):
    c.call("POST", "/v1/buckets/b", {"action": "rename", "name": "c"}).expect(204)
    equal((c.names("c"), everything(c, "c")), (PLAIN, ALL), "names of the renamed bucket")
    c.setting("rebalance_delay", "300ms")
    c.add_target()
    wait_for(lambda: not c.get_json("/v1/cluster?what=smap").get("earlier"), "the end of the move")
    equal((c.names("c"), everything(c, "c")), (PLAIN, ALL), "names after the move")
    for name in INTERNAL:
        equal(c.get("c", name).expect(200).body, name.encode(), name)


main()
