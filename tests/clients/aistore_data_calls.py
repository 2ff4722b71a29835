"""What aistore_data.py has AIStore's SDK do, in the SDK's own Python:  aistore_data_calls.py URL SET"""

import io
import os
import sys
import tarfile

from aistore.sdk import Client
from aistore.sdk.archive_config import ArchiveConfig
from aistore.sdk.errors import AISError, ErrBckNotFound, ErrObjNotFound
from aistore_checks import equal, raises

BIG = os.urandom(3 << 20)
URL, SET = sys.argv[1:3]


def put(bucket, objects):
    for name, data in objects.items():
        bucket.object(name).get_writer().put_content(data)


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


# --- batches -------------------------------------------------------------------------------------

FILES = {"dir/a.txt": b"first file", "b + c&d": b"a member", "b.bin": bytes(range(256)) * 40, "empty": b""}
OBJECTS = {"o": b"bytes", "dir/p": b"others", "é €": b"named", "big": BIG, "none": b"",
           "s.tar": tar_of(FILES)}


def forms_of_a_batch(c, b):
    """Whatever the form is: bytes, names and what the client wants back."""
    for extension in (".tar", ".tgz", ".tar.gz", ".zip"):
        for streams in (True, False):
            batch = c.batch(list(OBJECTS), bucket=b, output_format=extension, streaming_get=streams)
            batch.add("s.tar", archpath="dir/a.txt", opaque=b"\x00\xff mine")
            got = list(batch.get())
            what = f"{extension}, streaming: {streams}"
            equal([i.obj_name for i, _ in got], [*OBJECTS, "s.tar"], what)
            equal([data for _, data in got], [*OBJECTS.values(), FILES["dir/a.txt"]], what)
            equal([i.size for i, _ in got], [*map(len, OBJECTS.values()), 10], what)
            equal([(i.bucket, i.provider, i.err_msg) for i, _ in got],
                  [("sdk-batch", "ais", None)] * 7, what)
            equal(got[-1][0].archpath, "dir/a.txt", what)
            if not streams:  # the release 1.26.0 keeps nothing that no report brings back
                equal(got[-1][0].opaque, b"\x00\xff mine", what)


def names_in_a_batch(c, b):
    for only, wanted in ((True, ["o", "s.tar/b.bin", "__404__/nothing"]),
                         (False, ["sdk-batch/o", "sdk-batch/s.tar/b.bin", "__404__/sdk-batch/nothing"])):
        batch = c.batch(["o"], bucket=b, only_obj_name=only)
        batch.add("s.tar", archpath="b.bin").add("nothing")
        raw = batch.get(raw=True).read()
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            equal(tar.getnames(), wanted, f"only_obj_name: {only}")


def ranges_in_a_batch(c, b):
    for streams in (True, False):
        batch = c.batch(bucket=b, streaming_get=streams)
        batch.add("big", start=1000, length=70000).add("big", start=len(BIG) - 5, length=-1)
        batch.add("o", length=2).add("none", length=-1)
        batch.add("s.tar", archpath="b.bin", start=200, length=100)
        wanted = [BIG[1000:71000], BIG[-5:], b"by", b"", FILES["b.bin"][200:300]]
        got = list(batch.get())
        equal([data for _, data in got], wanted, "ranges")
        equal([i.size for i, _ in got], [len(data) for data in wanted], "sizes")


def missing_in_a_batch(c, b):
    for streams in (True, False):
        batch = c.batch(["o", "nothing", "dir/p"], bucket=b, streaming_get=streams)
        batch.add("s.tar", archpath="nowhere").add("x", bck="sdk-nobody", provider="ais")
        got = list(batch.get())
        equal([data for _, data in got], [b"bytes", b"", b"others", b"", b""], "bytes")
        if not streams:  # … nor looks for what is missing
            equal([bool(i.err_msg) for i, _ in got], [False, True, False, True, True], "errors")
        strict = c.batch(["nothing", "o"], bucket=b, cont_on_err=False, streaming_get=streams)
        raises(ErrObjNotFound, (404,), strict.get)
        strict = c.batch(cont_on_err=False, streaming_get=streams)
        raises(ErrBckNotFound, (404,), strict.add("x", bck="sdk-nobody", provider="ais").get)


def batches(c):
    b = c.bucket("sdk-batch").create()
    put(b, OBJECTS)
    forms_of_a_batch(c, b)
    names_in_a_batch(c, b)
    ranges_in_a_batch(c, b)
    missing_in_a_batch(c, b)
    config = ArchiveConfig(archpath="b + c&d")
    equal(b.object("s.tar").get_reader(archive_config=config).read_all(), b"a member", "a name")
    other = c.bucket("sdk-other").create()
    put(other, {"o": b"of another bucket"})
    got = list(c.batch([b.object("o"), other.object("o")]).get(decode_as_stream=True))
    equal([(i.bucket, data) for i, data in got],
          [("sdk-batch", b"bytes"), ("sdk-other", b"of another bucket")], "two buckets")
    many = c.batch(["o"] * 3000, bucket=b, streaming_get=False)
    equal(sum(len(data) for _, data in many.get(decode_as_stream=True)), 15000, "many entries")
    raises(AISError, (501,), c.batch().add("x", bck="b", provider="aws").get)
    b.delete()
    other.delete()


# --- uploads in parts ----------------------------------------------------------------------------


def upload(o, parts):
    u = o.multipart_upload().create()
    for number, data in parts:
        u.add_part(number).put_content(data)
    return u


def uploads(c):
    b = c.bucket("sdk-uploads").create()
    small, large = b"of few bytes", os.urandom(6 << 20)
    for parts in ([(1, small)], [(1, large), (2, large[::-1]), (3, small)], [(1, small), (2, small)],
                  [(3, small), (1, large), (7, b"")], [(1, b"other"), (2, large), (1, small)]):
        o = b.object("dir/ü o")
        u = upload(o, parts)
        u.complete()
        equal(o.get_reader().read_all(), b"".join(data for _, data in sorted(dict(parts).items())),
              f"parts {[n for n, _ in parts]}")
    head = b.client.request("head", path="objects/sdk-uploads/dir/ü o", params=b.qparam).headers
    equal(head["Content-Type"], "application/octet-stream", "the type of what the SDK stores")
    path = os.path.realpath(__file__)
    u = b.object("file").multipart_upload().create()
    u.add_part(1).put_file(path)
    u.complete()
    with open(path, "rb") as f:
        equal(b.object("file").get_reader().read_all(), f.read(), "a part of a file")
    u = upload(b.object("gone"), [(1, small)])
    u.abort()
    raises(AISError, (404,), u.complete)
    raises(AISError, (404,), u.add_part(2).put_content, small)
    raises(ErrObjNotFound, (404,), b.object("gone").get_reader().read_all)
    u = upload(b.object("lacks"), [(1, small)])
    u.parts.append(2)
    raises(AISError, (400,), u.complete)
    raises(ErrObjNotFound, (404,), b.object("lacks").get_reader().read_all)
    raises(AISError, (400,), u.add_part(10001).put_content, small)
    raises(ErrBckNotFound, (404,), c.bucket("sdk-nobody").object("o").multipart_upload().create)
    b.delete()


# --- metadata and copies -------------------------------------------------------------------------


def metadata(c):
    b = c.bucket("sdk-meta").create()
    for name, data in (("ü o", b"bytes"), ("empty", b""), ("large", BIG)):
        o = b.object(name)
        o.get_writer().put_content(data)
        o.get_writer().set_custom_props({"color": "red", "size": "a b"})
        equal(o.props.custom_metadata, {"color": "red", "size": "a b"}, name)
        o.get_writer().set_custom_props({"color": "blue", "more": "of it"})
        equal(o.props.custom_metadata, {"color": "blue", "size": "a b", "more": "of it"}, name)
        o.get_writer().set_custom_props({"alone": "é"}, replace_existing=True)
        assert list(o.props.custom_metadata) == ["alone"], o.props.custom_metadata
        o.get_writer().set_custom_props({}, replace_existing=True)
        equal(o.props.custom_metadata, {}, name)
        equal(o.get_reader().read_all(), data, name)
    w = b.object("ü o").get_writer()
    for wrong in ({"a b": "x"}, {"": "x"}, {"a": " x"}, {"a": "x\r\ny: z"}, {"a": "x" * 3000}):
        raises(AISError, (400,), w.set_custom_props, wrong)
    raises(ErrObjNotFound, (404,), b.object("none").get_writer().set_custom_props, {"a": "b"})
    b.delete()


def copies(c):
    b, other = c.bucket("sdk-from").create(), c.bucket("sdk-to").create()
    for name, data in (("a/ü o", b"bytes"), ("empty", b""), ("large", BIG)):
        o = b.object(name)
        o.get_writer().put_content(data)
        o.get_writer().set_custom_props({"color": "red"})
        for to in (other.object("dir/é + copy"), b.object("copy of " + name)):
            o.copy(to)
            equal(to.get_reader().read_all(), data, to.name)
            equal(to.props.custom_metadata, {"color": "red"}, to.name)
    raises(AISError, (400,), o.copy, o)
    raises(ErrObjNotFound, (404,), b.object("none").copy, other.object("none"))
    raises(AISError, (404,), o.copy, c.bucket("sdk-nobody").object("x"))
    raises(AISError, (501,), o.copy, other.object("x"), latest=True)
    raises(AISError, (501,), o.copy, other.object("x"), sync=True)
    equal([e.name for e in other.list_all_objects()], ["dir/é + copy"], "what there is")
    b.delete()
    other.delete()


# --- who may what --------------------------------------------------------------------------------


def anonymous(c):
    for streams in (True, False):
        batch = c.batch(["o"], bucket=c.bucket("closed"), streaming_get=streams)
        raises(AISError, (401,), batch.get)
    upload_in_vain(c.bucket("closed").object("o"), 401)
    write_in_vain(c.bucket("closed").object("o"), c.bucket("closed").object("p"), 401)


def write_in_vain(o, to, status):
    raises(AISError, (status,), o.copy, to)
    raises(AISError, (status,), o.get_writer().set_custom_props, {"a": "b"})


def upload_in_vain(o, status):
    u = o.multipart_upload()
    raises(AISError, (status,), u.create)
    u.upload_id = "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_w"
    for call in (lambda: u.add_part(1).put_content(b"x"), u.complete, u.abort):
        raises(AISError, (status,), call)


def reader(c):
    shared, closed = c.bucket("shared"), c.bucket("closed")
    equal([data for _, data in c.batch(["o"], bucket=shared).get()], [b"bytes"], "what it may read")
    for streams in (True, False):
        for objects in ([closed.object("o")], [shared.object("o"), closed.object("o")]):
            raises(AISError, (403,), c.batch(objects, streaming_get=streams).get)
    for bucket in (shared, closed):
        upload_in_vain(bucket.object("o"), 403)
        write_in_vain(bucket.object("o"), shared.object("p"), 403)


SETS = {"all": (batches, uploads, metadata, copies), "anonymous": (anonymous,), "reader": (reader,)}

if __name__ == "__main__":
    for step in SETS[SET]:
        step(Client(URL, retry_config=None))
