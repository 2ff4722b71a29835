#!/usr/bin/env python3
"""Between nodes nobody is heard who does not prove that it is one: every call of the route tables,
asked without a signature, with wrong ones and with used ones; nodes without the key, or with
another; bodies and headers that are not those that were signed; and a key that is changed under
way."""

import contextlib
import json
import os
import re
import secrets
import subprocess

from lib import BUILD, Failed, authref, check, equal, main, wait_for

NETS = ("control", "data")
OPEN = {"health", "health_get", "metrics", "metrics_get",
        "session_open"}  # what anybody may call: look twice before adding

# Which clusters these let in is their own business: joining, recovery, and the first state.
ANY_CLUSTER = {
    "node_register", "node_keepalive", "state_get", "state_put", "state_push", "node_stop"
}


def listeners(c, node):
    info = c.get_json("/v1/daemon", node)
    return {net: info[net + "_url"] for net in NETS if info.get(net + "_url")}


def intra_routes(c):
    """(node, listener's URL, route) for every call that is served between nodes."""
    for node in ("p1", "t1"):
        urls = listeners(c, node)
        for route in c.get_json("/v1/api", node)["routes"]:
            for net in set(route["listeners"]) & set(urls):
                yield node, urls[net], route


def path_of(route):
    """One that the route has: its parameters filled in."""
    names = {"{bucket}": "b", "{bucket_id}": "1", "{object...}": "kept"}
    return re.sub(r"\{[^}]*\}", lambda m: names.get(m.group(), "x"), route["path"])


def body_of(route):
    return b'{"action": "stop", "job": {}}' if route["method"] in ("PUT", "POST") else b""


def everything(c):
    """What no refused request may change."""
    state = c.get_json("/v1/cluster?what=state")
    return state, c.names("b"), c.get("b", "kept").expect(200).body


def refused(reply, why):
    if reply.request_method != "HEAD":
        reply.expect(401, "unauthorized")
    equal(reply.status, 401, f"status of {reply!r}")
    equal(reply.headers["WWW-Authenticate"], f'Dfc error="{why}"', f"{reply!r}: challenge")


def ask(c, route, url, body, headers):
    reply = c.http.request(route["method"], url, body or None, headers, follow=False)
    reply.request_method = route["method"]
    return reply


def forged(c, route, url, body, **changes):
    """A signature that is right but for what is changed."""
    session = c.member.session(url)
    twin = authref.Session(changes.get("session", session.id), changes.get("key", session.key))
    return twin.sign(route["method"], url, body, counter=1 << 40)


def test_every_call_between_nodes_asks_for_proof(c):
    c.create("b")
    c.put("b", "kept", b"as it was")
    before, seen = everything(c), set()
    for node, origin, route in intra_routes(c):
        if route["open"]:
            continue
        seen.add((node, route["name"]))
        url, body = origin + path_of(route), body_of(route)
        refused(ask(c, route, url, body, {}), "missing")
        refused(ask(c, route, url, body, {"Dfc-Auth": "1 x"}), "missing")
        wrong_key = forged(c, route, url, body, key=secrets.token_bytes(32))
        refused(ask(c, route, url, body, wrong_key), "signature")
        refused(ask(c, route, url, body, forged(c, route, url, body, session="0" * 32)), "session")
        other = forged(c, route, url + "/other", body)
        refused(ask(c, route, url, body, other), "signature")
        used = used_counter(c, origin)
        refused(ask(c, route, url, body,
                    c.member.sign(route["method"], url, body, counter=used)), "replay")
    check(len(seen) > 30, f"only {seen}")
    for name in (("p1", "node_register"), ("p1", "state_put"), ("t1", "state_push"),
                 ("t1", "xaction_order"), ("t1", "object_copy"), ("t1", "copy_commit"),
                 ("t1", "copies_settled"), ("t1", "object_held"), ("t1", "sort_records"),
                 ("t1", "backend_list")):
        check(name in seen, f"{name} was not asked: {seen}")
    equal(everything(c), before, "what the cluster holds")


def used_counter(c, origin):
    """The number of a request that was taken: one to a path that is none."""
    url = origin + "/v1/nowhere"
    headers = c.member.sign("GET", url)
    c.http.request("GET", url, headers=headers).expect(404, "no_such_route")
    return int(headers["Dfc-Auth"].split()[2])


def test_what_is_open_is_known(c):
    names = {route["name"] for _, _, route in intra_routes(c) if route["open"]}
    equal(names, OPEN, "calls that ask nobody for proof")
    for node in ("p1", "t1"):
        for url in listeners(c, node).values():
            c.http.request("GET", url + "/v1/health").expect(200)
            c.http.request("GET", url + "/v1/nowhere").expect(401, "unauthorized")
            c.http.request("PATCH", url + "/v1/health").expect(401, "unauthorized")


def test_a_signature_counts_once(c):
    url = listeners(c, "t1")["control"] + "/v1/cluster/state"
    headers = c.member.sign("GET", url)
    document = c.http.request("GET", url, headers=headers).expect(200).body
    again = c.http.request("GET", url, headers=headers).expect(401, "unauthorized", "used before")
    equal(again.headers["WWW-Authenticate"], 'Dfc error="replay"', "challenge")
    headers = c.member.sign("PUT", url, document)
    c.http.request("PUT", url, document, headers).expect(200)
    c.http.request("PUT", url, document, headers).expect(401, "unauthorized")
    check(b"http_unauthorized_total" in c.call("GET", "/metrics", node="t1").body, "no metric")


def test_a_greeting_counts_once(c):
    url = listeners(c, "t1")["control"] + "/v1/intra/session"
    question = authref.Session.question(c.member.key)
    challenge = c.http.request("POST", url, question).expect(200).json()
    equal(challenge["node"], "t1", "the node that gives the challenge")
    greeting, _ = authref.Session.greeting(c.member.key, challenge)
    other = listeners(c, "t2")["control"] + "/v1/intra/session"
    c.http.request("POST", other, greeting).expect(401, "unauthorized", "for node 't2'")
    c.http.request("POST", url, greeting).expect(201)
    c.http.request("POST", url, greeting).expect(401, "unauthorized", "was sent before")
    earlier, g = authref.Session.greeting(c.member.key)
    answer = c.http.request("POST", url, earlier).expect(201).json()
    authref.Session.opened(c.member.key, g, answer)


def test_a_body_is_the_one_that_was_signed(c):
    before = everything(c)
    state = dict(before[0], version=before[0]["version"] + 100)
    url = listeners(c, "t1")["control"] + "/v1/cluster/state"
    signed, sent = json.dumps(before[0]).encode(), json.dumps(state).encode()
    sent += b" " * (len(signed) - len(sent))
    signed += b" " * (len(sent) - len(signed))
    headers = c.member.sign("PUT", url, signed)
    c.http.request("PUT", url, sent, headers).expect(401, "unauthorized", "not the one")
    equal(c.get_json("/v1/daemon", "t1")["version"], before[0]["version"], "the target's version")
    url = listeners(c, "t1")["data"] + "/v1/objects/b/kept"
    headers = c.member.sign("PUT", url, b"as it is!", {"Dfc-Copy": "durable"})
    c.http.request("PUT", url, b"as it was", headers).expect(401, "unauthorized", "not the one")
    equal(everything(c), before, "what the cluster holds")


def test_headers_of_ours_are_signed(c):
    url = listeners(c, "t1")["data"] + "/v1/objects/b/kept"
    headers = c.member.sign("PUT", url, b"other", {"Dfc-Copy": "1.1"})
    headers["Dfc-Copy"] = "durable"
    c.http.request("PUT", url, b"other", headers).expect(401, "unauthorized", "not that of this")
    equal(c.get("b", "kept").body, b"as it was", "the object")


def stamp(c, **changes):
    state = dict(c.get_json("/v1/cluster?what=state"), **changes)
    return {"Dfc-State": f"{state['cluster']} {state['term']}.{state['version']}"}


def test_another_cluster_with_the_same_key_is_refused(c):
    before = everything(c)
    for node, origin, route in intra_routes(c):
        if route["open"] or route["any_cluster"]:
            continue
        url, body = origin + path_of(route), body_of(route)
        headers = c.member.sign(route["method"], url, body, stamp(c, cluster="c-another"))
        reply = ask(c, route, url, body, headers)
        equal(reply.status, 409, f"{node} {route['name']}: {reply!r}")
        if route["method"] != "HEAD":
            reply.expect(409, "wrong_cluster")
    looks_itself = {route["name"] for _, _, route in intra_routes(c) if route["any_cluster"]}
    equal(looks_itself, ANY_CLUSTER, "calls that look themselves at the caller's cluster")
    document = json.dumps(dict(before[0], cluster="c-another")).encode()
    for node, code in (("p1", "exists"), ("t1", "wrong_cluster")):
        c.member.request("PUT", listeners(c, node)["control"] + "/v1/cluster/state",
                         document).expect(409, code)
    equal(everything(c), before, "what the cluster holds")


def test_orders_of_a_term_that_is_over_are_refused(c):
    fenced = [(url, route) for _, url, route in intra_routes(c) if route["fenced"]]
    check(any(route["name"] == "xaction_order" for _, route in fenced), "orders are not fenced")
    for origin, route in fenced:
        url, body = origin + path_of(route), body_of(route)
        headers = c.member.sign(route["method"], url, body, stamp(c, term=1))
        ask(c, route, url, body, headers).expect(409, "stale_map", "term 1, which is over")


def start(c, program, name, *args):
    directory = os.path.join(c.dir, name)
    argv = [os.path.join(BUILD, program), "--id", name, "--dir", directory, *args]
    if program == "dfc-targetd":
        argv.append(f"--mountpaths={directory}/mp")
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


@contextlib.contextmanager
def running(*args):
    process = start(*args)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def write_key(c, name, text, mode=0o600):
    path = os.path.join(c.dir, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def test_who_has_no_key_cannot_join(c):
    before = everything(c)
    other = write_key(c, "other.key", secrets.token_hex(32))
    join = "--join=" + listeners(c, "p1")["control"]
    for program, name, more in (("dfc-proxyd", "p9", ()), ("dfc-targetd", "t9", ()),
                                ("dfc-proxyd", "p8", ("--cluster-key-file", other)),
                                ("dfc-targetd", "t8", ("--cluster-key-file", other))):
        with running(c, program, name, join, *more) as process:
            for line in process.stderr:
                if "code=unauthorized" in line:
                    break
            else:
                raise Failed(f"{name} ended without a word")
    equal(everything(c), before, "what the cluster holds")


def test_a_key_file_must_be_a_secret(c):
    good = secrets.token_hex(32)
    for name, text, mode, words in (("wide", good, 0o644, "mode is 644"),
                                    ("short", "abc", 0o600, "32"), ("empty", "", 0o600, "no key")):
        path = write_key(c, name + ".key", text, mode)
        for program in ("dfc-proxyd", "dfc-targetd"):
            with running(c, program, "x-" + name, "--cluster-key-file", path,
                         "--join=http://127.0.0.1:1") as process:
                _, err = process.communicate(timeout=60)
            equal(process.returncode, 1, f"status with a key that is {name}: {err}")
            check(words in err and path in err, f"{name}: {err}")
    with running(c, "dfc-proxyd", "x-gone", "--cluster-key-file", "/nowhere/key") as process:
        check("/nowhere/key" in process.communicate(timeout=60)[1], "a key that is missing")


def test_without_a_key_only_loopback_is_listened_on(c):
    for program in ("dfc-proxyd", "dfc-targetd"):
        with running(c, program, "x-open", "--address=0.0.0.0",
                     "--join=http://127.0.0.1:1") as process:
            _, err = process.communicate(timeout=60)
        equal(process.returncode, 1, f"status: {err}")
        check("--cluster-key-file is missing" in err, err)


def works(c, name):
    """Calls of all kinds between nodes: proxy to targets, target to target, and the jobs."""
    c.put("b", name, name.encode())
    equal(c.get("b", name).expect(200).body, name.encode(), "the object")
    check(name in c.names("b"), f"{name} is not listed")
    copy = {"action": "copy", "value": {"prefix": name, "to": "b", "prepend": "copy-"}}
    job = c.call("POST", "/v1/buckets/b", copy).expect(202).json()["id"]
    wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] == "finished", f"{job} finished")
    equal(c.get("b", "copy-" + name).expect(200).body, name.encode(), "the copy")


def restart(c, node, how):
    (c.kill if how == "kill" else c.stop)(node)
    c.start(node)
    c.wait_node("t1", "active")
    c.wait_node("t2", "active")


def test_sessions_are_opened_anew_after_a_restart(c):
    for i, node in enumerate(("t1", "p1")):
        works(c, f"before{i}")
        restart(c, node, "kill")
        works(c, f"after{i}")


def test_the_key_is_changed_node_by_node(c):
    with open(c.key_file, encoding="ascii") as f:
        old = f.read().strip()
    new = secrets.token_hex(32)
    for i, text in enumerate((f"{old}\n{new}\n", f"{new}\n{old}\n", f"# the new one\n{new}\n")):
        write_key(c, "cluster.key", text)
        for node in ("p1", "t1", "t2"):
            restart(c, node, "stop")
            works(c, f"step{i}-{node}")
    url = listeners(c, "t1")["control"]
    greeting, _ = authref.Session.greeting(old)
    c.http.request("POST", url + "/v1/intra/session", greeting).expect(
        401, "unauthorized", "another cluster key")


if __name__ == "__main__":
    main(targets=2, args=("--proxy-arg=--keepalive-interval=200ms",
                          "--target-arg=--keepalive-interval=200ms"))
