"""Random requests for a data set of make_dataset.py, the same for the same seed."""

import json
import os
import random
import re

import formats
import sortref


def random_extension(seed):
    """Of the input: half of them are tars."""
    rng = random.Random(f"extension {seed}")
    return rng.choice((".tar",) * 5 + formats.INPUTS[1:])


def random_input(rng, shards, extension):
    """(input_format, further fields)"""
    kind = rng.random()
    if kind < 0.35 or not shards:
        return {"prefix": rng.choice(("", "shard-", "shard-00", "nothing"))}, {}
    if kind < 0.7:
        names = rng.sample(shards, rng.randrange(1, len(shards) + 1))
        return {"objnames": [n if rng.random() < 0.8 else n[:-len(extension)] for n in names]}, {}
    last = len(shards) - 1
    text = rng.choice(("shard-{000..%03d}" + extension, "shard-{000..%03d}",
                       "shard-@%03d" + extension, "shard-{000..%03d..2}" + extension))
    if rng.random() < 0.3:  # beyond the last one: shards that are missing
        fields = {"missing_shards": rng.choice(("warn", "ignore", "abort"))}
        return {"template": text % (last + rng.randrange(1, 3))}, fields
    return {"template": text % last}, {}


def random_output(rng, total, extension):
    """Names and size; about one in ten names too few shards."""
    count = rng.choice((1, 2, 5, 40, 1000))
    size = rng.choice((1, 1024, 10240, 65536, total // 3 + 1, 2 * total + 1))
    text = rng.choice(("out-%06d" + extension, "out-%d", "deep/er/out-%03d"))
    if rng.random() < 0.5:
        return {
            "output_format": text, "output_shard_size": rng.choice((size, f"{size // 1024 + 1}KiB"))
        }
    bounded = rng.choice(("o-{0..%d}" % (count - 1), "o-{00..03}-{0..%d}" % (count - 1),
                          "o-@%d" % (count - 1) + extension, "é-{%04d..%04d}" % (7, 6 + count)))
    fields = {"output_format": bounded}
    if rng.random() < 0.3:
        fields["output_shard_size"] = max(size, total // max(count, 1))
    return fields


def random_algorithm(rng):
    kind = rng.choice(("alphanumeric", "alphanumeric", "", "shuffle", "shuffle", "none", "md5",
                       "natural", "content", "content"))
    fields = {"kind": kind}
    if kind == "shuffle":
        fields["seed"] = str(rng.choice((0, 1, rng.randrange(2**63), 2**64 - 1)))
    if kind == "content":
        fields["extension"] = rng.choice((".cls", ".cls", ".json", ".jpg"))
        fields["content_key_type"] = rng.choice(("int", "float", "string"))
    if kind != "none" and rng.random() < 0.4:
        fields["decreasing"] = True
    return fields


def known_names(directory, shards, spec):
    """Names of records; those of shards that can be read."""
    names = set()
    for place, name in enumerate(shards):
        try:
            path = os.path.join(directory, name)
            names |= {r.name for r in sortref.read_shard(spec, name, place, path, None)}
        except sortref.SortError:
            pass
    return sorted(names)


def random_keys(rng, names, separator):
    """Most of the names, some in other words; or patterns that part them."""
    names = [n for n in names if n and not set(n) & set(b"\n\r\0" + separator) and
             sortref.raw_name(n.decode("utf-8", "ignore")) == n]
    keys = [n for n in names if rng.random() < 0.95]
    keys = [re.escape(n) + rng.choice((b"$", b"")) if rng.random() < 0.05 else n for n in keys]
    if rng.random() < 0.3:
        keys += rng.choice(
            ((b"^[a-m].*", b"^[^a-m]"), (rb"^\w", rb"^\W"), (b"(?:a|b)+?", b"[0-5]{2,}"), (b".*", ),
             (b"^", b"x?$"), (b"((", b"a**", b"[z-a]")))
    return keys


def random_map(rng, directory, shards, spec):
    """Writes an external key map beside the shards; the fields for it."""
    separator = rng.choice((b"\t", b"\t", b" ", b"::"))
    texts = rng.choice((["all-%04d"], ["a-%d", "b-{000..999}", "c/d-@2000"], ["a-%d", "b-{0..0}"],
                        ["x-%d", "x-{2..9}"], ["k%d-%%03d" % i for i in range(20)], ["é-%d",
                                                                                     "bad"]))
    keys = random_keys(rng, known_names(directory, shards, {**spec, "missing_keys": "ignore"}),
                       separator)
    pairs = [(k, rng.choice(texts)) for k in keys]
    if rng.random() < 0.4:
        byform = {}
        for key, text in pairs:
            byform.setdefault(text, []).append(key.decode())
        data = json.dumps(byform, ensure_ascii=rng.random() < 0.5,
                          indent=rng.choice((None, 2))).encode()
    else:
        end = rng.choice((b"\n", b"\r\n", b"\n\n"))
        data = end.join(k + separator + t.encode() for k, t in pairs) + rng.choice((end, b""))
        data += rng.choice((b"",) * 8 + (b"\nno separator", b"\na" + separator + b"b" + separator))
    with open(os.path.join(directory, "keys.map"), "wb") as f:
        f.write(data)
    fields = {"ekm_file": rng.choice(("dfc://in/keys.map", "ais://in/keys.map")),
              "output_shard_size": rng.choice((1024, 10240, "64KiB", "1MiB"))}
    if separator != b"\t":
        fields["ekm_file_sep"] = separator.decode()
    for field in ("ekm_missing_key", "ekm_malformed_line"):
        if rng.random() < 0.8:
            fields[field] = rng.choice(("warn", "ignore"))
    if rng.random() < 0.2:
        fields["ekm_keys"] = rng.choice(("exact", "auto"))
    return fields


def random_spec(seed, directory, shards, extension=".tar"):
    """The body of POST /v1/sort, without its buckets."""
    rng = random.Random(f"spec {seed}")
    kept = extension in formats.EXTENSIONS and rng.random() < 0.4
    output = extension if kept else rng.choice(formats.EXTENSIONS)
    total = sum(os.path.getsize(os.path.join(directory, name)) for name in shards)
    form, fields = random_input(rng, shards, extension)
    spec = {"input_format": form, "algorithm": random_algorithm(rng), "allow_empty": True, **fields,
            **random_output(rng, total, output)}
    if extension != ".tar" or rng.random() < 0.5:
        spec["input_extension"] = extension
    if output != extension or rng.random() < 0.5:
        spec["output_extension"] = output
    if rng.random() < 0.5:
        spec["unreadable_shards"] = rng.choice(("abort", "warn", "ignore"))
    if rng.random() < 0.85:
        spec["missing_keys"] = rng.choice(("warn", "ignore"))
    if rng.random() < 0.2:
        spec["key_rule"] = "last_dot"
    if rng.random() < 0.2:
        spec["duplicated_output_records"] = rng.choice(("warn", "ignore", "abort"))
    if rng.random() < 0.3:
        spec["output_extension"] = output
        spec.update(random_map(rng, directory, shards, spec))
        if rng.random() < 0.8:  # which is not looked at
            del spec["output_format"]
    return {**spec, **random_indexes(rng, output, seed)}


def random_indexes(rng, extension, seed):
    """What is made beside the output."""
    fields = {}
    if rng.random() < 0.3:
        fields["wids_index"] = rng.choice(("index.json", "deep/index.json", "a/b/é.json"))
    if extension == ".tar" and rng.random() < (0.9 if seed % 2 else 0.1):
        fields["dali_indexes"] = True
    return fields
