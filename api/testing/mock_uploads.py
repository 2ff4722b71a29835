"""Uploads in parts of the mock cluster (docs/reference/http-api.md)."""

import hashlib
import json
import threading

from mock_objects import Failure, Object


class Uploads:
    """By id: the bucket, the object, the headers of its begin, and {number: bytes}."""

    def __init__(self):
        self.lock = threading.Lock()
        self.open = {}
        self.done = {}  # replies of completions
        self.begun = 0

    def begin(self, bucket, key, headers):
        with self.lock:
            self.begun += 1
            ident = "upload-%d" % self.begun
            self.open[ident] = {"bucket": bucket, "object": key, "headers": headers, "parts": {}}
        return ident

    def find(self, ident, bucket, key):
        """None: there is none of this object."""
        found = self.open.get(ident)
        return found if found and (found["bucket"], found["object"]) == (bucket, key) else None


def tag(data):
    return hashlib.md5(data).hexdigest()


def refused(upload, parts):
    """Why a completion with these parts fails: a code, or None."""
    numbers = [p["part"] for p in parts]
    if not parts or numbers != sorted(set(numbers)):
        return "invalid_part_order"
    for p in parts:
        data = upload["parts"].get(p["part"])
        if data is None or tag(data) != p["tag"]:
            return "invalid_part"
        if p is not parts[-1] and len(data) < 5 << 20:
            return "part_too_small"
    return None


def whole(upload, parts):
    data = b"".join(upload["parts"][p["part"]] for p in parts)
    meta = {k[9:]: v for k, v in upload["headers"].items() if k.lower().startswith("dfc-meta-")}
    return Object(data, upload["headers"].get("Content-Type"), meta)


def page(upload, after, limit):
    rows = [{"part": n, "tag": tag(d), "size": len(d), "time": 1}
            for n, d in sorted(upload["parts"].items()) if n > after]
    return json.dumps({"parts": rows[:limit], "more": len(rows) > limit})


class Calls:
    """A part of the mock's handler of requests."""

    def upload_call(self, bucket, key):
        objects = self.bucket(bucket)[1]
        if self.mock.uploads is None:
            raise Failure(404, "no_such_route", "no call has the path " + self.url_path)
        if self.server.role == "proxy":
            self.redirect(key)
            return
        ident = self.query.get("upload")
        upload = self.mock.uploads.find(ident, bucket, key)
        if ident in self.mock.uploads.done and self.command == "POST":
            self.body = self.read_body()
            self.note(self.body)
            self.reply_unless_act(200, self.mock.uploads.done[ident])
            return
        if ident and upload is None:
            raise Failure(404, "not_found", "there is no upload '%s'" % ident)
        body = self.body = self.read_body()
        self.note(body)
        if not ident:
            self.send_json(201, {"upload": self.mock.uploads.begin(bucket, key, self.headers)})
        elif self.command == "PUT":
            if self.step["do"] == "damage":
                body = body[:-1] + bytes([body[-1] ^ 1])
            upload["parts"][int(self.query["part"])] = body
            self.reply_unless_act(200, {"part": int(self.query["part"]), "size": len(body),
                                        "tag": tag(body)})
        elif self.command == "GET":
            self.send(200, page(upload, int(self.query.get("after", 0)),
                                self.mock.page_limit).encode())
        elif self.command == "DELETE":
            del self.mock.uploads.open[ident]
            self.send(204)
        else:
            self.upload_complete(objects, upload, ident, json.loads(body))

    def upload_list(self, bucket):
        self.bucket(bucket)
        self.note(None)
        after = (self.query.get("after", ""), self.query.get("after_upload", "~"))
        rows = [{"object": u["object"], "upload": ident, "time": 1}
                for ident, u in sorted(self.mock.uploads.open.items(),
                                       key=lambda i: (i[1]["object"], i[0]))
                if u["bucket"] == bucket and u["object"].startswith(self.query.get("prefix", ""))
                and (u["object"], ident) > after]
        limit = self.mock.page_limit
        self.send_json(200, {"uploads": rows[:limit], "more": len(rows) > limit})

    def upload_complete(self, objects, upload, ident, parts):
        code = refused(upload, parts)
        if code is None and self.headers.get("If-None-Match") == "*" \
                and upload["object"] in objects:
            code = "precondition_failed"
        if code is not None:
            raise Failure(412 if code == "precondition_failed" else 400, code, "refused")
        new = objects[upload["object"]] = whole(upload, parts)
        del self.mock.uploads.open[ident]
        reply = {"version": new.version, "etag": new.etag, "size": len(new.data), "tag": "x-1"}
        self.mock.uploads.done[ident] = reply
        self.reply_unless_act(200, reply)
