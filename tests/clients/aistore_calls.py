"""What aistore_sdk.py has AIStore's SDK do, in the SDK's own Python:  aistore_calls.py URL SET"""

import io
import os
import sys

import msgspec
from aistore.sdk import Client, ListObjectFlag
from aistore.sdk.errors import AISError, ErrBckAlreadyExists, ErrBckNotFound, ErrObjNotFound
from aistore.sdk.obj.object_props import ObjectProps  # noqa: F401 (its name is part of the API)
from aistore_checks import equal, raises

BIG = os.urandom(3 << 20)
URL, SET = sys.argv[1:3]


def reader_of(o, **options):
    return o.get_reader(**options) if hasattr(o, "get_reader") else o.get(**options)


# --- the cluster and its buckets -----------------------------------------------------------------


def the_cluster(c):
    smap = c.cluster().get_info()
    assert smap.tmap and smap.pmap and smap.proxy_si.daemon_type == "proxy", smap
    equal({n.daemon_type for n in smap.tmap.values()}, {"target"}, "types of targets")
    equal(c.cluster().is_ready(), True, "is_ready")


def buckets(c):
    b = c.bucket("sdk-b").create()
    raises(ErrBckAlreadyExists, (409,), b.create)
    b.create(exist_ok=True)
    assert "sdk-b" in [m.name for m in c.cluster().list_buckets()]
    equal({m.provider for m in c.cluster().list_buckets()}, {"ais"}, "providers")
    equal(c.cluster().list_buckets(provider="aws"), [], "buckets of AWS")
    assert '"provider":"ais"' in b.head()["Ais-Bucket-Props"]
    b.rename("sdk-renamed")
    equal(b.name, "sdk-renamed", "the name")
    assert "sdk-b" not in [m.name for m in c.cluster().list_buckets()]
    b.delete()
    raises(ErrBckNotFound, (404,), b.delete)
    b.delete(missing_ok=True)
    raises(AISError, (404,), b.head)
    raises(ErrBckNotFound, (404,), b.list_objects)
    raises(ErrBckNotFound, (404,), reader_of(b.object("o")).read_all)
    raises(ErrBckNotFound, (404,), b.object("o").get_writer().put_content, b"x")


# --- objects -------------------------------------------------------------------------------------


def objects(c):
    b = c.bucket("sdk-objects").create()
    names = ["o", "a/b/c", "ü€", "with space", "plus+and&=%25", "big", "empty"]
    for name in names:
        data = BIG if name == "big" else b"" if name == "empty" else name.encode()
        o = b.object(name)
        o.get_writer().put_content(data)
        equal(reader_of(o).read_all(), data, name)
        p = o.props
        equal((p.size, p.present, p.bucket_name), (len(data), True, "sdk-objects"), name)
        assert p.checksum_value and p.obj_version, name
    head = b.client.request("head", path="objects/sdk-objects/o", params=b.qparam).headers
    equal(head["Content-Type"], "application/octet-stream", "the type of what the SDK stores")
    equal(sorted(e.name for e in b.list_all_objects()), sorted(names), "the list")
    o = b.object("o")
    o.get_writer().put_content(b"anew")
    equal(reader_of(o).read_all(), b"anew", "overwritten")
    o.delete()
    raises(ErrObjNotFound, (404,), reader_of(o).read_all)
    raises(AISError, (404,), o.head)
    raises(ErrObjNotFound, (404,), o.delete)
    b.delete()


def reads(c):
    b = c.bucket("sdk-reads").create()
    o = b.object("big")
    o.get_writer().put_content(BIG)
    equal(reader_of(o, byte_range="bytes=100-299").read_all(), BIG[100:300], "a range")
    equal(b"".join(reader_of(o)), BIG, "in chunks")
    equal(reader_of(o).raw().read(), BIG, "raw")
    equal(reader_of(o, direct=True).read_all(), BIG, "direct")
    with reader_of(o).as_file() as file:
        equal(file.read(1000), BIG[:1000], "as a file")
        equal(file.read(), BIG[1000:], "the rest of the file")
    writer = io.BytesIO()
    reader_of(o, writer=writer).read_all()
    equal(writer.getvalue(), BIG, "into a writer")
    attributes = reader_of(o).attributes
    equal((attributes.size, attributes.present), (len(BIG), True), "attributes")
    equal(attributes.checksum_type, "xxh3", "the checksum's type")
    properties = o.props
    equal((properties.name, properties.bucket_name, properties.bucket_provider, properties.size),
          ("big", "sdk-reads", "ais", len(BIG)), "properties")
    b.delete()


def files(c):
    b = c.bucket("sdk-files").create()
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "aistore_calls.py")
    b.object("file").get_writer().put_file(path)
    with open(path, "rb") as f:
        equal(reader_of(b.object("file")).read_all(), f.read(), "the file")
    equal(b.put_files(os.path.dirname(path), pattern="aistore_calls.py"), ["aistore_calls.py"],
          "names of files")
    b.delete()


# --- lists ---------------------------------------------------------------------------------------


def names_of(entries):
    return [e.name for e in entries]


def lists(c):
    b = c.bucket("sdk-lists").create()
    equal(b.list_all_objects(), [], "an empty bucket")
    equal(list(b.list_objects_iter()), [], "an empty bucket")
    names = sorted([f"a/{i:03}" for i in range(40)] + ["b", "c/d", "é"], key=str.encode)
    for name in names:
        b.object(name).get_writer().put_content(name.encode())
    equal(names_of(b.list_all_objects()), names, "all")
    equal(names_of(b.list_all_objects(page_size=7)), names, "in pages")
    equal(names_of(b.list_objects_iter(page_size=1)), names, "one by one")
    equal(names_of(b.list_all_objects(prefix="a/01")), names[10:20], "of a prefix")
    equal(b.list_all_objects(prefix="nothing"), [], "of a prefix that nothing has")
    page = b.list_objects(page_size=5)
    equal(names_of(page.entries), names[:5], "a page")
    assert page.continuation_token and page.uuid
    entry = page.entries[0]
    equal((entry.size, entry.is_cached(), entry.is_ok()), (5, True, True), "an entry")
    assert entry.version and entry.checksum
    equal(reader_of(entry.object).read_all(), b"a/000", "the object of an entry")
    bare = b.list_objects(flags=[ListObjectFlag.NAME_ONLY]).entries[0]
    equal((bare.name, bare.size, bare.version), ("a/000", 0, ""), "a name")
    sized = b.list_objects(flags=[ListObjectFlag.NAME_SIZE]).entries[0]
    equal((sized.name, sized.size, sized.version), ("a/000", 5, ""), "a name and its size")
    level = b.list_objects(flags=[ListObjectFlag.NO_RECURSION]).entries
    equal([(e.name, e.flags >> 8 & 1) for e in level],
          [("a/", 1), ("b", 0), ("c/", 1), ("é", 0)], "one level")
    equal(sum(1 for _ in b.list_all_objects_iter(prefix="a/")), 40, "objects")
    raises(AISError, (501,), b.list_objects, flags=[ListObjectFlag.MISSING])
    b.delete()


def forms(c):
    """The page itself, by another reader of MessagePack."""
    b = c.bucket("sdk-forms").create()
    for i in range(20):
        b.object("n" * (i * 20 + 1)).get_writer().put_content(b"x" * (i * 50))
    reply = b.client.request(
        "get", path="buckets/sdk-forms", params=b.qparam, headers={"Accept": "application/msgpack"},
        json={"action": "list", "value": {"prefix": "", "flags": "0", "pagesize": 0}})
    equal(reply.headers["Content-Type"], "application/msgpack", "the type")
    page = msgspec.msgpack.decode(reply.content)
    equal([(e["n"], e["s"]) for e in page["Entries"]],
          [("n" * (i * 20 + 1), i * 50) for i in range(20)], "entries")
    b.delete()


# --- what is refused -----------------------------------------------------------------------------


def refused(c):
    b = c.bucket("sdk-refused").create()
    o = b.object("o")
    o.get_writer().put_content(b"bytes")
    for call in (lambda: o.get_writer().append_content(b"more"),
                 lambda: o.promote("/nowhere"),
                 lambda: b.info(prefix="o"),
                 lambda: c.cluster().list_etls()):
        text = raises(AISError, (501,), call)
        assert "not_supported" in text or "MESSAGE:," in text, text  # HEAD has no body
    equal(reader_of(o).read_all(), b"bytes", "the object")
    b.delete()


def anonymous(c):
    b = c.bucket("closed")
    o = b.object("o")
    for call in (lambda: c.cluster().get_info(), lambda: c.cluster().list_buckets(), b.delete,
                 b.head, b.list_objects, lambda: b.rename("open"), c.bucket("mine").create,
                 reader_of(o).read_all, o.head, o.delete,
                 lambda: o.get_writer().put_content(b"x"),
                 lambda: o.get_writer().append_content(b"x"),
                 lambda: b.objects(obj_names=["o"]).delete(), lambda: o.promote("/nowhere")):
        raises(AISError, (401, 403), call)


def reader(c):
    b = c.bucket("shared")
    o = b.object("o")
    equal(names_of(b.list_all_objects()), ["o"], "the list")
    equal(reader_of(o).read_all(), b"bytes", "the bytes")
    equal([m.name for m in c.cluster().list_buckets()], ["shared"], "what is seen")
    for call in (b.delete, o.delete, lambda: b.rename("mine"), c.bucket("mine").create,
                 lambda: o.get_writer().put_content(b"x"),
                 c.bucket("closed").list_objects, reader_of(c.bucket("closed").object("o")).read_all):
        raises(AISError, (403,), call)


SETS = {"all": (the_cluster, buckets, objects, reads, files, lists, forms), "refused": (refused,),
        "anonymous": (anonymous,), "reader": (reader,)}

if __name__ == "__main__":
    for step in SETS[SET]:
        step(Client(URL, retry_config=None))
