#!/usr/bin/env python3
"""Malformed requests: each has its status, its code and its sentence, and changes nothing."""

import json
import os

from lib import Failed, equal, main, raw_exchange

# (method, path, body, headers, status, code, part of the message)
REQUESTS = [
    # Paths and methods.
    ("GET", "/", None, {}, 404, "no_such_route", "/"),
    ("GET", "/v2/objects/b/x", None, {}, 404, "no_such_route", "/v2"),
    ("GET", "/v1/nothing", None, {}, 404, "no_such_route", "nothing"),
    ("GET", "/v1", None, {}, 404, "no_such_route", ""),
    ("PATCH", "/v1/buckets/b", b"{}", {}, 405, "method_not_allowed",
     "takes GET, HEAD, PUT, POST, DELETE"),
    ("POST", "/v1/health", b"", {}, 405, "method_not_allowed", "takes GET"),
    ("PUT", "/v1/sort", b"{}", {}, 405, "method_not_allowed", "takes GET, POST, DELETE"),
    ("BREW", "/v1/buckets/b", None, {}, 405, "method_not_allowed", ""),
    ("GET", "/v1/objects/b/" + "x" * 20000, None, {}, 414, "uri_too_long", ""),
    ("GET", "/v1/objects/b/x%", None, {}, 400, "invalid_argument", "percent escape"),
    ("GET", "/v1/objects/b/x%zz", None, {}, 400, "invalid_argument", "percent escape"),
    ("GET", "/v1/objects/b/x%00y", None, {}, 400, "", ""),
    ("GET", "/v1/objects/b/%ff", None, {}, 400, "invalid_name", "UTF-8"),
    ("GET", "/v1/objects/b/" + "n" * 1025, None, {}, 400, "invalid_name", "1024"),
    ("GET", "/v1/objects/-b/x", None, {}, 400, "invalid_name", "-b"),
    # Buckets.
    ("POST", "/v1/buckets/new", b"", {}, 400, "invalid_json", ""),
    ("POST", "/v1/buckets/new", b"{", {}, 400, "invalid_json", "line"),
    ("POST", "/v1/buckets/new", b"[]", {}, 400, "invalid_json", "object"),
    ("POST", "/v1/buckets/new", b'{"action": 5}', {}, 400, "invalid_json", "action"),
    ("POST", "/v1/buckets/new", b"{}", {}, 400, "invalid_json", "action"),
    ("POST", "/v1/buckets/new", b'{"action": "explode"}', {}, 400, "invalid_argument", "explode"),
    ("POST", "/v1/buckets/new", b'{"action":"create","action":"create"}', {}, 400, "invalid_json",
     ""),
    ("POST", "/v1/buckets/new", b"\xff\xfe", {}, 400, "invalid_json", ""),
    ("POST", "/v1/buckets/new", b"[" * 8000, {}, 400, "invalid_json", ""),
    ("POST", "/v1/buckets/new", b" " * (8 << 20), {}, 413, "too_large", ""),
    ("POST", "/v1/buckets/new", {"action": "create",
                                 "value": {"copies": "two"}}, {}, 400, "", "copies"),
    ("POST", "/v1/buckets/new", {"action": "create",
                                 "value": {"copies": -1}}, {}, 400, "", "copies"),
    ("POST", "/v1/buckets/new", {"action": "create", "value": {"checksum": "x"}}, {}, 400, "", "x"),
    ("POST", "/v1/buckets/new", {
        "action": "create", "value": {"backend": "http://h", "write_policy": "through"}
    }, {}, 501, "not_supported", "write_policy"),
    ("PUT", "/v1/buckets/b", {"action": "setprops", "value": 7}, {}, 400, "invalid_json", "value"),
    ("DELETE", "/v1/buckets/b", {"action": "keep"}, {}, 400, "invalid_argument", "keep"),
    ("DELETE", "/v1/buckets/nobucket", None, {}, 404, "bucket_not_found", "nobucket"),
    # Objects.
    ("GET", "/v1/objects/b/x?offset=ten", None, {}, 400, "invalid_argument", "offset"),
    ("GET", "/v1/objects/b/x?offset=-1", None, {}, 400, "invalid_argument", "offset"),
    ("GET", "/v1/objects/b/x?offset=5000", None, {}, 416, "range_not_satisfiable", ""),
    ("PUT", "/v1/objects/b/y", b"d", {"Dfc-Checksum-Type": "md5"}, 400, "invalid_argument",
     "Dfc-Checksum-Value"),
    ("PUT", "/v1/objects/b/y", b"d", {"Dfc-Checksum-Type": "rot13", "Dfc-Checksum-Value": "00"},
     400, "invalid_argument", "rot13"),
    ("PUT", "/v1/objects/b/y", b"d", {"Dfc-Checksum-Type": "md5",
                                      "Dfc-Checksum-Value": "xyz"}, 400, "invalid_argument", ""),
    ("PUT", "/v1/objects/b/y", b"d", {"Dfc-Checksum-Type": "md5", "Dfc-Checksum-Value": "0" * 32},
     422, "checksum_mismatch", ""),
    ("PUT", "/v1/objects/b/y", b"d", {"Dfc-Meta-X": "v" * 3000}, 400, "invalid_argument", "2"),
    ("PUT", "/v1/objects/b/y", b"d", {"If-Match": '"1"'}, 412, "precondition_failed", ""),
    ("GET", "/v1/objects/b?limit=0", None, {}, 400, "invalid_argument", "limit"),
    ("GET", "/v1/objects/b?limit=99999", None, {}, 400, "invalid_argument", "limit"),
    ("GET", "/v1/objects/b?token=%21", None, {}, 400, "invalid_argument", "token"),
    # Jobs, cluster, nodes.
    ("GET", "/v1/sort?id=srt-none", None, {}, 404, "job_not_found", "srt-none"),
    ("DELETE", "/v1/sort/abort?id=srt-none", None, {}, 404, "job_not_found", "srt-none"),
    ("DELETE", "/v1/sort/abort", None, {}, 400, "invalid_argument", "id"),
    ("GET", "/v1/sort?regex=%5B", None, {}, 400, "invalid_argument", ""),
    ("GET", "/v1/sort?regex=((a{1,255}){1,255}){1,255}", None, {}, 400, "invalid_argument",
     "intervals"),
    ("GET", "/v1/sort?regex=(.*)(.*)x%5C1", None, {}, 400, "invalid_argument", "back references"),
    ("GET", "/v1/sort?regex=" + "a*" * 200, None, {}, 400, "invalid_argument", "256"),
    ("GET", "/v1/jobs/none", None, {}, 404, "job_not_found", "none"),
    ("GET", "/v1/jobs?state=asleep", None, {}, 400, "invalid_argument", "asleep"),
    ("GET", "/v1/cluster?what=weather", None, {}, 400, "invalid_argument", "weather"),
    ("GET", "/v1/daemon?what=weather", None, {}, 400, "invalid_argument", "weather"),
    ("PUT", "/v1/cluster", {"action": "setconfig"}, {}, 400, "invalid_json", "name"),
    # What only nodes may ask is not on the public address.
    ("POST", "/v1/cluster/register", {}, {}, 404, "no_such_route", ""),
    ("PUT", "/v1/cluster/state", {}, {}, 404, "no_such_route", ""),
    ("GET", "/v1/list/1", None, {}, 404, "no_such_route", ""),
    ("POST", "/v1/xactions/srt-1", {}, {}, 404, "no_such_route", ""),
]


def sort_spec(**changes):
    spec = {"input_bck": {"name": "b"}, "output_bck": {"name": "b"},
            "input_format": {"prefix": "in/"}, "output_format": "out-%06d",
            "output_shard_size": "1MiB"}
    spec.update(changes)
    return {k: v for k, v in spec.items() if v is not None}


# (changes of a good spec, status, code, part of the message)
SPECS = [
    ({"input_bck": None}, 400, "invalid_spec", "input_bck"),
    ({"input_bck": {"name": "nobucket"}}, 404, "bucket_not_found", "nobucket"),
    ({"output_bck": {"name": "nobucket"}}, 404, "bucket_not_found", "nobucket"),
    ({"input_bck": {"name": "b", "provider": "aws"}}, 501, "not_supported", "provider"),
    ({"input_format": None}, 400, "invalid_spec", "input_format"),
    ({"input_format": {}}, 400, "invalid_spec", "input_format"),
    ({"input_format": {
        "template": "s-{0..",
    }}, 400, "invalid_spec", "template"),
    ({"input_format": {"template": "s-{9..0}"}}, 400, "invalid_spec", "template"),
    ({"input_format": {"template": "s-%06d"}}, 400, "invalid_spec", "end"),
    ({"input_format": {"template": "s-{0..99999999999}"}}, 400, "invalid_spec", "limit"),
    ({"input_format": {"template": "s-{0..9}", "prefix": "x"}}, 400, "invalid_spec", "one of"),
    ({"input_format": {"objnames": [1]}}, 400, "invalid_spec", "objnames"),
    ({"input_format": {"objnames": ["a", "a"]}}, 400, "invalid_spec", "twice"),
    ({"input_extension": ".rar"}, 400, "invalid_spec", ".rar"),
    ({"input_extension": ".rar"}, 400, "invalid_spec", ".rar"),
    ({"output_format": None}, 400, "", "output_format"),
    ({"output_format": "fixed.tar"}, 400, "invalid_spec", "range"),
    ({"output_shard_size": None}, 400, "invalid_spec", "output_shard_size"),
    ({"output_shard_size": "big"}, 400, "", "output_shard_size"),
    ({"output_shard_size": -5}, 400, "", "output_shard_size"),
    ({"algorithm": {"kind": "bogo"}}, 400, "invalid_spec", "bogo"),
    ({"algorithm": {"kind": "content",
                    "extension": ".cls"}}, 400, "invalid_spec", "content_key_type"),
    ({"algorithm": {"kind": "shuffle", "seed": "abc"}}, 400, "", "seed"),
    ({"algorithm": {"kind": "shuffle", "seed": "-1"}}, 400, "", "seed"),
    ({"algorithm": "alphanumeric"}, 400, "invalid_spec", "algorithm"),
    ({"missing_shards": "panic"}, 400, "invalid_spec", "missing_shards"),
    ({"key_rule": "third_dot"}, 400, "invalid_spec", "key_rule"),
    ({"max_mem_usage": "200%"}, 400, "", "max_mem_usage"),
    ({"extract_concurrency_max_limit": -1}, 400, "", "extract_concurrency_max_limit"),
    ({"dry_run": "perhaps"}, 400, "invalid_spec", "dry_run"),
    ({"dsorter_type": "dsort_mem"}, 501, "not_supported", "dsorter_type"),
    ({"ekm_file": "ftp://x/y"}, 400, "invalid_spec", "ekm_file"),
    ({"colour": "blue"}, 400, "", "colour"),
]

# Bytes that are no proper HTTP: (bytes, status or None where the connection may just be closed).
# The object is one that the node takes itself.
WIRE = [
    (b"\r\n\r\n", None),
    (b"nonsense\r\n\r\n", 400),
    (b"GET\r\n\r\n", 400),
    (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 505),
    (b"GET /v1/health HTTP/1.1\r\n\r\n", 400),  # no Host
    (b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nNo colon here\r\n\r\n", 400),
    (b"PUT /v1/objects/b/w?redirect=never HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
     400),
    (b"PUT /v1/objects/b/w?redirect=never HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n"
     b"\r\n",
     400),
    (b"PUT /v1/objects/b/w?redirect=never HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
     b"Content-Length: 6\r\n\r\nhello",
     400),
    (b"PUT /v1/objects/b/w?redirect=never HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
     b"chunked\r\n\r\nzz\r\n\r\n",
     400),
    (b"PUT /v1/objects/b/w?redirect=never HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
     b"gzip\r\n\r\n",
     501),
    (b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200000 + b"\r\n\r\n", 431),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n", None),  # TLS
    (bytes(range(256)) * 20, None),
]


def snapshot(c):
    return (c.get_json("/v1/buckets"), c.names("b"), c.get_json("/v1/sort"),
            [c.pid(n) for n in c.nodes])


def check_all(c, rows, ask):
    """Every row is tried, so that one report has all that is wrong."""
    before, wrong = None, []
    before = snapshot(c)
    for row in rows:
        *request, status, code, text = row
        shown = json.dumps(request, default=lambda b: b[:40].decode("latin-1"))[:200]
        try:
            reply = ask(*request)
            reply.expect(status, code or (reply.json().get("code") if reply.body else None), text)
        except (Failed, OSError) as e:
            wrong.append(f"{shown}: {e}")
    equal(snapshot(c), before, "the cluster after all that")
    if wrong:
        raise Failed(f"{len(wrong)} of {len(rows)}:\n    " + "\n    ".join(wrong))


def test_requests(c):
    c.create("b")
    c.put("b", "x", b"contents")
    check_all(c, REQUESTS, lambda method, path, body, headers:
              c.call(method, path, body, headers=headers))


def test_sort_specs(c):
    check_all(c, SPECS, lambda changes: c.call("POST", "/v1/sort", sort_spec(**changes)))


def test_bytes_that_are_no_http(c):
    before, wrong = snapshot(c), []
    for node in ("p1", c.owner("b", "w")):
        for data, status in WIRE:
            reply = raw_exchange(c.address(node), data, shut=True)
            got = reply.status if reply else None
            if got != status and not (status is None and got == 400):
                wrong.append(f"{node}: {data[:70]!r}: {reply!r} instead of {status}")
    equal(snapshot(c), before, "the cluster after all that")
    if wrong:
        raise Failed("\n    ".join(wrong))


def test_random_bytes(c):
    for _ in range(100):
        raw_exchange(c.address("t1"), b"GET /" + os.urandom(200), shut=True)
        raw_exchange(c.address("p1"), os.urandom(300) + b"\r\n\r\n", shut=True)
    equal(c.get("b", "x").expect(200).body, b"contents", "object")


if __name__ == "__main__":
    main(targets=2)
