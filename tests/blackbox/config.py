#!/usr/bin/env python3
"""Settings of the cluster and parameters of one node: shown with types and bounds, checked with
units; what can change while a daemon runs does, and the rest says that it needs a restart."""

import json

from lib import check, equal, main, wait_for


def rows(c, *args):
    done = c.dfcctl("config", "show", *args, "-o", "json")
    equal(done.returncode, 0, f"show {args}: {done.stderr}")
    return {r["name"]: r for r in json.loads(done.stdout)["params"]}


def change(c, *args, code=0):
    done = c.dfcctl("config", "set", *args)
    equal(done.returncode, code, f"set {args}: {done}")
    return done


def test_settings_of_the_cluster(c):
    before = rows(c)
    equal((before["jobs_max"]["value"], before["jobs_max"]["default"]), (1000, "1000"), "jobs_max")
    check(all(r["help"] and r["live"] for r in before.values()), "each is told of")
    change(c, "jobs_max", "77")
    equal(rows(c)["jobs_max"]["value"], 77, "jobs_max")
    wait_for(lambda: c.get_json("/v1/cluster?what=config", "p2")["values"] == {"jobs_max": "77"},
             "the other proxy knows")
    shown = c.dfcctl("config", "show", "jobs_max").stdout
    check("77" in shown and "remembers" in shown, shown)
    for name, value, words in (("jobs_max", "0", "at least 1"), ("jobs_max", "many", "many"),
                               ("nothing", "1", "nothing"),
                               ("job_max", "1", "did you mean 'jobs_max'?"),
                               ("disk_readers", "4", "--node NAME"),
                               ("sort_memory", "1KiB", "at least 1MiB")):
        done = c.dfcctl("config", "set", name, value)
        check(done.returncode != 0 and words in done.stderr, f"{name}={value}: {done}")
    change(c, "jobs_max")
    equal(rows(c)["jobs_max"]["value"], 1000, "back to the default")
    change(c, "jobs_max")
    check("did you mean 'jobs_max'?" in change(c, "job_max", code=3).stderr,
          "no such setting to put back")
    for words, meant in ((("jobs_max=2000",), "jobs_max 2000"),
                         (("--node", "t1", "sort_memory=1GiB"), "--node t1 sort_memory 1GiB")):
        equal(change(c, *words, code=2).stderr,
              f"dfcctl: '{words[-1]}' is no setting: dfcctl config set {meant}\n", f"{words}")


def test_parameters_of_a_node(c):
    for node, name, value, number in (("t1", "sort_memory", "64MiB", 64 << 20),
                                      ("t1", "keepalive_interval", "200ms", 200),
                                      ("t1", "ring_wait_max", "20s", 20000),
                                      ("p1", "relays_max", "100", 100),
                                      ("p1", "token_ttl", "30m", 1800000),
                                      ("p2", "settle_timeout", "2s", 2000)):
        done = change(c, "--node", node, name, value)
        check("until" in done.stderr, f"it says for how long: {done.stderr}")
        row = rows(c, "--node", node)[name]
        equal((row["value"], row["live"]), (number, True), f"{name} of {node}")
        check(value in c.dfcctl("config", "show", "--node", node, name).stdout,
              f"{name} has a unit")
    equal(rows(c, "--node", "t2")["sort_memory"]["value"], 96 << 20, "t2's own")


def test_what_needs_a_restart_says_so(c):
    for node, name, value, words in (("t1", "disk_readers", "4",
                                      "start it again with --disk-readers="),
                                     ("p1", "dir", "/x", "start it again with"),
                                     ("t1", "nonsense", "4", "nonsense"), ("t1", "jobs_max", "4",
                                                                           "without --node"),
                                     ("t1", "sort_memry", "64MiB", "did you mean 'sort_memory'?"),
                                     ("t1", "sort_memory", "1KiB",
                                      "at least 1MiB"), ("t1", "sort_memory", "much", "much")):
        done = c.dfcctl("config", "set", "--node", node, name, value)
        check(done.returncode != 0 and words in done.stderr, f"{name}={value}: {done}")
    equal(rows(c, "--node", "t1")["disk_readers"]["value"], 8, "disk_readers")
    equal(
        c.dfcctl("config", "set", "--node", "t1", "sort_memory").returncode, 2,
        "a value is missing")
    check(c.dfcctl("config", "show", "--node", "t9").returncode == 3, "there is no t9")
    for words, said in ((("--node", "t1"), "node 't1' has no parameter"), ((), "add --node NAME")):
        done = c.dfcctl("config", "show", *words, "nonsense")
        check(done.returncode == 3 and said in done.stderr, f"{words}: {done}")


def test_a_setting_holds_for_every_target(c):
    def seen(node):
        row = rows(c, "--node", node)["sort_memory"]
        return row["value"] >> 20, row["source"]

    c.stop("t2")
    c.start("t2", "--arg=--sort-memory=24MiB")
    change(c, "sort_memory", "48MiB")
    equal((rows(c)["sort_memory"]["value"] >> 20, rows(c)["sort_memory"]["source"]),
          (48, "cluster"), "the setting")
    c.stop("t1")
    c.start("t1")
    wait_for(lambda: seen("t1") == (48, "cluster"), "t1 has it after a restart")
    new = c.add_target()
    wait_for(lambda: seen(new) == (48, "cluster"), "a target that joins later has it")
    equal(seen("t2"), (24, "command line"), "t2 keeps its own")
    change(c, "--node", "t1", "sort_memory", "32MiB")
    change(c, "sort_memory", "64MiB")
    wait_for(lambda: seen(new) == (64, "cluster"), "the next value")
    equal((seen("t1"), seen("t2")), ((32, "run"), (24, "command line")), "values of their own")
    line = c.dfcctl("config", "show", "--node", "t2", "sort_memory").stdout.splitlines()
    check("SOURCE" in line[0] and "command line" in line[1], line)
    change(c, "sort_memory")
    wait_for(lambda: seen(new) == (96, "default"), "the default again")
    c.stop("t2")
    c.start("t2")
    equal(seen("t2"), (96, "default"), "t2 without a value of its own")


def test_the_log_level_changes_at_once(c):
    change(c, "--node", "t1", "log_level", "debug")
    c.create("b")  # a new state, which is a line of that level
    wait_for(lambda: " DEBUG t1 " in c.log("t1"), "a line")
    equal(rows(c, "--node", "t1")["log_level"]["value"], "debug", "log_level")
    c.stop("t1")
    c.start("t1")
    equal(rows(c, "--node", "t1")["log_level"]["value"], "info", "as it was started")


if __name__ == "__main__":
    main(proxies=2, targets=2)
