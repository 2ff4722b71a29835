#!/usr/bin/env python3
"""Every row of every public route table asks for its right: the tables drive the test (GET /v1/api),
so that a new row cannot be forgotten."""

import json
import re
import time

from access_lib import GuardedCluster, accessref, make_user
from lib import check, equal, main, raw_exchange

PARAMETERS = {"bucket": "b", "bucket_id": "1", "object": "o", "id": "job-0", "key": "A" * 20}
NODES = ("p1", "t1")


def all_rows(c):
    for node in NODES:
        for row in c.call("GET", "/v1/api", node=node).expect(200).json()["routes"]:
            yield node, row


def tables(c):
    """(node, row) of all calls that public listeners have: administration, too, which is in the
    tables of the control listeners.  What only nodes call has no right that a user can have.
    Operations of S3 are in access_s3.py."""
    return [(node, row) for node, row in all_rows(c) if row["right"] != "operation"
            and ("public" in row["listeners"] or row["right"] != "node")]


def path_of(row):
    def value(match):
        return PARAMETERS.get(match.group(1), "nobody")
    return re.sub(r"\{(\w+)(?:\.\.\.)?\}", value, row["path"])


def ask(c, node, method, path, headers=None, body=None):
    """On the public port, what c.call() would send to the control port, too."""
    return c.http.request(method, c.url(node) + path, body, headers, follow=False)


def each(c, headers, judge, query="?no_such_parameter=1"):
    """Each call by this proof, with a parameter and a body that no call takes."""
    for node, row in tables(c):
        body = None if row["method"] in ("GET", "HEAD") else b"{no JSON"
        reply = ask(c, node, row["method"], path_of(row) + query, headers, body)
        judge(f"{node} {row['name']}", row, reply)


def refused(word):
    def judge(what, row, reply):
        if row["right"] == "none":
            check(reply.status not in (401, 403), f"{what}: {reply!r}")
            return
        equal(reply.status, 401, f"{what}: {reply!r}")
        equal(reply.headers.get("WWW-Authenticate"), f'Bearer realm="dfc", error="{word}"', what)
        if row["method"] != "HEAD":
            reply.expect(401, "unauthorized")
    return judge


def bearer(text):
    return {"Authorization": "Bearer " + text}


def now():
    return int(time.time() * 1000)


def test_every_row_has_a_right(c):
    rows = list(tables(c))
    names = {row["name"] for _, row in rows}
    check(len(rows) > 60, f"only {len(rows)} rows")
    check({"cluster_action", "documents_get", "object_put"} <= names, f"{names}")
    open_rows = {row["name"] for _, row in rows if row["right"] == "none"}
    equal(open_rows, {"health_get", "health", "auth_token", "console", "console_file"}, "rows without a right")
    check(all(row["right"] not in ("unset", "node") for _, row in rows), f"{rows}")


def test_without_a_proof(c):
    each(c, {}, refused("missing"))


def test_with_a_wrong_proof(c):
    token = c.root.headers()["Authorization"].removeprefix("Bearer ")
    other = "A" if token[-2] != "A" else "B"
    for text in ("", "x", "dfc1.x.y", token[:-2] + other + token[-1], token + "A"):
        each(c, bearer(text), refused("invalid"))
    each(c, {"Authorization": "Basic cm9vdDpyb290"}, refused("invalid"))
    of_nobody = accessref.token(c.key_text, "0" * 32, now(), now() + 60000)
    each(c, bearer(of_nobody), refused("invalid"))
    of_another_key = accessref.token("x" * 32, c.root.id(), now(), now() + 60000)
    each(c, bearer(of_another_key), refused("invalid"))


def test_with_an_expired_proof(c):
    user = c.root.id()
    each(c, bearer(accessref.token(c.key_text, user, now() - 60000, now() - 1)), refused("expired"))
    for access, status in (("", 200), (c.root.access, 200), ("DFC4JAAAAAAAAAAAAAA1", 401)):
        text = accessref.token(c.key_text, user, now(), now() + 60000, access)
        c.bare("GET", "/v1/auth/whoami", headers=bearer(text)).expect(status)


def test_without_the_right(c):
    nobody = make_user(c, "nobody", [])

    def judge(what, row, reply):
        if row["right"] in ("none", "any"):
            check(reply.status != 401, f"{what}: {reply!r}")
            return
        equal(reply.status, 403, f"{what}: {reply!r}")
        if row["method"] != "HEAD":
            reply.expect(403, "access_denied", f"'{row['right']}'")

    each(c, nobody.headers(), judge)


def right_of(row):
    """With its scope: the right "admin" is one of a bucket, and another one of the cluster."""
    return row["right"], "{bucket" in row["path"]


def test_with_the_right(c):
    """One user for each right, who has no other; but admin of the cluster, who has all."""
    rights = {right_of(row) for _, row in tables(c) if row["right"] not in ("none", "any")}
    for right, of_bucket in sorted(rights):
        grant = {"rights": [right], "bucket": "b"} if of_bucket else {"rights": [right]}
        user = make_user(c, f"only-{right}-{of_bucket}".lower(), [grant])

        def judge(what, row, reply, wanted=(right, of_bucket)):
            if wanted in (right_of(row), ("admin", False)):
                check(reply.status not in (401, 403), f"{what} with '{wanted}': {reply!r}")
            elif row["right"] not in ("none", "any"):
                equal(reply.status, 403, f"{what} with '{wanted}': {reply!r}")

        each(c, user.headers(), judge)


def test_unknown_paths_ask_for_a_proof(c):
    for node in NODES:
        c.bare("GET", "/v1/nowhere", node=node).expect(401, "unauthorized")
        c.bare("POST", "/v1/health", node=node).expect(401, "unauthorized")
        c.call("GET", "/v1/nowhere", node=node).expect(404, "no_such_route")


# A body of 1 GiB, or of no end, of which little comes; the client may wait to be told to go on.
BODIES = ("Content-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n",
          "Content-Length: 1073741824\r\n\r\n{",
          "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
          "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nFFFFFF\r\n{")


def test_a_body_is_not_waited_for(c):
    """The refusal is the first that comes, and no 100."""
    blind = make_user(c, "blind", []).headers()["Authorization"]
    wanted = (("", 401, "unauthorized"), ("Authorization: Bearer x\r\n", 401, "unauthorized"),
              (f"Authorization: {blind}\r\n", 403, "access_denied"))
    for node, row in tables(c):
        if row["right"] in ("none", "any") or row["method"] in ("GET", "HEAD"):
            continue
        for proof, status, code in wanted:
            head = (f"{row['method']} {path_of(row)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    f"Content-Type: application/json\r\n{proof}")
            for body in BODIES:
                reply = raw_exchange(c.address(node), (head + body).encode(), context=c.http.context)
                check(reply is not None, f"{node} {row['name']}: no reply to {body!r}")
                reply.expect(status, code)


def test_a_login_is_no_way_to_fill_the_memory(c):
    """The only call with a body that asks for no proof."""
    head = ("POST /v1/auth/token HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Content-Type: application/json\r\n")
    for body in BODIES[:2]:
        raw_exchange(c.address("p1"), (head + body).encode(), context=c.http.context).expect(413)
    chunks = "Transfer-Encoding: chunked\r\n\r\n" + ("10000\r\n" + "x" * 65536 + "\r\n") * 64
    raw_exchange(c.address("p1"), (head + chunks).encode(), context=c.http.context).expect(413)


def test_methods_that_no_row_has(c):
    """They tell nobody which methods there are."""
    for node, row in tables(c):
        for method in ("HEAD", "OPTIONS", "PATCH", "TRACE"):
            if method == row["method"] and row["right"] == "none":
                continue
            reply = ask(c, node, method, path_of(row))
            equal(reply.status, 401, f"{node} {method} {row['path']}: {reply!r}")
            check("Allow" not in reply.headers, f"{node} {method} {row['path']}: {reply!r}")


def test_ports_between_nodes_take_no_token(c):
    """Not even that of root, nor a redirect's proof: they ask for the cluster key."""
    asked = set()
    for node, row in all_rows(c):
        if row["open"]:
            continue
        host, port = c.address(node)
        for net, at in (("control", port + 1), ("data", port + 2)):
            if net not in row["listeners"] or (net == "data" and node == "p1"):
                continue
            body = None if row["method"] in ("GET", "HEAD") else b"{}"
            reply = c.http.request(row["method"], f"http://{host}:{at}{path_of(row)}", body,
                                   c.root.headers(), follow=False)
            equal(reply.status, 401, f"{node} {net} {row['name']}: {reply!r}")
            asked.add((node, net))
    equal(asked, {("p1", "control"), ("t1", "control"), ("t1", "data")}, "listeners")


def test_actions_of_a_bucket_ask_for_their_rights(c):
    c.create("acts")
    c.create("elsewhere")
    c.put("acts", "below/x", b"x")
    rows = (
        ({"action": "create"}, "create", None),
        ({"action": "listobjects"}, "list", ""),
        ({"action": "listobjects", "value": {"prefix": "below/"}}, "list", "below/"),
        ({"action": "delete", "value": {"list": ["below/none"], "allow_empty": True}}, "delete",
         "below/"),
        ({"action": "evict", "value": {"prefix": "below/"}}, "delete", "below/"),
        ({"action": "copy", "value": {"prefix": "below/", "to": "elsewhere"}}, "read", "below/"),
        ({"action": "rename", "name": "acts2"}, "admin", ""),
    )
    for i, (body, right, prefix) in enumerate(rows):
        nobody = make_user(c, f"act-nobody-{i}", [])
        nobody.call("POST", "/v1/buckets/acts", body).expect(403, "access_denied", f"'{right}'")
        if prefix is None:
            continue
        short = make_user(c, f"act-short-{i}",
                          [{"rights": [right], "bucket": "acts", "prefix": "other/"}])
        reply = short.call("POST", "/v1/buckets/acts", body)
        reply.expect(403, "access_denied", f"'{right}'")
    reader = make_user(c, "act-copier", [{"rights": ["read"], "bucket": "acts"}])
    copy = {"action": "copy", "value": {"prefix": "below/", "to": "elsewhere"}}
    reader.call("POST", "/v1/buckets/acts", copy).expect(403, "access_denied", "'write'")
    archive = {"action": "archive", "value": {"prefix": "below/", "archive": "mine/a.tar"}}
    reader.call("POST", "/v1/buckets/acts", archive).expect(403, "access_denied", "'write'")
    unarchive = {"action": "unarchive", "value": {"prefix": "below/", "prepend": "mine/"}}
    reader.call("POST", "/v1/buckets/acts", unarchive).expect(403, "access_denied", "'write'")
    archiver = make_user(c, "act-archiver", [{"rights": ["read"], "bucket": "acts"},
                                             {"rights": ["write"], "bucket": "acts",
                                              "prefix": "mine/"}, {"rights": ["jobs"]}])
    archiver.call("POST", "/v1/buckets/acts", archive).expect(202)
    burn = {"action": "burn", "value": {"prefix": "below/", "image": "mine/i", "allow_empty": True}}
    reader.call("POST", "/v1/buckets/acts", burn).expect(403, "access_denied", "'write'")
    archiver.call("POST", "/v1/buckets/acts", burn).expect(202)
    burn["value"]["to"] = "elsewhere"
    archiver.call("POST", "/v1/buckets/acts", burn).expect(403, "access_denied", "'write'")
    burner = make_user(c, "act-burner", [{"rights": ["read"], "bucket": "acts", "prefix": "below/"},
                                         {"rights": ["read", "write"], "bucket": "elsewhere"},
                                         {"rights": ["jobs"]}])
    # An older image may refer to any object of 'acts'.
    for fields in ({"from": "old.vdsc"}, {"base": "old.vdsc", "store": "unique"}):
        with_older = {"action": "burn", "value": {**burn["value"], **fields}}
        burner.call("POST", "/v1/buckets/acts", with_older).expect(403, "access_denied", "'read'")
    flatten = {"action": "flatten", "value": {"prefix": "below/", "allow_empty": True}}
    reader.call("POST", "/v1/buckets/acts", flatten).expect(403, "access_denied", "'write'")
    own = {"rights": ["read", "write"], "bucket": "acts", "prefix": "below/"}
    parts = {"rights": ["read", "write"], "bucket": "acts", "prefix": ".dfc-plog/"}
    half = make_user(c, "act-flat-half", [own, parts, {"rights": ["jobs"]}])
    half.call("POST", "/v1/buckets/acts", flatten).expect(403, "access_denied", "'delete'")
    parts["rights"].append("delete")
    whole = make_user(c, "act-flattener", [own, parts, {"rights": ["jobs"]}])
    whole.call("POST", "/v1/buckets/acts", flatten).expect(202)
    flatten["value"]["prefix"] = "theirs/"
    whole.call("POST", "/v1/buckets/acts", flatten).expect(403, "access_denied", "'read'")
    promote = {"action": "promote", "value": {"path": "/data", "prepend": "mine/"}}
    reader.call("POST", "/v1/buckets/acts", promote).expect(403, "access_denied", "'write'")
    archiver.call("POST", "/v1/buckets/acts", promote).expect(403, "access_denied", "'operate'")
    unarchive["value"]["allow_empty"] = True
    archiver.call("POST", "/v1/buckets/acts", unarchive).expect(202)
    archive["value"]["archive"] = "theirs/a.tar"
    archiver.call("POST", "/v1/buckets/acts", archive).expect(403, "access_denied", "'write'")


def test_a_job_over_objects_asks_for_jobs(c):
    nothing = {"list": ["below/none"], "allow_empty": True}
    grants = [{"rights": ["read", "write", "delete"], "bucket": "acts"}]
    user = make_user(c, "act-jobless", grants)
    rows = (("delete", nothing), ("evict", nothing), ("copy", {**nothing, "to": "acts"}),
            ("archive", {**nothing, "archive": "a.tar"}), ("unarchive", nothing),
            ("prefetch", nothing), ("download", {"list": ["http://127.0.0.1:1/x"]}),
            ("burn", {"prefix": "", "image": "i.vdsc"}), ("flatten", nothing))
    for action, value in rows:
        user.call("POST", "/v1/buckets/acts", {"action": action, "value": value}).expect(
            403, "access_denied", "'jobs' on the cluster")
    user = make_user(c, "act-jobs", grants + [{"rights": ["jobs"]}])
    user.call("POST", "/v1/buckets/acts", {"action": "delete", "value": nothing}).expect(202)


def test_credentials_of_the_cluster_are_an_administrators(c):
    """A backend that targets reach with them needs more than the right to create buckets."""
    maker = make_user(c, "cred-maker", [{"rights": ["create"]}])
    closed = ({"backend": "s3://corp"}, {"backend": "s3://corp?profile=p"}, {"backend": "gs://corp"},
              {"backend": {"provider": "s3", "bucket": "corp"}})
    for value in closed:
        maker.call("POST", "/v1/buckets/cred", {"action": "create", "value": value}).expect(
            403, "access_denied", "'admin' on the cluster")
    for i, backend in enumerate(("s3://corp?auth=none", "gs://corp?auth=none")):
        maker.call("POST", f"/v1/buckets/cred-{i}",
                   {"action": "create", "value": {"backend": backend}}).expect(201)
    for value in ({"backend": "s3://corp"}, {"backend": "s3://corp?profile=p"}):
        maker.call("PUT", "/v1/buckets/cred-0", {"action": "setprops", "value": value}).expect(
            403, "access_denied", "'admin' on the cluster")
    maker.call("PUT", "/v1/buckets/cred-0", {"action": "setprops", "value": {"validate": "open"}}
               ).expect(200)
    c.call("POST", "/v1/buckets/cred", {"action": "create", "value": closed[0]}).expect(201)


def test_a_quota_binds_the_owner_of_its_bucket(c):
    owner = make_user(c, "quota-owner", [{"rights": ["create"]}])
    operator = make_user(c, "quota-operator", [{"rights": ["operate"]},
                                               {"rights": ["admin"], "bucket": "bounded"}])
    owner.call("POST", "/v1/buckets/bounded", {"action": "create", "value": {"quota_objects": 5}}
               ).expect(201)

    def change(user, **props):
        return user.call("PUT", "/v1/buckets/bounded", {"action": "setprops", "value": props})

    for props in ({"quota_objects": 6}, {"quota_objects": 0}, {"quota_bytes": "1GiB"},
                  {"quota_objects": 5, "copies": 2}):
        change(owner, **props).expect(403, "access_denied", "'operate' on the cluster")
    change(owner, copies=2).expect(200)
    equal(change(operator, quota_objects=6).expect(200).json()["props"]["quota_objects"], 6, "quota")
    equal(change(c, quota_objects=7).expect(200).json()["props"]["quota_objects"], 7, "quota")


def test_a_sort_asks_for_its_buckets(c):
    spec = {"input_bck": "acts", "output_bck": "elsewhere", "input_format": "a-{0..1}",
            "output_format": "b-{0..1}", "extension": ".tar", "output_shard_size": "1KB",
            "algorithm": {"kind": "alphanumeric"}}
    starter = [{"rights": ["jobs"]}]
    none = make_user(c, "sort-none", starter)
    none.call("POST", "/v1/sort", spec).expect(403, "access_denied", "'read'")
    hidden = dict(spec, input_bck="there-is-none")
    none.call("POST", "/v1/sort", hidden).expect(403, "access_denied", "'read'")
    reads = make_user(c, "sort-reads", starter + [{"rights": ["read"], "bucket": "acts"}])
    reads.call("POST", "/v1/sort", spec).expect(403, "access_denied", "'write'")


def test_buckets_that_one_may_not_list_are_not_there(c):
    some = make_user(c, "some", [{"rights": ["list"], "bucket": "act*", "prefix": "x/"}])
    said = some.call("GET", "/v1/buckets").expect(200).json()
    names = [b["name"] for b in said["buckets"]]
    equal((names, said.get("hidden")), (["acts"], True), "the buckets of a user")
    check("hidden" not in c.get_json("/v1/buckets"), "a bucket is hidden from the administrator")
    there, gone = (some.call("GET", f"/v1/buckets/{b}").expect(403, "access_denied").json()
                   for b in ("elsewhere", "elsewhere2"))
    equal(there["message"].replace("elsewhere", ""), gone["message"].replace("elsewhere2", ""),
          "what is said of a bucket that is there, and of one that is not")
    starter = make_user(c, "act-starter", [{"rights": ["jobs"]}])
    nothing = {"list": [], "allow_empty": True}
    for action, right in (("delete", "delete"), ("evict", "delete"), ("prefetch", "read")):
        for bucket in ("elsewhere", "elsewhere2"):
            starter.call("POST", f"/v1/buckets/{bucket}", {"action": action, "value": nothing}
                         ).expect(403, "access_denied", f"'{right}'")
    some.call("GET", "/v1/objects/acts?prefix=x/y").expect(200)
    some.call("GET", "/v1/objects/acts?prefix=y").expect(403, "access_denied", "'list'")
    some.call("GET", "/v1/objects/acts").expect(403, "access_denied", "'list'")


def test_a_grant_on_a_prefix_gives_no_administration(c):
    """Neither by the guard nor in what is explained."""
    keeper = make_user(c, "keeper", [{"rights": ["admin"], "bucket": "acts", "prefix": "x/"}])
    keeper.call("PUT", "/v1/buckets/acts", {"action": "setprops", "value": {"validate": "open"}}
                ).expect(403, "access_denied", "'admin'")
    for of in ("", "&object=x/y"):
        said = c.call("GET", f"/v1/auth/explain?user=keeper&right=admin&bucket=acts{of}")
        equal(said.expect(200).json()["allowed"], False, f"explained {of}")


def test_a_login_is_good_once_and_for_minutes(c):
    user = make_user(c, "login", [])
    body = accessref.login(user.access, user.secret)
    c.bare("POST", "/v1/auth/token", body).expect(200)
    c.bare("POST", "/v1/auth/token", body).expect(401, "unauthorized", "before")
    for off in (-301000, 301000):
        user.login(time_ms=now() + off).expect(401, "unauthorized", "clock")
    for off in (-290000, 290000):
        user.login(time_ms=now() + off).expect(200)
    wrong = accessref.login(user.access, user.secret[::-1])
    unknown = accessref.login("DFC" + "A" * 17, user.secret)
    said = [c.bare("POST", "/v1/auth/token", b).expect(401, "unauthorized").json()["message"]
            for b in (wrong, unknown)]
    equal(said[0], said[1], "what is said of a wrong secret and of an unknown key")
    for bad in (b"", b"[]", b"{}", json.dumps({"access": 1}).encode(),
                accessref.login(user.access, user.secret, nonce="short")):
        check(c.bare("POST", "/v1/auth/token", bad).status == 400, f"{bad!r}")


def test_a_disabled_user_is_refused_everywhere(c):
    user = make_user(c, "leaver", [{"rights": ["see"]}])
    for node in c.nodes:
        user.call("GET", "/v1/daemon", node=node).expect(200)
    c.call("PUT", "/v1/users/leaver", {"enabled": False}).expect(200)
    began = time.monotonic()
    waiting = set(c.nodes)
    while waiting and time.monotonic() - began < 60:
        waiting = {n for n in waiting if user.call("GET", "/v1/daemon", node=n).status != 401}
    check(not waiting, f"{waiting} still serve a disabled user")
    user.login().expect(401, "unauthorized")


def test_the_secrets_are_in_no_log(c):
    secrets_of = [c.root.secret, c.root.token, c.key_text]
    for node in c.nodes:
        log = c.log(node)
        check(not any(text in log for text in secrets_of), f"the log of {node} has a secret")
        check("dfca=" not in log, f"the log of {node} has a proof")


if __name__ == "__main__":
    main(GuardedCluster, targets=2)
