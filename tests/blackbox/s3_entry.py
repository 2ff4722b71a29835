#!/usr/bin/env python3
"""The way in for S3 requests: who signs what, at every node, and what is refused."""

import json

from access_lib import GuardedCluster, make_user
from lib import Cluster, check, equal, main
from s3_lib import S3, code_of, refused, root_of, time_text


def test_a_signed_request_gets_the_buckets_that_its_user_may_list(c):
    c.create("mine")
    c.create("other")
    user = make_user(c, "lister", [{"rights": ["list"], "bucket": "mine"}])
    equal(root_of(c).buckets(), ["mine", "other"], "root's buckets")
    equal(S3(c, user.access, user.secret).buckets(), ["mine"], "the user's buckets")


def test_a_wrong_secret_or_an_unknown_key_is_refused(c):
    refused(S3(c, c.root.access, "x" * 40).call("GET", "/"), 403, "SignatureDoesNotMatch")
    refused(S3(c, "A" * 20, c.root.secret).call("GET", "/"), 403, "InvalidAccessKeyId")


def test_a_disabled_user_is_refused_although_its_key_was_used_before(c):
    user = make_user(c, "leaves", [{"rights": ["list"], "bucket": "mine"}])
    client = S3(c, user.access, user.secret)
    equal(client.buckets(), ["mine"], "buckets")
    c.call("PUT", "/v1/users/leaves", {"enabled": False}).expect(200)
    refused(client.call("GET", "/"), 403, "InvalidAccessKeyId")


def test_a_request_must_be_of_now(c):
    root = root_of(c)
    root.call("GET", "/", time=time_text(-800)).expect(200)
    for offset_s in (-1000, 1000):
        refused(root.call("GET", "/", time=time_text(offset_s)), 403, "RequestTimeTooSkewed")


def test_a_request_must_be_for_this_region(c):
    refused(root_of(c, region="eu-west-1").call("GET", "/"), 400, "AuthorizationHeaderMalformed")


def test_a_presigned_url_is_good_until_it_expires(c):
    root = root_of(c)
    equal(c.http.request("GET", root.presigned("GET", "/")).status, 200, "status")
    late = root.presigned("GET", "/", expires_s=60, time=time_text(-120))
    refused(c.http.request("GET", late), 403, "AccessDenied")
    refused(c.http.request("PUT", root.presigned("GET", "/mine/o"), b"x"), 403,
            "SignatureDoesNotMatch")


def test_nobody_may_do_what_anonymous_may_not(c):
    nobody = S3(c)
    refused(nobody.call("GET", "/"), 403, "AccessDenied")
    refused(nobody.call("GET", "/mine/o"), 403, "AccessDenied")


def test_an_operation_without_its_right_is_denied(c):
    user = make_user(c, "reader", [{"rights": ["read"], "bucket": "mine", "prefix": "a/"}])
    client = S3(c, user.access, user.secret)
    refused(client.call("PUT", "/mine/a/o", b"x"), 403, "AccessDenied")
    refused(client.call("GET", "/mine/b/o"), 403, "AccessDenied")
    refused(client.call("DELETE", "/mine"), 403, "AccessDenied")


def test_what_is_not_done_is_said(c):
    root = root_of(c)
    refused(root.call("GET", "/mine", pairs=[("website", "")]), 404, "NoSuchWebsiteConfiguration")
    reply = root.call("PUT", "/mine", b"", pairs=[("versioning", "")])
    refused(reply, 501, "NotImplemented")
    check(b"PutBucketVersioning" in reply.body, f"the operation is named: {reply.body}")
    refused(root.call("PATCH", "/mine/o", b""), 405, "MethodNotAllowed")
    refused(root.call("PUT", "/mine/o", b"x", headers={"x-amz-server-side-encryption": "AES256"}),
            501, "NotImplemented")


def test_every_node_compares_signatures(c):
    for node in ("p1", "t1"):
        client = root_of(c, node=node)
        refused(client.call("PUT", "/mine", b"", pairs=[("versioning", "")]), 501, "NotImplemented")
        refused(S3(c, c.root.access, "x" * 40, node).call("GET", "/mine/o"), 403,
                "SignatureDoesNotMatch")


def s3_url(c, node):
    with open(c.node_dir(node) + "/ready.json", encoding="utf-8") as f:
        return json.load(f).get("s3_url")


def test_a_listener_for_s3_alone(c):
    equal(s3_url(c, "p1"), None, "the S3 listener before it is asked for")
    port = c.ports.base + c.ports.SIZE - 1
    c.stop("p1")
    c.start("p1", f"--arg=--s3-port={port}")
    client = root_of(c, base=s3_url(c, "p1"))
    equal(client.buckets(), ["mine", "other"], "buckets")
    refused(S3(c, base=client.base).call("GET", "/"), 403, "AccessDenied")
    refused(S3(c, base=client.base).call("GET", "/v1/health"), 403, "AccessDenied")
    odd = c.http.request("GET", client.base + "/%zz")
    check(odd.status == 400, f"a bad escape: {odd}")
    equal(code_of(odd), "InvalidArgument", "code of a bad escape")


def test_the_local_starter_makes_s3_listeners(c):
    block = (c.ports.base - c.ports.FIRST) // c.ports.SIZE
    base = 10000 + 6 * (block % 160)  # it and 1000 above are below the ports of other tests
    c = Cluster(targets=1, args=("--s3", "--base-port", base))
    endpoint = f"http://127.0.0.1:{c.address('p1')[1] + 1000}"
    check(f"DFC_S3_ENDPOINT={endpoint}\n" in c.run("up").stdout, "what `up` prints")
    c.create("b")
    for node, other in (("p1", "t1"), ("t1", "p1")):
        S3(c, base=s3_url(c, node)).call("PUT", "/b/" + node, b"x").expect(200)
        equal(S3(c, base=s3_url(c, other)).call("GET", "/b/" + node).body, b"x", "bytes")
    equal(s3_url(c, "p1"), endpoint, "s3_url")
    c.remove()


def test_an_open_cluster_takes_any_credentials_or_none(_):
    c = Cluster(targets=1)
    c.create("b")
    equal(S3(c).buckets(), ["b"], "without credentials")
    equal(S3(c, "ANYBODY", "anything").buckets(), ["b"], "with some")
    c.remove()


if __name__ == "__main__":
    main(GuardedCluster, targets=1)
