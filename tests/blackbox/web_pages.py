#!/usr/bin/env python3
"""Pages of strangers, in the browser of somebody who reaches the cluster, change and read nothing:
foreign Origin, foreign Host (a name that leads to our address), and forms.  Clients that are no
browsers notice nothing of it."""

import json
import subprocess
import urllib.request

from lib import check, equal, main, raw_exchange, wait_for

CREATE = json.dumps({"action": "create"}).encode()
DELETE_ALL = json.dumps({"action": "delete", "value": {"prefix": ""}}).encode()
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
EVIL = "http://evil.example"


def own(c, node="p1"):
    return c.url(node)


def buckets(c):
    return sorted(b["name"] for b in c.get_json("/v1/buckets")["buckets"])


def post(c, path, body, node="p1", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return c.http.request("POST", c.url(node) + path, body, named, follow=False)


def test_a_page_of_another_site_changes_nothing(c):
    c.create("b")
    c.put("b", "kept", b"as it was")
    for headers in ({"Origin": EVIL, "Content_Type": "text/plain"}, {"Origin": "null"},
                    {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
                    {"Origin": EVIL, "Content_Type": "application/json"}):
        post(c, "/v1/buckets/stolen", CREATE, **headers).expect(403, "foreign_origin")
        post(c, "/v1/buckets/b", DELETE_ALL, **headers).expect(403, "foreign_origin")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for node in ("p1", "t1"):
            for method in ("PUT", "DELETE"):
                c.http.request(method, f"{c.url(node)}/v1/objects/b/kept",
                               b"x" if method == "PUT" else None, named,
                               follow=False).expect(403, "foreign_origin")
    equal(buckets(c), ["b"], "buckets")
    equal(c.get("b", "kept").expect(200).body, b"as it was", "the object")


def test_a_page_of_another_site_reads_nothing(c):
    for node, path in (("p1", "/v1/cluster"), ("t1", "/v1/daemon"), ("p1", "/v1/objects/b")):
        c.http.request("GET",
                       c.url(node) + path, None, {"Origin": EVIL}).expect(403, "foreign_origin")


def test_a_name_that_leads_here_is_not_ours(c):
    for node in ("p1", "t1"):
        port = c.address(node)[1]
        for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", ""):
            for request in (f"GET /v1/daemon HTTP/1.1\r\nHost: {host}\r\n\r\n",
                            f"DELETE /v1/objects/b/kept HTTP/1.1\r\nHost: {host}\r\n"
                            f"Origin: http://{host}\r\n\r\n"):
                reply = raw_exchange(c.address(node), request.encode(), shut=True)
                reply.expect(421, "unknown_host", "--allowed-hosts")
        for host in ("127.0.0.1", f"127.0.0.1:{port}", f"localhost:{port}", "LOCALHOST",
                     f"[::1]:{port}"):
            raw_exchange(c.address(node),
                         f"GET /v1/daemon HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(),
                         shut=True).expect(200)


def test_probes_come_with_any_name(c):
    for node in ("p1", "t1"):
        for path in ("/v1/health", "/metrics"):
            request = f"GET {path} HTTP/1.1\r\nHost: probe.example\r\n"
            raw_exchange(c.address(node), f"{request}\r\n".encode(), shut=True).expect(200)
            raw_exchange(c.address(node), f"{request}Origin: http://probe.example\r\n\r\n".encode(),
                         shut=True).expect(421, "unknown_host")


def test_the_cluster_s_own_pages_send_json_alone(c):
    here = {"Origin": own(c), "Sec_Fetch_Site": "same-origin"}
    for kind in ("text/plain", "multipart/form-data; boundary=x", FORM["Content-Type"]):
        post(c, "/v1/buckets/form", CREATE, Content_Type=kind,
             **here).expect(415, "unsupported_media_type")
    post(c, "/v1/buckets/form", CREATE, **here).expect(415, "unsupported_media_type")
    post(c, "/v1/buckets/own", CREATE, Content_Type="application/json", **here).expect(201)
    # The bytes of an object may be of any type.
    c.put("own", "page.html", b"")  # so that its owner has heard of the bucket
    owner = c.owner("own", "page.html")
    c.http.request("PUT", f"{c.url(owner)}/v1/objects/own/page.html", b"<p>", {
        "Origin": own(c, owner), "Content-Type": "text/html"}).expect(200)
    c.destroy("own")


def test_clients_that_are_no_browsers_go_on(c):
    post(c, "/v1/buckets/plain", CREATE, **{"Content_Type": FORM["Content-Type"]}).expect(201)
    request = urllib.request.Request(c.url() + "/v1/buckets/urllib", CREATE)  # says form by itself
    with urllib.request.urlopen(request, timeout=30) as reply:
        equal(reply.status, 201, "urllib")
    done = subprocess.run([
        "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-d",
        CREATE.decode(),
        c.url() + "/v1/buckets/curl"
    ], capture_output=True, text=True, check=False)
    equal(done.stdout, "201", f"curl -d {done.stderr}")
    for name in ("plain", "urllib", "curl"):
        c.destroy(name)


def test_names_and_pages_that_the_operator_allows(c):
    port = c.address("p1")[1]
    c.stop("p1")
    c.start("p1", "--arg=--allowed-hosts=dfc,*.svc.local",
            "--arg=--allowed-origins=https://console.example")
    for host in (f"dfc:{port}", "DFC", f"a.b.svc.local:{port}"):
        raw_exchange(c.address(), f"GET /v1/cluster HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(),
                     shut=True).expect(200)
    for host in ("svc.local", "dfc.evil", "xdfc"):
        raw_exchange(c.address(), f"GET /v1/cluster HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(),
                     shut=True).expect(421, "unknown_host",
                                       f"start every node with --allowed-hosts={host}")
    allowed = {"Origin": "https://console.example", "Sec_Fetch_Site": "cross-site"}
    post(c, "/v1/buckets/console", CREATE, Content_Type="application/json", **allowed).expect(201)
    post(c, "/v1/buckets/form", CREATE, Content_Type="text/plain", **allowed).expect(415)
    post(c, "/v1/buckets/x", CREATE, Origin="http://console.example").expect(403, "foreign_origin")
    check("form" not in buckets(c), "the form made nothing")
    c.destroy("console")


def test_pages_of_other_sites_use_s3_by_the_bucket_s_rules(c):
    c.create("web")
    c.put("web", "o", b"data")
    rule = b"<CORSConfiguration><CORSRule><AllowedOrigin>http://evil.example</AllowedOrigin>" \
           b"<AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>"
    for node in ("p1", "t1"):
        def ask(method, path, body=None, node=node, **headers):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return c.http.request(method, c.url(node) + "/s3" + path, body, named)

        for headers in ({"Origin": EVIL}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
            for method, path in (("PUT", "/stolen"), ("PUT", "/web/o"), ("DELETE", "/web/o"),
                                 ("DELETE", "/web"), ("PUT", "/web?cors")):
                body = rule if method == "PUT" else None
                check(b"AccessForbidden" in ask(method, path, body, **headers).expect(403).body,
                      f"{method} of {path}")
        # A target hears a little later that the rule of the node before is gone.
        wait_for(lambda ask=ask: ask("GET", "/web/o", Origin=EVIL).status == 403,
                 f"{node} refuses the page")
        ask("PUT", "/web?cors", rule).expect(200)
        equal(ask("GET", "/web/o", Origin=EVIL).expect(200).body, b"data", "the object")
        ask("PUT", "/web/o", b"x", Origin=EVIL).expect(403)
        ask("DELETE", "/web?cors").expect(204)
    check("stolen" not in buckets(c), "the page made nothing")
    c.destroy("web")


def test_a_list_that_is_none_ends_the_start(c):
    c.stop("p1")
    for arg in ("--allowed-hosts=a:80", "--allowed-hosts=a,,b", "--allowed-origins=*"):
        done = c.run("start", "p1", f"--arg={arg}", ok=False)
        check(done.returncode != 0 and arg.split("=")[0] in done.stderr, f"{arg}: {done.stderr}")
    c.start("p1")


if __name__ == "__main__":
    main(targets=1)
