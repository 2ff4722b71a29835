"""An S3 service, and a plain HTTP server, that can be told to fail: for the tests of cold reads.

    with FakeS3(keys={"AKID": "secret"}) as s3:
        s3.put("bucket", "a/b", b"bytes")
        s3.fail("a/b", cut_at=100)            # the next answer for this key breaks off there
        s3.count("a/b")                       # requests for the key so far

It runs in threads of the test's own process, on a free port of 127.0.0.1.  Signatures (Version 4) are
computed here once more, from Amazon's description and not from the code that is tested; a request
without a right one is 403.  Without keys nothing is signed.  With plain=True it is an HTTP server:
the path is the name.

Faults of one answer, in the order of fail() calls, each once:

    status=503, retry_after="1"   an error document, and that header
    cut_at=N          the connection is reset after N bytes of the body; who has not read them, or the
                      head, by then does not get them
    short=N           N bytes too few, and a clean end of the connection
    flip=True         one bit of the body is another one
    etag='"x"'        another entity tag
    hold=Event        the head and the first held_bytes bytes go out, the rest when the event is set
    stall=Event       nothing at all goes out before the event is set
    redirect=URL      302 there
    no_ranges=True    a Range is passed over
    chunked=True      no Content-Length
    change=BYTES      the object has these bytes from now on
"""

import email.utils
import hashlib
import hmac
import http.server
import re
import socket
import struct
import threading
import urllib.parse
import xml.sax.saxutils

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
MODIFIED = 1_700_000_000


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def canonical_query(query):
    pairs = [p.partition("=")[::2] for p in query.split("&") if p]
    quoted = sorted((urllib.parse.quote(urllib.parse.unquote(k), safe="-_.~"),
                     urllib.parse.quote(urllib.parse.unquote(v), safe="-_.~")) for k, v in pairs)
    return "&".join(f"{k}={v}" for k, v in quoted)


def signature(secret, method, path, query, headers, signed, date, region, service):
    """As "Authenticating Requests: Using the Authorization Header" has it."""
    lines = "".join(f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed)
    request = "\n".join([method, path, canonical_query(query), lines, ";".join(signed),
                         headers.get("x-amz-content-sha256", "")])
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (date[:8], region, service, "aws4_request"):
        key = digest(key, part)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    def do_HEAD(self):
        self.answer()

    def answer(self):
        service = self.server.service
        bucket, key = service.locate(self)
        fault = service.note(key, self)
        try:
            if "stall" in fault:
                fault["stall"].wait()
            if "redirect" in fault:
                self.send_whole(302, b"", {"Location": fault["redirect"]})
                return
            if "status" in fault:
                extra = {"Retry-After": fault["retry_after"]} if "retry_after" in fault else {}
                raise InjectedError(fault["status"], extra)
            service.authorize(self)
            if "change" in fault:
                service.put(bucket, key, fault["change"])
            if not key:
                self.list(service, bucket)
            else:
                self.send_object(service.get(bucket, key), fault)
        except InjectedError as e:
            self.send_error_document(e.status, "InjectedError", "as the test wants it", e.headers)
        except Refused as e:
            self.send_error_document(e.status, e.code, e.message, {})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

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

    def send_object(self, data, fault):
        etag = fault.get("etag", f'"{hashlib.md5(data).hexdigest()}"')
        wanted = self.headers.get("If-Match")
        if wanted not in (None, "*", etag):
            raise Refused(412, "PreconditionFailed", "At least one condition did not hold")
        status, start, end = self.range_of(len(data), fault)
        body = data[start:end]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("ETag", etag)
        self.send_header("Content-Type", "application/x-test")
        self.send_header("Last-Modified", email.utils.formatdate(MODIFIED, usegmt=True))
        if "chunked" in fault:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(body, fault)

    def write(self, data, fault):
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
            self.write(body[:first], fault)
            fault["hold"].wait()
            body = body[first:]
        if "cut_at" in fault:
            self.write(body[:fault["cut_at"]], fault)
            self.reset()
        elif "short" in fault:
            self.write(body[:len(body) - fault["short"]], fault)
            self.close_connection = True
        else:
            self.write(body, fault)
            if "chunked" in fault:
                self.wfile.write(b"0\r\n\r\n")

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()
        raise ConnectionResetError

    def list(self, service, bucket):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query,
                                            keep_blank_values=True))
        prefix, limit = query.get("prefix", ""), int(query.get("max-keys", 1000))
        after = query.get("continuation-token") or query.get("start-after", "")
        names = sorted((n for n in service.names(bucket) if n.startswith(prefix) and n > after),
                       key=str.encode)
        page, rest = names[:limit], names[limit:]
        body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>"
        for name in page:
            data = service.get(bucket, name)
            body += (f"<Contents><Key>{urllib.parse.quote(name)}</Key><Size>{len(data)}</Size>"
                     f"<ETag>&quot;{hashlib.md5(data).hexdigest()}&quot;</ETag></Contents>")
        body += f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>"
        if rest:
            body += f"<NextContinuationToken>{xml.sax.saxutils.escape(page[-1])}</NextContinuationToken>"
        self.send_whole(200, (body + "</ListBucketResult>").encode(),
                        {"Content-Type": "application/xml"})


class InjectedError(Exception):
    def __init__(self, status, headers):
        super().__init__(status)
        self.status, self.headers = status, headers


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # a client that leaves is what tests do


class FakeS3:
    def __init__(self, keys=None, token=None, region="us-east-1", plain=False):
        self.keys, self.token, self.region, self.plain = keys or {}, token, region, plain
        self.lock = threading.Lock()
        self.objects, self.faults, self.seen = {}, {}, {}
        self.requests = []  # (method, key, headers)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.service = self
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with self.lock:
            for faults in self.faults.values():
                for event in (f.get(n) for f in faults for n in ("hold", "stall")):
                    if event:
                        event.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    # What tests say and ask.

    def put(self, bucket, key, data):
        with self.lock:
            self.objects.setdefault(bucket, {})[key] = data

    def remove(self, bucket, key):
        with self.lock:
            del self.objects[bucket][key]

    def fail(self, key, times=1, **fault):
        with self.lock:
            self.faults.setdefault(key, []).extend([fault] * times)

    def calm(self):
        with self.lock:
            self.faults.clear()

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
            faults = self.faults.get(key)
            return faults.pop(0) if faults else {}

    def names(self, bucket):
        with self.lock:
            return list(self.objects.get(bucket, {}))

    def get(self, bucket, key):
        with self.lock:
            if bucket not in self.objects:
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            if key not in self.objects[bucket]:
                raise Refused(404, "NoSuchKey", "The specified key does not exist.")
            return self.objects[bucket][key]

    def authorize(self, request):
        if not self.keys:
            return
        headers = {n.lower(): v for n, v in request.headers.items()}
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
                             r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
                             headers.get("authorization", ""))
        if not found:
            raise Refused(403, "AccessDenied", "Anonymous access is forbidden")
        access, day, region, names, got = found.groups()
        date, signed = headers.get("x-amz-date", ""), names.split(";")
        if access not in self.keys:
            raise Refused(403, "InvalidAccessKeyId", "The AWS Access Key Id is not in our records")
        if region != self.region or date[:8] != day or signed != sorted(signed):
            raise Refused(403, "AuthorizationHeaderMalformed", "The scope is not right")
        missing = [n for n in headers if n.startswith("x-amz-") and n not in signed]
        if "host" not in signed or missing:
            raise Refused(403, "AccessDenied", f"Headers that must be signed: {missing}")
        if self.token is not None and headers.get("x-amz-security-token") != self.token:
            raise Refused(403, "InvalidToken", "The provided token is malformed")
        path, _, query = request.path.partition("?")
        if got != signature(self.keys[access], request.command, path, query, headers, signed, date,
                            region, "s3"):
            raise Refused(403, "SignatureDoesNotMatch", "The request signature does not match")
