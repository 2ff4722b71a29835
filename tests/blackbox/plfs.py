#!/usr/bin/env python3
"""A C program for PLFS, linked with libplfs-dfc: its calls one by one, what PLFS itself got wrong,
and a file that several processes write strided (plog/plfs/testing/suite.c)."""

import json
import os
import subprocess

from lib import BUILD, check, equal, main
from plog import command


def suite(c, directory, *args, code=0, **env):
    done = subprocess.run([os.path.join(BUILD, "plfs-suite"), directory, *args], check=False,
                          env={**c.dfcctl_environment(), **env}, capture_output=True, text=True)
    equal(done.returncode, code, f"exit code of plfs-suite: {done.stdout} {done.stderr}")
    return done.stdout


def test_in_a_bucket(c):
    c.create("b")
    check("ok 16" in suite(c, "dfc://b"), "sixteen tests")
    command(c, "gc", "b", "--grace", "0s")
    equal(c.names("b"), [], "what is left")
    equal(c.names("b", prefix=".dfc-plog/"), [], "what is left of containers")


def test_defect_the_map_is_a_pointer(c):
    """plfs_map of PLFS 2.5 prints an address in place of the index."""
    suite(c, "dfc://b", "keep")
    rows = json.loads(command(c, "map", "dfc://b/kept", "-o", "json"))["found"]
    equal([(r["start"], r["length"]) for r in rows], [(0, 4), (4, 2), (6, 4), (20, 1)], "the map")
    segments = c.names("b", prefix=".dfc-plog/")
    check(all(r["segment"] in segments for r in rows), f"segments of the map: {rows}")
    command(c, "flatten", "dfc://b/kept")
    equal(c.get("b", "kept").expect(200).body, b"aaaaXXaaaa" + bytes(10) + b"b", "the bytes")


def test_below_a_mount(c):
    equal(c.dfcctl("put", "/dev/null", "dfc://b/job/").returncode, 0, "a directory")
    check("ok 1" in suite(c, "plfs:/mnt/x/b/job", "strided", DFC_PLFS_MOUNT="/mnt/x/"), "strided")


def test_objects_that_are_no_plogs(c):
    c.put("b", "flat", b"bytes")
    check("ok 1" in suite(c, "dfc://b", "flat_object"), "a flat object")
    equal(c.get("b", "flat").expect(200).body, b"bytes", "the object")


if __name__ == "__main__":
    main()
