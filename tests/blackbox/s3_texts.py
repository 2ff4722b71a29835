#!/usr/bin/env python3
"""What a bucket keeps for S3: tags, CORS and lifecycle. ACLs, and browsers' requests by CORS."""

import xml.etree.ElementTree as ElementTree

from access_lib import GuardedCluster, make_user
from lib import check, equal, main, wait_for
from s3_lib import NAMESPACE, S3, refused, root_of

NODES = ("p1", "p2", "t1", "t3")

TAGS = "<Tagging><TagSet>{}</TagSet></Tagging>"
TAG = "<Tag><Key>{}</Key><Value>{}</Value></Tag>"
CORS = "<CORSConfiguration>{}</CORSConfiguration>"
OPEN = "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>"
APP = """<CORSRule><ID>app</ID><AllowedOrigin>https://*.example.org</AllowedOrigin>
  <AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET</AllowedMethod>
  <AllowedHeader>x-amz-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader>
  <MaxAgeSeconds>600</MaxAgeSeconds></CORSRule>"""
LIFECYCLE = "<LifecycleConfiguration>{}</LifecycleConfiguration>"
RULE = """<Rule><ID>{0}</ID><Filter><Prefix>{0}/</Prefix></Filter><Status>Enabled</Status>
  <Expiration><Days>3</Days></Expiration></Rule>"""

# parameter: (a document, another one, status of PUT, the error where there is none)
KINDS = {
    "tagging": (TAGS.format(TAG.format("a", "1") + TAG.format("b", "")),
                TAGS.format(TAG.format("\u00e9", "&lt;&amp;&gt;")), 204, "NoSuchTagSet"),
    "cors": (CORS.format(OPEN), CORS.format(APP + OPEN), 200, "NoSuchCORSConfiguration"),
    "lifecycle": (LIFECYCLE.format(RULE.format("logs")),
                  LIFECYCLE.format(RULE.format("tmp") + RULE.format("old")), 200,
                  "NoSuchLifecycleConfiguration"),
}


def leaves(text):
    """Names and texts, whatever the namespace and the spaces between elements."""
    return sorted((e.tag.split("}")[-1], e.text or "") for e in ElementTree.fromstring(text).iter()
                  if len(e) == 0)


def put(s3, bucket, kind, text):
    return s3.call("PUT", f"/{bucket}", text.encode(), [(kind, "")])


def get(s3, bucket, kind):
    return s3.call("GET", f"/{bucket}", pairs=[(kind, "")])


def has(s3, bucket, kind, text):
    equal(leaves(get(s3, bucket, kind).expect(200).body), leaves(text), f"{kind} of {bucket}")


def lacks(s3, bucket, kind):
    refused(get(s3, bucket, kind), 404, KINDS[kind][3])


def test_documents_at_every_node(c):
    c.create("kept")
    c.create("bare")
    for kind, (first, second, status, _) in KINDS.items():
        for node in NODES:
            s3 = root_of(c, node)
            lacks(s3, "kept", kind)
            for text in (first, second):
                put(s3, "kept", kind, text).expect(status)
                has(s3, "kept", kind, text)
            lacks(s3, "bare", kind)
            s3.call("DELETE", "/kept", pairs=[(kind, "")]).expect(204)
            lacks(s3, "kept", kind)
            s3.call("DELETE", "/kept", pairs=[(kind, "")]).expect(204)


def test_what_is_refused(c):
    s3 = root_of(c, "t1")
    for kind, (text, _, _, _) in KINDS.items():
        refused(put(s3, "nowhere", kind, text), 404, "NoSuchBucket")
        refused(put(s3, "kept", kind, text + "<"), 400, "MalformedXML")
        refused(put(s3, "kept", kind, ""), 400, "MalformedXML")
        refused(get(s3, "nowhere", kind), 404, "NoSuchBucket")
        refused(s3.call("DELETE", "/nowhere", pairs=[(kind, "")]), 404, "NoSuchBucket")
        refused(put(s3, "kept", kind, text + " " * 70_000), 400, "EntityTooLarge")
    many = "".join(RULE.format("r" * 100 + str(i)) for i in range(60))
    refused(put(s3, "kept", "lifecycle", LIFECYCLE.format(many)), 400, "EntityTooLarge")
    refused(put(s3, "kept", "tagging", TAGS.format(TAG.format("a", "1") * 2)), 400, "InvalidTag")
    c.setting("bucket_texts_max", "100")
    refused(put(s3, "kept", "cors", KINDS["cors"][0]), 503, "SlowDown")
    c.call("PUT", "/v1/cluster", {"action": "setconfig", "name": "bucket_texts_max"}).expect(200)
    for kind in KINDS:
        lacks(s3, "kept", kind)


def test_rights(c):
    reader = make_user(c, "reader", [{"rights": ["list", "read"], "bucket": "kept"}])
    writer = make_user(c, "writer", [{"rights": ["write"], "bucket": "kept"}])
    text = KINDS["tagging"][0]
    put(root_of(c, "p2"), "kept", "tagging", text).expect(204)
    has(S3(c, reader.access, reader.secret, "t1"), "kept", "tagging", text)
    for user in (reader, writer):
        s3 = S3(c, user.access, user.secret, "t1")
        refused(put(s3, "kept", "tagging", text), 403, "AccessDenied")
        refused(s3.call("DELETE", "/kept", pairs=[("tagging", "")]), 403, "AccessDenied")
    refused(get(S3(c, writer.access, writer.secret, "p1"), "kept", "tagging"), 403, "AccessDenied")


def test_documents_outlive_nodes(c):
    for kind, (text, _, status, _) in KINDS.items():
        put(root_of(c, "t3"), "kept", kind, text).expect(status)
    for node in ("t1", "p2", "p1"):
        c.kill(node, "-9")
        c.start(node)
        c.wait_node(node, "active")
    c.call("PUT", "/v1/buckets/kept", {"action": "setprops", "value": {"durability": "async"}})
    c.call("POST", "/v1/buckets/kept", {"action": "rename", "name": "moved"}).expect(204)
    for node in NODES:
        for kind, (text, _, _, _) in KINDS.items():
            has(root_of(c, node), "moved", kind, text)
    root_of(c, "p1").call("DELETE", "/moved").expect(204)
    root_of(c, "p1").call("PUT", "/moved").expect(200)
    for kind in KINDS:
        lacks(root_of(c, "t1"), "moved", kind)


# --- ACLs ----------------------------------------------------------------------------------------

def grants(reply):
    root = ElementTree.fromstring(reply.expect(200).body)
    owner = root.findtext(f"{NAMESPACE}Owner/{NAMESPACE}DisplayName")
    found = [(g.findtext(f"{NAMESPACE}Grantee/{NAMESPACE}DisplayName"),
              g.findtext(f"{NAMESPACE}Permission")) for g in root.iter(NAMESPACE + "Grant")]
    return owner, found


def test_acls(c):
    owner = make_user(c, "olga", [{"rights": ["create"]}])
    S3(c, owner.access, owner.secret, "p1").call("PUT", "/olgas").expect(200)
    S3(c, owner.access, owner.secret, "p1").call("PUT", "/olgas/o", b"x").expect(200)
    acl = [("acl", "")]
    for node in NODES:
        s3 = root_of(c, node)
        for path in ("/olgas", "/olgas/o"):
            equal(grants(s3.call("GET", path, pairs=acl)), ("olga", [("olga", "FULL_CONTROL")]),
                  f"ACL of {path}")
            for canned in ("private", "bucket-owner-full-control"):
                s3.call("PUT", path, pairs=acl, headers={"x-amz-acl": canned}).expect(200)
            refused(s3.call("PUT", path, pairs=acl, headers={"x-amz-acl": "public-read"}), 400,
                    "AccessControlListNotSupported")
            s3.call("PUT", path, s3.call("GET", path, pairs=acl).body, acl).expect(200)
            refused(s3.call("PUT", path, b"<AccessControlPolicy/>", acl), 400,
                    "AccessControlListNotSupported")
        refused(s3.call("GET", "/olgas/none", pairs=acl), 404, "NoSuchKey")
        refused(s3.call("PUT", "/olgas/none", pairs=acl, headers={"x-amz-acl": "private"}), 404,
                "NoSuchKey")
        refused(s3.call("GET", "/nowhere", pairs=acl), 404, "NoSuchBucket")
        refused(s3.call("PUT", "/nowhere", pairs=acl, headers={"x-amz-acl": "private"}), 404,
                "NoSuchBucket")
    refused(root_of(c, "p1").call("PUT", "/olgas/p", b"x", headers={"x-amz-acl": "public-read"}),
            400, "AccessControlListNotSupported")


# --- browsers ------------------------------------------------------------------------------------

ALLOW = "Access-Control-Allow-"


def preflight(c, node, path, origin, method, asked=None):
    """As a browser sends it: without credentials."""
    headers = {"Origin": origin, "Access-Control-Request-Method": method}
    if asked:
        headers["Access-Control-Request-Headers"] = asked
    return S3(c, node=node).call("OPTIONS", path, headers=headers)


def test_preflights(c):
    c.create("web")
    put(root_of(c, "p1"), "web", "cors", CORS.format(APP + OPEN)).expect(200)
    for node in NODES:
        wait_for(lambda node=node: preflight(c, node, "/web", "http://x", "GET").status == 200,
                 f"{node} has the document")
        for path in ("/web", "/web/some/key?X-Amz-Signature=0"):
            yes = preflight(c, node, path, "https://a.example.org", "PUT", "x-amz-date, X-Amz-Acl")
            yes.expect(200)
            equal([yes.headers[ALLOW + n] for n in ("Origin", "Methods", "Headers",
                                                    "Credentials")],
                  ["https://a.example.org", "PUT, GET", "x-amz-date, X-Amz-Acl", "true"],
                  "what is allowed")
            equal(yes.headers["Access-Control-Max-Age"], "600", "max-age")
        any_origin = preflight(c, node, "/web/k", "http://elsewhere", "GET").expect(200)
        equal(any_origin.headers[ALLOW + "Origin"], "*", "origin of an open rule")
        check(any_origin.headers[ALLOW + "Credentials"] is None, "credentials for everybody")
        for origin, method, asked in (("http://elsewhere", "PUT", None),
                                      ("https://a.example.org", "DELETE", None),
                                      ("https://a.example.org", "PUT", "x-other"),
                                      ("http://elsewhere", "GET", "x-other")):
            no = preflight(c, node, "/web/k", origin, method, asked)
            refused(no, 403, "AccessForbidden")
            check(no.headers[ALLOW + "Origin"] is None, "a refusal that allows")
        refused(preflight(c, node, "/nowhere/k", "http://elsewhere", "GET"), 403,
                "AccessForbidden")
        refused(S3(c, node=node).call("OPTIONS", "/web/k"), 400, "BadRequest")


def test_requests_of_pages(c):
    origin = {"Origin": "https://a.example.org"}
    c.put("web", "o", b"data")
    for node in NODES:
        s3 = root_of(c, node)
        reply = s3.call("GET", "/web/o", headers=origin).expect(200)
        equal([reply.headers[n] for n in (ALLOW + "Origin", "Access-Control-Expose-Headers",
                                          "Vary")],
              ["https://a.example.org", "ETag",
               "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"],
              "headers of a reply")
        s3.call("PUT", "/web/p", b"x", headers=origin).expect(200)
        missing = s3.call("GET", "/web/none", headers=origin)
        refused(missing, 404, "NoSuchKey")
        equal(missing.headers[ALLOW + "Origin"], "https://a.example.org", "origin of an error")
        unsigned = S3(c, node=node).call("GET", "/web/o", headers=origin)
        refused(unsigned, 403, "AccessDenied")
        equal(unsigned.headers[ALLOW + "Origin"], "https://a.example.org", "origin of a refusal")
        for other in ({}, {"Origin": "http://elsewhere"}):
            written = s3.call("PUT", "/web/p", b"x", headers=other).expect(200)
            check(written.headers[ALLOW + "Origin"] is None, "a page that no rule allows")


def test_the_listener_of_s3(c):
    port = c.ports.base + c.ports.SIZE - 1
    c.kill("p2", "-9")
    c.start("p2", f"--arg=--s3-port={port}")
    c.wait_node("p2", "active")
    s3 = S3(c, base=f"http://127.0.0.1:{port}")
    reply = s3.call("OPTIONS", "/web/o", headers={"Origin": "http://elsewhere",
                                                  "Access-Control-Request-Method": "GET"})
    equal(reply.expect(200).headers[ALLOW + "Origin"], "*", "a preflight")


if __name__ == "__main__":
    main(GuardedCluster, proxies=2, targets=3)
