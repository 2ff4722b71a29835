"""An S3 service, and a plain HTTP server, that can be told to fail: for the tests of cold reads and
writes.

    with FakeS3(keys={"AKID": "secret"}) as s3:
        s3.put("bucket", "a/b", b"bytes")
        s3.fail("a/b", cut_at=100)            # the next answer for this key breaks off there
        s3.count("a/b")                       # requests for the key so far

It runs in threads of the test's own process, on a free port of 127.0.0.1.  Signatures (Version 4)
are computed here once more, from Amazon's description and not from the code that is tested; a
request without a right one is 403.  Without keys nothing is signed.  With plain=True it is an HTTP server:
the path is the name.

Objects are written, deleted, written in parts and listed as S3 has it; Content-MD5 is compared, and
what was signed of a body, too.  written() says what has been put, in order; uploads() which uploads
in parts are open.  With page_max a list's pages have no more names than that.  Objects larger than
copy_max are copied in parts alone.

Faults of one answer, in the order of fail() calls, each once; `method`, `part` and `first` (where
its range begins) say of which request (default: the next one for the key):

    status=503, retry_after="1"   an error document, and that header
    code="ExpiredToken"           the document's code
    raw_cut=N         the connection is reset after N bytes of the answer, its head counted
    cut_at=N          the connection is reset after N bytes of the body; who has not read them, or
                      the head, by then does not get them
    short=N           N bytes too few, and a clean end of the connection
    flip=True         one bit of the body is another one
    etag='"x"'        another entity tag
    hold=Event        the head and the first held_bytes bytes go out, the rest when the event is set
    stall=Event       nothing at all goes out before the event is set
    redirect=URL      302 there
    no_ranges=True    a Range is passed over
    chunked=True      no Content-Length
    endless=True      neither that nor chunks: the body ends with the connection
    part=N            status 206 with the first N bytes, whatever was asked
    change=BYTES      the object has these bytes from now on
    text=BYTES        that is the answer, with status 200
    read_at=N         of a request with a body: the connection is reset when N bytes of it were read
    deaf=True         what was asked is done, and the connection is reset instead of an answer
    late_error=True   of the end of an upload in parts, and of a copy: 200, and an error in the body
    trickle=SECONDS   each KiB of the body takes so long
    encoding="gzip"   that is its Content-Encoding, whatever the bytes
    no_tag=True       no entity tag; Last-Modified alone tells versions apart.  Of the end of an
                      upload in parts: an empty one, as Ceph's
    modified=SECONDS  Last-Modified
    no_conditions=True  If-None-Match and If-Modified-Since are passed over
"""

import base64
import email.utils
import hashlib
import http.server
import re
import socket
import struct
import threading
import urllib.parse
import xml.sax.saxutils

import s3_list
import sigv4
from fake_http import Cutter, InjectedError, Noughts, Refused, Server  # noqa: F401

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
MODIFIED = 1_700_000_000


KEPT = ("Cache-Control", "Content-Disposition", "Content-Language", "Expires")


def meta_of(headers):
    """User metadata, names in lower case; and the headers that an object keeps, by their names."""
    prefix = "x-amz-meta-"
    user = {n.lower()[len(prefix):]: v for n, v in headers.items() if n.lower().startswith(prefix)}
    return {**user, **{n: headers[n] for n in KEPT if headers.get(n) is not None}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0
    disable_nagle_algorithm = True  # heads and bodies are written one after the other

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    def do_HEAD(self):
        self.answer()

    def do_PUT(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def do_DELETE(self):
        self.answer()

    def answer(self):
        service = self.server.service
        bucket, key = service.locate(self)
        self.query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query,
                                                 keep_blank_values=True))
        fault = service.note(key, self)
        try:
            self.body = self.read_body(fault)
            if "raw_cut" in fault:
                self.wfile = Cutter(self.wfile, fault["raw_cut"], self.reset)
            if "stall" in fault:
                fault["stall"].wait()
            if "redirect" in fault:
                self.send_whole(302, b"", {"Location": fault["redirect"]})
                return
            if "status" in fault:
                extra = {"Retry-After": fault["retry_after"]} if "retry_after" in fault else {}
                raise InjectedError(fault["status"], fault.get("code", "InjectedError"), extra)
            service.authorize(self)
            if "text" in fault:
                self.send_whole(200, fault["text"], {"Content-Type": "application/xml"})
                return
            if "change" in fault:
                service.put(bucket, key, fault["change"])
            if self.command in ("PUT", "POST", "DELETE"):
                self.write(service, bucket, key, fault)
            elif not key:
                self.list(service, bucket)
            else:
                self.send_object(service.get(bucket, key), fault)
        except InjectedError as e:
            self.send_error_document(e.status, e.code, "as the test wants it", e.headers)
        except Refused as e:
            self.send_error_document(e.status, e.code, e.message, {})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            service.leave()
            if isinstance(self.wfile, Cutter):
                self.wfile = self.wfile.out

    # What is written.

    def read_body(self, fault):
        length = int(self.headers.get("Content-Length") or 0)
        if "read_at" in fault:
            self.rfile.read(min(length, fault["read_at"]))
            self.reset()
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionResetError
        return body

    def check_body(self):
        md5 = self.headers.get("Content-MD5")
        if md5 is not None and base64.b64decode(md5) != hashlib.md5(self.body).digest():
            raise Refused(400, "BadDigest", "The Content-MD5 did not match what was received")
        sha = self.headers.get("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
        if sha != "UNSIGNED-PAYLOAD" and sha != hashlib.sha256(self.body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch", "The payload is not what was signed")

    def write(self, service, bucket, key, fault):
        self.check_body()
        status, headers, body = 200, {}, b""
        upload = self.query.get("uploadId")
        late = (b"<?xml version=\"1.0\"?>\n  <Error><Code>InternalError</Code>"
                b"<Message>late</Message></Error>")
        if self.headers.get("x-amz-copy-source") is not None:
            body = late if "late_error" in fault else self.copy(service, bucket, key, upload)
        elif self.command == "POST" and "uploads" in self.query:
            name = service.begin(bucket, key, self.headers.get("Content-Type"),
                                 meta_of(self.headers), self.headers.get("Content-Encoding"))
            body = (f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket>"
                    f"<UploadId>{name}</UploadId></InitiateMultipartUploadResult>").encode()
        elif self.command == "POST":
            if "late_error" in fault:
                body = late
            else:
                etag = service.end(bucket, key, upload, self.body.decode())
                said = "" if "no_tag" in fault else xml.sax.saxutils.escape(etag)
                body = (f"<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult><ETag>"
                        f"{said}</ETag></CompleteMultipartUploadResult>").encode()
        elif self.command == "DELETE" and upload is not None:
            service.abort(upload)
            status = 204
        elif self.command == "DELETE":
            service.delete(bucket, key)
            status = 204
        elif upload is not None:
            headers["ETag"] = service.part(upload, int(self.query["partNumber"]), self.body)
        else:
            headers["ETag"] = service.store(bucket, key, self.body,
                                            self.headers.get("Content-Type"),
                                            meta=meta_of(self.headers),
                                            encoding=self.headers.get("Content-Encoding"))
        if "deaf" in fault:
            self.reset()
        self.send_whole(status, body, headers)

    def copy(self, service, bucket, key, upload):
        """CopyObject, which takes type and metadata along; UploadPartCopy."""
        name = urllib.parse.unquote(self.headers["x-amz-copy-source"])
        source = tuple(name.removeprefix("/").split("/", 1))
        data = service.get(*source)
        if self.headers["x-amz-copy-source-if-match"] != service.etag(*source):
            raise Refused(412, "PreconditionFailed", "At least one condition did not hold")
        if upload is None and len(data) > service.copy_max:
            raise Refused(400, "InvalidRequest",
                          "The specified copy source is larger than the maximum")
        if upload is None:
            tag, root = service.store(bucket, key, data, service.type_of(*source), None,
                                      service.meta(*source), service.encoding_of(*source)), "Object"
        else:
            first, last = re.fullmatch(r"bytes=(\d+)-(\d+)",
                                       self.headers["x-amz-copy-source-range"]).groups()
            if int(last) >= len(data):
                raise Refused(400, "InvalidArgument",
                              "Range specified is not valid for source object")
            tag, root = service.part(upload, int(self.query["partNumber"]),
                                     data[int(first):int(last) + 1]), "Part"
        return (
            f"<?xml version=\"1.0\"?>\n"
            f"<Copy{root}Result><LastModified>2009-10-28T22:32:00.000Z</LastModified>"
            f"<ETag>{xml.sax.saxutils.escape(tag)}</ETag></Copy{root}Result>").encode()

    # Replies.

    def send_whole(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error_document(self, status, code, message, headers):
        body = (f"<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code>"
                f"<Message>{xml.sax.saxutils.escape(message)}</Message></Error>").encode()
        self.send_whole(status, body, {"Content-Type": "application/xml", **headers})

    def range_of(self, size, fault):
        """(status, first, end) for the bytes that go out."""
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if not found or "no_ranges" in fault:
            return 200, 0, size
        first, last = found.groups()
        if first == "":
            start, end = max(0, size - int(last)), size
        else:
            start, end = int(first), min(size, int(last) + 1) if last else size
        if start >= size or start >= end:
            raise Refused(416, "InvalidRange", "The requested range is not satisfiable")
        return 206, start, end

    def modified(self, fault):
        return fault.get("modified", MODIFIED)

    def is_not_modified(self, etag, fault):
        if "no_conditions" in fault:
            return False
        if "no_tag" not in fault and self.headers.get("If-None-Match") is not None:
            return self.headers["If-None-Match"] == etag
        since = self.headers.get("If-Modified-Since")
        return (since is not None and
                email.utils.parsedate_to_datetime(since).timestamp() >= self.modified(fault))

    def send_object(self, data, fault):
        etag = fault.get("etag", self.server.service.etag(*self.server.service.locate(self)))
        wanted = self.headers.get("If-Match")
        if wanted not in (None, "*", etag):
            raise Refused(412, "PreconditionFailed", "At least one condition did not hold")
        if self.is_not_modified(etag, fault):
            self.send_response(304)
            self.send_header("ETag", etag)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        status, start, end = (206, 0, fault["part"]) if "part" in fault else self.range_of(
            len(data), fault)
        body = data[start:end]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        if "no_tag" not in fault:
            self.send_header("ETag", etag)
        encoding = fault.get("encoding") or self.server.service.encoding_of(
            *self.server.service.locate(self))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Type",
                         self.server.service.type_of(*self.server.service.locate(self)))
        self.send_header("Last-Modified", email.utils.formatdate(self.modified(fault), usegmt=True))
        for name, value in self.server.service.meta(*self.server.service.locate(self)).items():
            self.send_header(name if name in KEPT else "x-amz-meta-" + name, value)
        if "chunked" in fault:
            self.send_header("Transfer-Encoding", "chunked")
        elif "endless" in fault:
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(body, fault)

    def write_out(self, data, fault):
        for at in range(0, len(data), 1 << 20):
            piece = data[at:at + (1 << 20)]
            if "chunked" in fault:
                piece = b"%x\r\n%s\r\n" % (len(piece), piece)
            self.wfile.write(piece)

    def send_body(self, body, fault):
        if "flip" in fault:
            body = body[:-1] + bytes([body[-1] ^ 1])
        if "hold" in fault:
            first = fault["held_bytes"]
            self.write_out(body[:first], fault)
            fault["hold"].wait()
            body = body[first:]
        if "cut_at" in fault:
            self.write_out(body[:fault["cut_at"]], fault)
            self.reset()
        elif "short" in fault:
            self.write_out(body[:len(body) - fault["short"]], fault)
            self.close_connection = True
        elif "trickle" in fault:
            for at in range(0, len(body), 1024):
                self.write_out(body[at:at + 1024], fault)
                if self.server.service.ended.wait(fault["trickle"]):
                    break
        else:
            self.write_out(body, fault)
            if "chunked" in fault:
                self.wfile.write(b"0\r\n\r\n")

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()
        raise ConnectionResetError

    def list(self, service, bucket):
        """ListObjectsV2; a token is the last item of the page before."""
        query, quote = self.query, urllib.parse.quote
        if query.get("encoding-type") != "url":
            quote = xml.sax.saxutils.escape
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        limit = min(int(query.get("max-keys", 1000)), service.page_max)
        token = query.get("continuation-token")
        after = token if token is not None else query.get("start-after", "")
        page, more = service.page(bucket, prefix, delimiter, after, token is not None, limit)
        entries = [(name, None if is_prefix else (service.etag(bucket, name),
                                                  len(service.get(bucket, name))))
                   for name, is_prefix in page]
        body = s3_list.document(entries, more, quote)
        self.send_whole(200, body.encode(),
                        {"Content-Type": "application/xml"})


class FakeS3:
    handler = Handler

    def __init__(self, keys=None, token=None, region="us-east-1", plain=False, page_max=1000,
                 port=0):
        self.keys, self.token, self.region, self.plain = keys or {}, token, region, plain
        self.lock = threading.Lock()
        self.page_max, self.copy_max = page_max, 5 << 30
        self.objects, self.faults, self.seen = {}, {}, {}
        self.etags, self.types, self.metas = {}, {}, {
        }  # (bucket, key): of objects that came in parts; …
        self.encodings = {}
        self.open, self.puts, self.last, self.counted = {}, [], 0, {}
        self.requests = []  # (method, key, headers)
        self.running = 0  # requests under way
        self.always = {}  # faults of every answer for a key
        self.ended = threading.Event()
        self.server = Server(("127.0.0.1", port), self.handler)
        self.server.service = self
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        with self.lock:
            for faults in self.faults.values():
                for event in (f.get(n) for f in faults for n in ("hold", "stall")):
                    if event:
                        event.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
        self.server.cut_connections()

    # What tests say and ask.

    def put(self, bucket, key, data, meta=None):
        with self.lock:
            self.objects.setdefault(bucket, {})[key] = data
            self.metas[bucket, key] = meta or {}
            for facts in (self.etags, self.types, self.encodings):
                facts.pop((bucket, key), None)

    def remove(self, bucket, key):
        with self.lock:
            del self.objects[bucket][key]

    def has(self, bucket, key):
        with self.lock:
            return self.objects.get(bucket, {}).get(key)

    def written(self, key):
        """What the key was put to and deleted (None), in order."""
        with self.lock:
            return [data for _, k, data in self.puts if k == key]

    def uploads(self):
        with self.lock:
            return dict(self.open)

    def fail(self, key, times=1, **fault):
        with self.lock:
            self.faults.setdefault(key, []).extend([fault] * times)

    def is_so(self, key, **fault):
        """Every answer for the key (with `method`: to such requests), until calm()."""
        with self.lock:
            self.always[key] = fault

    def calm(self):
        with self.lock:
            self.faults.clear()
            self.always.clear()

    def count(self, key):
        with self.lock:
            return self.seen.get(key, 0)

    def headers_of(self, key):
        with self.lock:
            return [h for _, k, h in self.requests if k == key]

    # What the handler asks.

    def locate(self, request):
        path = urllib.parse.unquote(urllib.parse.urlsplit(request.path).path)
        if self.plain:
            return "", path.lstrip("/")
        host = (request.headers.get("Host") or "").split(":")[0]
        if host.endswith(".localhost"):
            return host[:-len(".localhost")], path[1:]
        bucket, _, key = path[1:].partition("/")
        return bucket, key

    def note(self, key, request):
        with self.lock:
            self.seen[key] = self.seen.get(key, 0) + 1
            self.requests.append((request.command, key, dict(request.headers.items())))
            self.running += 1
            faults, always = self.faults.get(key, []), self.always.get(key, {})
            if always.get("method", request.command) != request.command:
                always = {}
            part = int(request.query.get("partNumber", 0))
            found = re.match(r"bytes=(\d+)-", request.headers.get("Range") or "")
            first = int(found.group(1)) if found else None
            for i, f in enumerate(faults):
                if (f.get("method", request.command) == request.command and
                        f.get("part", part) == part and f.get("first", first) == first):
                    return {**always, **faults.pop(i)}
            return always

    def leave(self):
        with self.lock:
            self.running -= 1

    def is_idle(self):
        """Every request has had its answer, or its end."""
        with self.lock:
            return self.running == 0

    def many(self, bucket, count):
        """The bucket lists so many names, %09d, of no object."""
        with self.lock:
            self.objects[bucket], self.counted[bucket] = {}, count

    def page(self, bucket, prefix, delimiter, after, from_token, limit):
        if bucket in self.counted:
            return s3_list.page_of_many(self.counted[bucket], after, limit)
        with self.lock:
            if bucket not in self.objects:
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            names = sorted(self.objects[bucket], key=str.encode)
        return s3_list.page_of(names, prefix, delimiter, after, from_token, limit)

    def etag(self, bucket, key):
        data = self.get(bucket, key)
        with self.lock:
            known = self.etags.get((bucket, key))
        return known or f'"{hashlib.md5(data).hexdigest()}"'

    def type_of(self, bucket, key):
        with self.lock:
            return self.types.get((bucket, key)) or "application/x-test"

    def encoding_of(self, bucket, key):
        with self.lock:
            return self.encodings.get((bucket, key))

    def meta(self, bucket, key):
        with self.lock:
            return dict(self.metas.get((bucket, key), {}))

    def store(self, bucket, key, data, content_type, etag=None, meta=None, encoding=None):
        with self.lock:
            if bucket not in self.objects:
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            self.objects[bucket][key] = data
            self.types[bucket, key] = content_type
            self.metas[bucket, key] = meta or {}
            self.encodings[bucket, key] = encoding
            self.etags[bucket, key] = etag or f'"{hashlib.md5(data).hexdigest()}"'
            self.puts.append((bucket, key, data))
            return self.etags[bucket, key]

    def delete(self, bucket, key):
        with self.lock:
            self.objects.get(bucket, {}).pop(key, None)
            self.puts.append((bucket, key, None))

    def begin(self, bucket, key, content_type, meta, encoding=None):
        with self.lock:
            self.last += 1
            name = f"up/load+{self.last}=="
            self.open[name] = {
                "bucket": bucket, "key": key, "type": content_type, "meta": meta, "parts": {},
                "encoding": encoding
            }
            return name

    def upload(self, name):
        with self.lock:
            if name not in self.open:
                raise Refused(404, "NoSuchUpload", "The specified upload does not exist")
            return self.open[name]

    def part(self, name, number, data):
        self.upload(name)["parts"][number] = data
        return f'"{hashlib.md5(data).hexdigest()}"'

    def abort(self, name):
        self.upload(name)
        with self.lock:
            del self.open[name]

    def end(self, bucket, key, name, document):
        upload = self.upload(name)
        said = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>&quot;([0-9a-f]{32})&quot;</ETag>",
                          document)
        parts = [upload["parts"].get(int(number)) for number, _ in said]
        if not parts or [int(n) for n, _ in said] != sorted(upload["parts"]) or any(
                p is None or hashlib.md5(p).hexdigest() != tag for p, (_, tag) in zip(parts, said)):
            raise Refused(400, "InvalidPart", "One or more of the parts could not be found")
        if any(len(p) < 5 << 20 for p in parts[:-1]):
            raise Refused(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum")
        digest_of_all = hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest()
        etag = self.store(bucket, key, b"".join(parts), upload["type"],
                          f'"{digest_of_all}-{len(parts)}"', upload["meta"], upload["encoding"])
        with self.lock:
            del self.open[name]
        return etag

    def get(self, bucket, key):
        with self.lock:
            if bucket not in self.objects:
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            if bucket in self.counted:
                return b""
            if key not in self.objects[bucket]:
                raise Refused(404, "NoSuchKey", "The specified key does not exist.")
            return self.objects[bucket][key]

    def authorize(self, request):
        if self.keys:
            sigv4.authorize(request, self.keys, self.token, self.region)
