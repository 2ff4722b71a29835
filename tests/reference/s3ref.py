#!/usr/bin/env python3
"""Signatures, chunks and checksums of S3, computed from Amazon's description with Python's standard
library alone.

    s3ref.py --write FILE    the vectors of the unit tests of s3/
    s3ref.py --check FILE    the file has these vectors
    s3ref.py --botocore      botocore signs these requests alike; 77 without botocore
"""

import argparse
import base64
import hashlib
import hmac
import json
import random
import sys
import urllib.parse
import zlib

REGION, KEY_ID, SECRET = "us-east-1", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
TIME, NOW = "20130524T000000Z", 1369353600
EMPTY = hashlib.sha256(b"").hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"
SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = SIGNED_CHUNKS + "-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def sha(data):
    return hashlib.sha256(data).hexdigest()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signing_key(secret, day, region):
    key = ("AWS4" + secret).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = mac(key, part)
    return key


def scope_of(time, region):
    return f"{time[:8]}/{region}/s3/aws4_request"


def quote(text, safe="-_.~"):
    return urllib.parse.quote(text.encode(), safe=safe)


def canonical_query(pairs):
    return "&".join(f"{k}={v}" for k, v in sorted((quote(k), quote(v)) for k, v in pairs))


def signature(method, key, pairs, headers, signed, payload, time=TIME, region=REGION,
              secret=SECRET):
    """`key`: the decoded path; `headers`: (name, value) in any case and order."""
    values = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(" ".join(value.split()))
    lines = "".join(f"{n}:{','.join(values[n])}\n" for n in signed)
    request = "\n".join([method, quote(key, "/-_.~"), canonical_query(pairs), lines,
                         ";".join(signed), payload])
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope_of(time, region), sha(request.encode())])
    return mac(signing_key(secret, time[:8], region), text).hex()


# --- requests ---------------------------------------------------------------------------------------

def escape_loosely(r, text, safe):
    """One of the many ways in which a client may write the same text."""
    out = ""
    for byte in text.encode():
        c = chr(byte)
        if c in safe or (c.isascii() and c.isalnum() and r.random() < 0.9):
            out += c
        else:
            out += f"%{byte:02x}" if r.random() < 0.3 else f"%{byte:02X}"
    return out


def raw_query(r, pairs):
    out = []
    for name, value in pairs:
        text = escape_loosely(r, value, "-_.~/:")
        if r.random() < 0.5:
            text = text.replace("%20", "+")
        out.append(escape_loosely(r, name, "-_.~")
                   + ("" if value == "" and r.random() < 0.5 else "=" + text))
    return "&".join(out)


def pick_key(r):
    return "/" + r.choice(["", "bucket", "b"]) + "".join(
        "/" + "".join(r.choice("aZ09-_.~ +%&=;:@$!*'(),\u00e9\u2603\U0001f600/")
                      for _ in range(r.randrange(8))) for _ in range(r.randrange(4)))


def pick_pairs(r):
    names = ["prefix", "list-type", "max-keys", "acl", "a b", "\u00e9", "X", "x", "marker"]
    return [(r.choice(names), r.choice(["", "2", "a/b", "x y", "1+1=2", "\u2603", "~*'"]))
            for _ in range(r.randrange(5))]


def pick_headers(r):
    headers = [("Host", r.choice(["h", "examplebucket.s3.amazonaws.com", "127.0.0.1:9000"]))]
    for name, value in (("Range", "bytes=0-9"), ("Content-Type", "text/plain;  charset=x"),
                        ("X-Amz-Meta-A", " two   blanks "), ("x-amz-meta-b", ""),
                        ("x-amz-meta-a", "again"), ("Accept-Encoding", "identity")):
        if r.random() < 0.4:
            headers.append((name, value))
    r.shuffle(headers)
    return headers


def names_to_sign(headers):
    return sorted({n.lower() for n, _ in headers if n.lower() != "accept-encoding"})


def request_row(r, method, path, query, headers, verdict="OK", now=NOW):
    text = "\n".join([method, escape_loosely(r, path, "/-_.~"), query]
                     + [f"{n}:{v}" for n, v in headers])
    return {"request": text, "now": now, "verdict": verdict}


def signed_request(r):
    method, path, pairs = r.choice(["GET", "PUT", "DELETE", "HEAD", "POST"]), pick_key(r), pick_pairs(r)
    payload = r.choice([EMPTY, UNSIGNED, SIGNED_CHUNKS, UNSIGNED_TRAILER, sha(b"x")])
    headers = pick_headers(r) + [("x-amz-date", TIME), ("X-Amz-Content-SHA256", payload)]
    signed = names_to_sign(headers)
    value = signature(method, path, pairs, headers, signed, payload)
    comma = r.choice([",", ", ", ",  "])
    credential = f"{KEY_ID}/{scope_of(TIME, REGION)}"
    fields = comma.join([f"Credential={credential}", f"SignedHeaders={';'.join(signed)}",
                         f"Signature={value}"])
    headers.append(("Authorization", "AWS4-HMAC-SHA256 " + fields))
    return method, path, pairs, headers


def presigned_request(r):
    method, path = r.choice(["GET", "PUT"]), pick_key(r)
    headers = pick_headers(r)
    signed = names_to_sign(headers)
    pairs = pick_pairs(r) + [
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        ("X-Amz-Credential", f"{KEY_ID}/{scope_of(TIME, REGION)}"), ("X-Amz-Date", TIME),
        ("X-Amz-Expires", "600"), ("X-Amz-SignedHeaders", ";".join(signed))]
    value = signature(method, path, pairs, headers, signed, UNSIGNED)
    return method, path, pairs + [("X-Amz-Signature", value)], headers


def changed(r, method, path, pairs, headers):
    """The same signature over another request."""
    kind = r.randrange(4)
    if kind == 0:
        return ("GET" if method != "GET" else "PUT"), path, pairs, headers
    if kind == 1:
        return method, path + "x", pairs, headers
    if kind == 2:
        return method, path, pairs + [("added", "1")], headers
    return method, path, pairs, [(n, v + "x" if n == "Host" else v) for n, v in headers]


def requests():
    r = random.Random(19)
    rows = []
    for number in range(80):
        make = presigned_request if number % 4 == 3 else signed_request
        method, path, pairs, headers = make(r)
        rows.append(request_row(r, method, path, raw_query(r, pairs), headers))
        wrong = changed(r, method, path, pairs, headers)
        rows.append(request_row(r, wrong[0], wrong[1], raw_query(r, wrong[2]), wrong[3],
                                "SignatureDoesNotMatch"))
    method, path, pairs, headers = signed_request(r)
    for shift, verdict in ((900, "OK"), (-900, "OK"), (901, "RequestTimeTooSkewed"),
                           (-901, "RequestTimeTooSkewed")):
        rows.append(request_row(r, method, path, raw_query(r, pairs), headers, verdict,
                                NOW + shift))
    method, path, pairs, headers = presigned_request(r)
    for shift, verdict in ((600, "OK"), (601, "AccessDenied"), (-900, "OK"),
                           (-901, "AccessDenied")):
        rows.append(request_row(r, method, path, raw_query(r, pairs), headers, verdict,
                                NOW + shift))
    return rows


# --- bodies -----------------------------------------------------------------------------------------

def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def crc64nvme(data):
    crc = (1 << 64) - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x9A6C9329AC4BC9B5 if crc & 1 else 0)
    return crc ^ ((1 << 64) - 1)


SUMS = {
    "crc32": lambda d: zlib.crc32(d).to_bytes(4, "big"),
    "crc32c": lambda d: crc32c(d).to_bytes(4, "big"),
    "crc64nvme": lambda d: crc64nvme(d).to_bytes(8, "big"),
    "sha1": lambda d: hashlib.sha1(d).digest(),
    "sha256": lambda d: hashlib.sha256(d).digest(),
}


def sum_text(name, data):
    return base64.b64encode(SUMS[name](data)).decode()


def chained(text, time, region, secret):
    return mac(signing_key(secret, time[:8], region), text).hex()


def chunk_signature(previous, data, time=TIME, region=REGION, secret=SECRET):
    text = "\n".join([SIGNED_CHUNKS.replace("STREAMING-", ""), time, scope_of(time, region),
                      previous, EMPTY, sha(data)])
    return chained(text, time, region, secret)


def trailer_signature(previous, trailers, time=TIME, region=REGION, secret=SECRET):
    text = "\n".join(["AWS4-HMAC-SHA256-TRAILER", time, scope_of(time, region), previous,
                      sha("".join(f"{n}:{v}\n" for n, v in trailers).encode())])
    return chained(text, time, region, secret)


def frame(chunks, payload, seed, trailers, time=TIME, region=REGION, secret=SECRET):
    """The body, aws-chunked; `chunks` without the last, which is empty."""
    out, previous = b"", seed
    for chunk in chunks + [b""]:
        line = f"{len(chunk):x}"
        if payload != UNSIGNED_TRAILER:
            previous = chunk_signature(previous, chunk, time, region, secret)
            line += f";chunk-signature={previous}"
        out += line.encode() + b"\r\n" + (chunk + b"\r\n" if chunk else b"")
    for name, value in trailers:
        out += f"{name}:{value}\r\n".encode()
    if payload == SIGNED_TRAILER:
        last = trailer_signature(previous, trailers, time, region, secret)
        out += f"x-amz-trailer-signature:{last}\r\n".encode()
    return out + b"\r\n"


def body_row(r, payload):
    chunks = [r.randbytes(r.choice([1, 2, 13, 100])) for _ in range(r.randrange(4))]
    data = b"".join(chunks)
    algorithm = r.choice(sorted(SUMS))
    trailers = [(f"x-amz-checksum-{algorithm}", sum_text(algorithm, data))]
    if payload == SIGNED_CHUNKS:
        trailers = []
    seed = sha(r.randbytes(8))
    return {"payload": payload, "seed": seed, "length": len(data),
            "trailers": [list(t) for t in trailers], "decoded": base64.b64encode(data).decode(),
            "body": base64.b64encode(frame(chunks, payload, seed, trailers)).decode()}


def bodies():
    r = random.Random(20)
    return [body_row(r, payload) for _ in range(8)
            for payload in (SIGNED_CHUNKS, SIGNED_TRAILER, UNSIGNED_TRAILER)]


def sums():
    r = random.Random(21)
    rows = []
    for data in [b"", b"123456789", *(r.randbytes(n) for n in (1, 7, 8, 9, 64, 1000))]:
        rows += [{"type": name, "data": base64.b64encode(data).decode(),
                  "value": sum_text(name, data)} for name in sorted(SUMS)]
    return rows


# --- files ------------------------------------------------------------------------------------------

def vectors_text():
    sections = []
    for name, rows in (("requests", requests()), ("bodies", bodies()), ("sums", sums())):
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        sections.append(f'"{name}": [\n  {lines}\n]')
    return "{\n" + ",\n".join(sections) + "\n}\n"


def check_published():
    """The examples of the Amazon S3 API reference."""
    headers = [("Host", "examplebucket.s3.amazonaws.com"), ("Range", "bytes=0-9"),
               ("x-amz-content-sha256", EMPTY), ("x-amz-date", TIME)]
    signed = names_to_sign(headers)
    assert signature("GET", "/test.txt", [], headers, signed, EMPTY) == (
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
    first = chunk_signature("4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
                            b"a" * 65536)
    assert first == "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"
    assert trailer_signature("2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
                             [("x-amz-checksum-crc32c", "sOO8/Q==")]) == (
        "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435")
    assert crc32c(b"123456789") == 0xE3069283
    assert crc64nvme(b"123456789") == 0xAE8B14860A799888


def check_botocore():
    """botocore's own signer gives the same signature for the same request."""
    try:
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
    except ImportError:
        print("botocore is not installed")
        sys.exit(77)
    r = random.Random(22)
    for _ in range(200):
        key = pick_key(r).replace("//", "/")
        pairs = sorted(set(pick_pairs(r)))
        query = "&".join(f"{quote(k)}={quote(v)}" for k, v in pairs)
        url = "http://h.example" + quote(key, "/-_.~") + ("?" + query if query else "")
        request = AWSRequest("GET", url, headers={"x-amz-meta-a": "one  two"})
        signer = S3SigV4Auth(Credentials(KEY_ID, SECRET), "s3", REGION)
        request.context["payload_signing_enabled"] = False
        signer.add_auth(request)
        time = request.context["timestamp"]
        headers = [("host", "h.example"), ("x-amz-date", time), ("x-amz-meta-a", "one two"),
                   ("x-amz-content-sha256", request.headers["X-Amz-Content-SHA256"])]
        ours = signature("GET", key, pairs, headers, names_to_sign(headers),
                         request.headers["X-Amz-Content-SHA256"], time)
        assert request.headers["Authorization"].endswith("Signature=" + ours), url
    print("200 requests signed alike")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--check", metavar="FILE")
    parser.add_argument("--botocore", action="store_true")
    args = parser.parse_args()
    check_published()
    if args.write:
        with open(args.write, "w", encoding="utf-8") as out:
            out.write(vectors_text())
    if args.check:
        with open(args.check, encoding="utf-8") as found:
            if found.read() != vectors_text():
                sys.exit(f"{args.check} is not what this program makes")
    if args.botocore:
        check_botocore()


if __name__ == "__main__":
    main()
