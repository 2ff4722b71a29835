"""Google Cloud Storage's JSON API, and the token service before it, as far as the tests need them:
fake_s3.py's
faults, and its words for tests (put, fail, has, written, count).

    with FakeGCS(directory) as gcs:
        os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = gcs.key_file
        gcs.put("bucket", "a/b", b"bytes")

Written from Google's description of the API and not from the code that is tested.  The service
account's key is
made by `openssl`, which also verifies what is signed with it.  Objects have generations; uploads
are resumable
sessions; small objects have a crc32c, larger ones an MD5 (this here has to compute them).  Faults
of a session
stand under the key of its object; those of its beginning under BEGIN, those of the token service
under TOKEN.

More faults: of a PUT to a session

    read_at=N         as of S3; what was read stays, in whole pieces of 256 KiB
    keep=N            that many of its bytes are kept, and the answer says so (308)

A rewrite takes rewrite_steps steps.

It is the metadata server of a machine, too (GCE_METADATA_HOST=gcs.host), whose faults stand under
METADATA (foreign=True: without the header that says it is Google's), and gives tokens for the
refresh token that write_user() writes.
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.parse

from fake_s3 import FakeS3, Handler, Refused

BEGIN, TOKEN, METADATA = "(begin)", "(token)", "(metadata)"
METADATA_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
USER = {
    "client_id": "id+1", "client_secret": "aSecret/NobodyMaySee",
    "refresh_token": "1//aRefresh&NobodyMaySee"
}
PIECE, CRC_MAX = 256 << 10, 64 << 10
SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return base64.b64encode((crc ^ 0xFFFFFFFF).to_bytes(4, "big")).decode()


def md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def unbase64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class GcsHandler(Handler):
    def send_json(self, document, status=200, headers=None):
        self.send_whole(status,
                        json.dumps(document).encode(),
                        {"Content-Type": "application/json", **(headers or {})})

    def send_error_document(self, status, code, message, headers):
        if self.path == "/token":
            self.send_json({"error": code, "error_description": message}, status, headers)
        elif self.query.get("alt") == "media":  # the errors of bytes are plain text
            self.send_whole(status, message.encode(), {"Content-Type": "text/html", **headers})
        else:
            document = {"error": {"code": status, "message": message, "errors": [{"reason": code}]}}
            self.send_json(document, status, headers)

    # --- reading

    def check_generation(self, generation):
        """False: it is the one that is not wanted."""
        wanted = self.query.get("ifGenerationMatch")
        if wanted is not None and wanted != generation:
            raise Refused(412, "conditionNotMet",
                          "At least one of the pre-conditions you specified did not hold.")
        return self.query.get("ifGenerationNotMatch") != generation

    def send_object(self, data, fault):
        service = self.server.service
        bucket, key = service.locate(self)
        if key == METADATA:
            self.send_json(service.new_token(), 200,
                           {} if "foreign" in fault else {"Metadata-Flavor": "Google"})
            return
        generation = service.etag(bucket, key)
        if self.query.get("alt") != "media":
            self.send_json(service.document(bucket, key))
            return
        if not self.check_generation(generation):
            self.send_whole(304, b"", {"x-goog-generation": generation})
            return
        status, start, end = self.range_of(len(data), fault)
        body = data[start:end]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("ETag", f"CL{generation}EAE=")
        self.send_header("x-goog-generation", generation)
        if len(data) <= CRC_MAX:
            self.send_header("x-goog-hash", f"crc32c={crc32c(data)}")
        if len(data) > CRC_MAX:
            self.send_header("x-goog-hash", f"md5={md5(data)}")
        encoding = fault.get("encoding") or service.encoding_of(bucket, key)
        if encoding:
            if "gzip" not in (self.headers.get("Accept-Encoding") or ""):
                raise Refused(500, "unpacked", "the object was not asked for as it is stored")
            self.send_header("Content-Encoding", encoding)
            self.send_header("x-goog-stored-content-encoding", encoding)
        self.send_header("Content-Type", service.type_of(bucket, key))
        for name, value in service.meta(bucket, key).items():
            self.send_header("x-goog-meta-" + name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(body, fault)

    def list(self, service, bucket):
        query = self.query
        limit = min(int(query.get("maxResults", 1000)), service.page_max)
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        token = query.get("pageToken")
        start = query.get("startOffset", "") if token is None else ""
        after = base64.b64decode(token).decode() if token else ""
        page, more = service.page_from(bucket, prefix, delimiter, start, after, token is not None,
                                       limit)
        document = {"kind": "storage#objects"}
        if items := [service.document(bucket, name) for name, is_prefix in page if not is_prefix]:
            document["items"] = items
        if prefixes := [name for name, is_prefix in page if is_prefix]:
            document["prefixes"] = prefixes
        if more:
            document["nextPageToken"] = base64.b64encode(page[-1][0].encode()).decode()
        self.send_json(document)

    # --- writing

    def read_body(self, fault):
        session = self.server.service.session_of(self)
        if session is None or "read_at" not in fault:
            return super().read_body(fault)
        got = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), fault["read_at"]))
        session["data"] += got[:len(got) // PIECE * PIECE]
        return self.reset()

    def write(self, service, bucket, key, fault):
        if key == TOKEN:
            self.send_json(service.grant(self.body.decode()))
            return
        session = service.session_of(self)
        if session is not None:
            self.write_session(service, session, fault)
        elif "/rewriteTo/" in self.path:
            self.done(200, json.dumps(self.rewrite(service, bucket, key)).encode(), {}, fault)
        elif self.command == "POST":
            url = service.begin_session(bucket, json.loads(self.body),
                                        int(self.headers["X-Upload-Content-Length"]))
            self.send_whole(200, b"", {"Location": url})
        else:
            service.get(bucket, key)
            service.delete(bucket, key)
            self.done(204, b"", {}, fault)

    def rewrite(self, service, bucket, key):
        source = urllib.parse.unquote(
            re.fullmatch(r"/storage/v1/b/[^/]+/o/([^/]+)/rewriteTo/.*", self.path)[1])
        data, generation = service.get(bucket, source), service.etag(bucket, source)
        if self.query["ifSourceGenerationMatch"] != generation:
            raise Refused(412, "conditionNotMet",
                          "At least one of the pre-conditions you specified did not hold.")
        done = int(self.query.get("rewriteToken", "step+/0")[6:]) + 1
        document = {
            "kind": "storage#rewriteResponse", "objectSize": str(len(data)),
            "done": done == service.rewrite_steps
        }
        if not document["done"]:
            return {**document, "rewriteToken": f"step+/{done}"}
        service.store(bucket, key, data, service.type_of(bucket,
                                                         source), meta=service.meta(bucket, source),
                      encoding=service.encoding_of(bucket, source))
        service.next_generation(bucket, key)
        return {**document, "resource": service.document(bucket, key)}

    def done(self, status, body, headers, fault):
        if "deaf" in fault:
            self.reset()
        self.send_whole(status, body, headers)

    def write_session(self, service, session, fault):
        if self.command == "DELETE":
            session["aborted"] = True
            self.send_whole(499, b"", {})
            return
        first, total = re.fullmatch(r"bytes (?:\*|(\d+)-\d+)/(\d+)",
                                    self.headers["Content-Range"]).groups()
        if int(total) != session["size"] or session["aborted"]:
            raise Refused(410, "gone", "this session has ended")
        if first is not None and session["done"] is None:
            if int(first) != len(session["data"]):
                raise Refused(400, "invalid",
                              f"bytes from {first} on, and {len(session['data'])} are there")
            session["data"] += self.body[:fault.get("keep", len(self.body))]
        if len(session["data"]) == session["size"] and session["done"] is None:
            session["done"] = service.end_session(session)
        if session["done"] is not None:
            self.done(200,
                      json.dumps(session["done"]).encode(), {"Content-Type": "application/json"},
                      fault)
            return
        have = len(session["data"])
        self.done(308, b"", {"Range": f"bytes=0-{have - 1}"} if have else {}, fault)


class FakeGCS(FakeS3):
    handler = GcsHandler

    def __init__(self, directory, public=False, page_max=1000):
        super().__init__(page_max=page_max)
        self.rewrite_steps = 1
        self.directory, self.public = tempfile.mkdtemp(dir=directory), public
        self.sessions, self.tokens = {}, {}
        self.generation, self.token_life = 1_700_000_000_000_000, 3600
        self.said_life = None  # seconds that a token is said to be good for, where it is for longer
        self.private_file, self.public_file = (os.path.join(self.directory, n)
                                               for n in ("key.pem", "public.pem"))
        subprocess.run([
            "openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out",
            self.private_file
        ], check=True, capture_output=True)
        subprocess.run(
            ["openssl", "pkey", "-in", self.private_file, "-pubout", "-out", self.public_file],
            check=True, capture_output=True)
        self.key_file = self.write_key("key.json", self.private_file)
        self.host = self.url.removeprefix("http://")

    def write_key(self, name, private_file, **fields):
        path = os.path.join(self.directory, name)
        with open(private_file, encoding="ascii") as pem, open(path, "w", encoding="ascii") as f:
            json.dump(
                {
                    "type": "service_account", "client_email": "tests@example.iam",
                    "private_key_id": "k1", "private_key": pem.read(),
                    "token_uri": self.url + "/token", **fields
                }, f)
        return path

    def write_user(self, path, **fields):
        with open(path + ".new", "w", encoding="ascii") as f:
            json.dump(
                {"type": "authorized_user", **USER, "token_uri": self.url + "/token", **fields}, f)
        os.rename(path + ".new", path)

    # --- tokens

    def verify(self, assertion):
        signed, _, signature = assertion.rpartition(".")
        paths = [os.path.join(self.directory, n) for n in ("signed", "signature")]
        with self.lock:
            for path, data in zip(paths, (signed.encode(), unbase64url(signature))):
                with open(path, "wb") as f:
                    f.write(data)
            done = subprocess.run([
                "openssl", "dgst", "-sha256", "-verify", self.public_file, "-signature", paths[1],
                paths[0]
            ], check=False, capture_output=True)
        header, claims = (json.loads(unbase64url(part)) for part in signed.split("."))
        return (done.returncode == 0 and header == {"alg": "RS256", "typ": "JWT", "kid": "k1"} and
                claims["iss"] == "tests@example.iam" and claims["aud"] == self.url + "/token" and
                claims["scope"] == SCOPE and claims["exp"] - claims["iat"] <= 3600 and
                abs(claims["iat"] - time.time()) < 300)

    def grant(self, body):
        fields = dict(urllib.parse.parse_qsl(body))
        if fields.get("grant_type") == "refresh_token":
            if fields != {"grant_type": "refresh_token", **USER}:
                raise Refused(400, "invalid_grant", "Token has been expired or revoked.")
        elif fields.get("grant_type") != GRANT or not self.verify(fields.get("assertion", "")):
            raise Refused(400, "invalid_grant", "Invalid JWT Signature.")
        return self.new_token()

    def new_token(self):
        with self.lock:
            token = f"ya29.aTokenThatNobodyMaySee{len(self.tokens)}"
            self.tokens[token] = time.time() + self.token_life
        return {
            "access_token": token, "expires_in": self.said_life or self.token_life,
            "token_type": "Bearer"
        }

    def revoke(self):
        with self.lock:
            self.tokens = dict.fromkeys(self.tokens, 0)

    def authorize(self, request):
        key = self.locate(request)[1]
        if key == METADATA and request.headers.get("Metadata-Flavor") != "Google":
            raise Refused(403, "forbidden", "Missing Metadata-Flavor:Google header.")
        if self.public or key in (TOKEN, METADATA) or self.session_of(request) is not None:
            return
        token = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        with self.lock:
            if self.tokens.get(token, 0) < time.time():
                raise Refused(401, "authError", "Invalid Credentials")

    # --- where

    def locate(self, request):
        path = urllib.parse.urlsplit(request.path).path
        if path == "/token":
            return "", TOKEN
        if path == METADATA_PATH:
            return "", METADATA
        session = self.session_of(request)
        if session is not None:
            return session["bucket"], session["key"]
        found = re.fullmatch(
            r"(/upload)?/storage/v1/b/([^/]+)/o(?:/[^/]*/rewriteTo/b/[^/]*/o)?(?:/([^/]*))?", path)
        if found is None:
            raise Refused(404, "notFound", "Not Found")
        upload, bucket, key = found.groups()
        return bucket, BEGIN if upload else urllib.parse.unquote(key or "")

    def get(self, bucket, key):
        if key == METADATA:
            return b""
        with self.lock:
            if bucket not in self.objects:
                raise Refused(404, "notFound", "The specified bucket does not exist.")
            if key not in self.objects[bucket]:
                raise Refused(404, "notFound", f"No such object: {bucket}/{key}")
            return self.objects[bucket][key]

    # --- objects

    def put(self, bucket, key, data, meta=None):
        super().put(bucket, key, data, meta)
        self.next_generation(bucket, key)

    def next_generation(self, bucket, key):
        with self.lock:
            self.generation += 1
            self.etags[bucket, key] = str(self.generation)

    def document(self, bucket, key):
        data = self.get(bucket, key)
        return {
            "kind": "storage#object", "name": key, "bucket": bucket, "size": str(len(data)),
            "generation": self.etag(bucket, key), "md5Hash": md5(data),
            "updated": "2023-11-14T22:13:20.000Z"
        }

    def page_from(self, bucket, prefix, delimiter, start, after, from_token, limit):
        """startOffset is the first name that counts."""
        if bucket not in self.objects:
            raise Refused(404, "notFound", "The specified bucket does not exist.")
        with self.lock:
            names = self.objects[bucket]
            self.objects[bucket,
                         "cut"] = {n: d
                                   for n, d in names.items() if n.encode() >= start.encode()}
        page = self.page((bucket, "cut"), prefix, delimiter, after, from_token, limit)
        with self.lock:
            self.objects.pop((bucket, "cut"), None)
        return page

    # --- sessions

    def session_of(self, request):
        name = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(
            request.path).query)).get("upload_id")
        with self.lock:
            return self.sessions.get(name)

    def begin_session(self, bucket, document, size):
        with self.lock:
            if bucket not in self.objects:
                raise Refused(404, "notFound", "The specified bucket does not exist.")
            self.last += 1
            name = f"aSessionThatNobodyMaySee{self.last}"
            self.sessions[name] = {
                "bucket": bucket, "key": document["name"], "md5": document.get("md5Hash"),
                "type": document.get("contentType"), "meta": document.get("metadata"), "size": size,
                "encoding": document.get("contentEncoding"), "data": b"", "done": None,
                "aborted": False
            }
        return f"{self.url}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={name}"

    def end_session(self, session):
        bucket, key = session["bucket"], session["key"]
        if session["md5"] != md5(session["data"]):
            raise Refused(400, "invalid", "Provided MD5 hash does not match the content")
        self.store(bucket, key, session["data"], session["type"], meta=session["meta"],
                   encoding=session["encoding"])
        self.next_generation(bucket, key)
        return self.document(bucket, key)

    def uploads(self):
        with self.lock:
            return {
                n: s
                for n, s in self.sessions.items() if s["done"] is None and not s["aborted"]
            }
