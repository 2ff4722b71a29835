#!/usr/bin/env python3
"""Placement by weighted highest random weight, a second time and independently of hrw/hrw.c.

    hrwref.py --write FILE    make hrw/vectors.json
    hrwref.py --check FILE    make them again and compare; also checks this file's own parts

Numbers of 64 bits stand in the file as 16 hex digits, for many languages' JSON reads no integer
beyond 2^53 exactly.
"""

import argparse
import decimal
import fractions
import json
import random
import struct
import sys

MASK = (1 << 64) - 1

# XXH3-64, after the specification in xxHash's doc/xxhash_spec.md and its reference code.

P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PMX1, PMX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def fold(a, b):
    product = a * b
    return (product & MASK) ^ (product >> 64)


def swap64(x):
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def swap32(x):
    return int.from_bytes(x.to_bytes(4, "little"), "big")


def rotate(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK


def xxh64_avalanche(h):
    h = (h ^ h >> 33) * P64_2 & MASK
    h = (h ^ h >> 29) * P64_3 & MASK
    return h ^ h >> 32


def avalanche(h):
    h = (h ^ h >> 37) * PMX1 & MASK
    return h ^ h >> 32


def xxh3_0_to_16(data, seed):
    n = len(data)
    if n > 8:
        low = u64(data, 0) ^ ((u64(SECRET, 24) ^ u64(SECRET, 32)) + seed & MASK)
        high = u64(data, n - 8) ^ ((u64(SECRET, 40) ^ u64(SECRET, 48)) - seed & MASK)
        return avalanche(n + swap64(low) + high + fold(low, high) & MASK)
    if n >= 4:
        seed ^= swap32(seed & 0xFFFFFFFF) << 32
        flip = (u64(SECRET, 8) ^ u64(SECRET, 16)) - seed & MASK
        h = (u32(data, n - 4) + (u32(data, 0) << 32)) ^ flip
        h ^= rotate(h, 49) ^ rotate(h, 24)
        h = h * PMX2 & MASK
        h ^= (h >> 35) + n
        h = h * PMX2 & MASK
        return h ^ h >> 28
    if n > 0:
        mixed = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return xxh64_avalanche(mixed ^ ((u32(SECRET, 0) ^ u32(SECRET, 4)) + seed & MASK))
    return xxh64_avalanche(seed ^ u64(SECRET, 56) ^ u64(SECRET, 64))


def mix16(data, at, secret_at, seed):
    return fold(
        u64(data, at) ^ (u64(SECRET, secret_at) + seed & MASK),
        u64(data, at + 8) ^ (u64(SECRET, secret_at + 8) - seed & MASK),
    )


def xxh3_17_to_128(data, seed):
    n = len(data)
    h = n * P64_1 & MASK
    for i in range((n - 1) // 32, -1, -1):
        h += mix16(data, 16 * i, 32 * i, seed) + mix16(data, n - 16 * (i + 1), 32 * i + 16, seed)
    return avalanche(h & MASK)


def xxh3_129_to_240(data, seed):
    n = len(data)
    h = n * P64_1
    for i in range(8):
        h += mix16(data, 16 * i, 16 * i, seed)
    h = avalanche(h & MASK)
    for i in range(8, n // 16):
        h += mix16(data, 16 * i, 16 * (i - 8) + 3, seed)
    h += mix16(data, n - 16, 136 - 17, seed)
    return avalanche(h & MASK)


def seeded_secret(seed):
    out = bytearray()
    for at in range(0, len(SECRET), 16):
        out += struct.pack("<Q", u64(SECRET, at) + seed & MASK)
        out += struct.pack("<Q", u64(SECRET, at + 8) - seed & MASK)
    return bytes(out)


def accumulate(acc, data, at, secret, secret_at):
    for i in range(8):
        value = u64(data, at + 8 * i)
        key = value ^ u64(secret, secret_at + 8 * i)
        acc[i ^ 1] = acc[i ^ 1] + value & MASK
        acc[i] = acc[i] + (key & 0xFFFFFFFF) * (key >> 32) & MASK


def scramble(acc, secret):
    for i in range(8):
        a = acc[i] ^ acc[i] >> 47 ^ u64(secret, len(secret) - 64 + 8 * i)
        acc[i] = a * P32_1 & MASK


def xxh3_long(data, seed):
    n = len(data)
    secret = seeded_secret(seed) if seed else SECRET
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    stripes = (len(secret) - 64) // 8
    whole = (n - 1) // 64
    for stripe in range(whole):
        accumulate(acc, data, 64 * stripe, secret, stripe % stripes * 8)
        if stripe % stripes == stripes - 1:
            scramble(acc, secret)
    accumulate(acc, data, n - 64, secret, len(secret) - 64 - 7)
    h = n * P64_1
    for i in range(4):
        key = 11 + 16 * i
        h += fold(acc[2 * i] ^ u64(secret, key), acc[2 * i + 1] ^ u64(secret, key + 8))
    return avalanche(h & MASK)


def xxh3(data, seed=0):
    if len(data) <= 16:
        return xxh3_0_to_16(data, seed)
    if len(data) <= 128:
        return xxh3_17_to_128(data, seed)
    if len(data) <= 240:
        return xxh3_129_to_240(data, seed)
    return xxh3_long(data, seed)


def check_xxh3():
    """The sanity check of xxHash's own command line tool: (length, seed, hash)."""
    buffer = bytearray()
    generator = P32_1
    for _ in range(2367):
        buffer.append(generator >> 56)
        generator = generator * 0x9E3779B185EBCA8D & MASK
    known = (
        (0, 0, 0x2D06800538D394C2),
        (0, 0x9E3779B185EBCA8D, 0xA8A6B918B2F0364A),
        (1, 0, 0xC44BDFF4074EECDB),
        (1, 0x9E3779B185EBCA8D, 0x032BE332DD766EF8),
        (6, 0, 0x27B56A84CD2D7325),
        (6, 0x9E3779B185EBCA8D, 0x84589C116AB59AB9),
        (12, 0, 0xA713DAF0DFBB77E7),
        (12, 0x9E3779B185EBCA8D, 0xE7303E1B2336DE0E),
        (24, 0, 0xA3FE70BF9D3510EB),
        (24, 0x9E3779B185EBCA8D, 0x850E80FC35BDD690),
        (48, 0, 0x397DA259ECBA1F11),
        (48, 0x9E3779B185EBCA8D, 0xADC2CBAA44ACC616),
        (80, 0, 0xBCDEFBBB2C47C90A),
        (80, 0x9E3779B185EBCA8D, 0xC6DD0CB699532E73),
        (195, 0, 0xCD94217EE362EC3A),
        (195, 0x9E3779B185EBCA8D, 0xBA68003D370CB3D9),
        (403, 0, 0xCDEB804D65C6DEA4),
        (403, 0x9E3779B185EBCA8D, 0x6259F6ECFD6443FD),
        (512, 0, 0x617E49599013CB6B),
        (512, 0x9E3779B185EBCA8D, 0x3CE457DE14C27708),
        (2048, 0, 0xDD59E2C3A5F038E0),
        (2048, 0x9E3779B185EBCA8D, 0x66F81670669ABABC),
        (2367, 0, 0xCB37AEB9E5D361ED),
        (2367, 0x9E3779B185EBCA8D, 0xD2DB3415B942B42A),
    )
    for length, seed, want in known:
        got = xxh3(bytes(buffer[:length]), seed)
        if got != want:
            sys.exit(f"xxh3 of {length} bytes, seed {seed:x}: {got:016x}, not {want:016x}")


# Placement, after hrw/hrw.h.


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def neglog2(h):
    odd = 2 * h + 1
    whole = odd.bit_length() - 1
    mantissa = odd << 63 >> whole
    fraction = 0
    for _ in range(56):
        square = mantissa * mantissa
        digit = square.bit_length() - 127
        fraction = 2 * fraction + digit
        mantissa = square >> 63 + digit
    return (65 << 56) - (whole << 56) - fraction


def check_neglog2(hashes):
    """Against the logarithm itself, with 60 digits."""
    decimal.getcontext().prec = 60
    ln2 = decimal.Decimal(2).ln()
    last_hash, last_value = None, None
    for h in sorted(hashes):
        exact = (65 - decimal.Decimal(2 * h + 1).ln() / ln2) * 2**56
        over = neglog2(h) - exact
        if not 0 <= over < 2:
            sys.exit(f"neglog2({h:016x}) is off by {over}")
        if last_value is not None and neglog2(h) > last_value:
            sys.exit(f"neglog2({h:016x}) is greater than that of {last_hash:016x}")
        last_hash, last_value = h, neglog2(h)


def rank(key, nodes):
    """The indices of all nodes with weight, best first; nodes are (id, weight)."""

    def score(index):
        name, weight = nodes[index]
        h = mix(key ^ mix(xxh3(name.encode())))
        return fractions.Fraction(weight, neglog2(h)), h, -index

    return sorted((i for i in range(len(nodes)) if nodes[i][1] > 0), key=score, reverse=True)


# The vectors.


def hashes():
    r = random.Random(20261121)
    out = {0, 1, 2, 3, MASK, MASK - 1, MASK - 255, MASK - 256, MASK - 257, 1 << 63, (1 << 63) - 1}
    out |= {1 << bit for bit in range(64)} | {(1 << bit) - 1 for bit in range(65)}
    out |= {r.getrandbits(64) for _ in range(100)} | {MASK - r.getrandbits(20) for _ in range(20)}
    return sorted(out)


def names():
    lengths = (0, 1, 2, 3, 4, 8, 9, 16, 17, 32, 33, 128, 129, 240, 241, 512, 1023, 1024)
    out = [("object-name/" * 90)[:n] for n in lengths]
    return out + ["a", "a/b", "train/shard-000001.tar", "Grüße/€/🍰", "../..", "x" * 1024]


def clusters():
    equal = [(f"t{i}", 100) for i in range(1, 6)]
    return [
        [("only", 1)],
        equal,
        [("t1", 100), ("t2", 200), ("t3", 400), ("t4", 800)],
        [("t1", 1), ("t2", 4294967295), ("t3", 2147483648)],
        [("t1", 10), ("t2", 0), ("t3", 10), ("t4", 20)],
        [("t1", 0), ("t2", 0)],
        [("same", 7), ("same", 7), ("other", 7)],
        [("same", 7), ("same", 8)],
        [(f"node-{i:03d}", 1000 + 37 * i) for i in range(40)],
        [("/disk1", 3726), ("/disk2", 3726), ("/disk3", 7452), ("/disk4", 14904)],
    ]


def hex64(value):
    return f"{value:016x}"


def vectors():
    r = random.Random(4)
    keys = [
        {"scope": hex64(scope), "name": name, "key": hex64(xxh3(name.encode(), scope))}
        for name in names()
        for scope in (0, 1, 0x123456789ABCDEF, MASK)
    ]
    ranks = []
    for nodes in clusters():
        for _ in range(12):
            key = r.choice(keys)["key"]
            ranks.append({"nodes": nodes, "key": key, "rank": rank(int(key, 16), nodes)})
    seeds = sorted({name for nodes in clusters() for name, _ in nodes})
    return {
        "neglog2": [{"h": hex64(h), "value": hex64(neglog2(h))} for h in hashes()],
        "seeds": [{"id": name, "seed": hex64(xxh3(name.encode()))} for name in seeds],
        "keys": keys,
        "ranks": ranks,
    }


def vectors_text():
    sections = []
    for name, rows in vectors().items():
        lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        sections.append(f'"{name}": [\n  {lines}\n]')
    return "{\n" + ",\n".join(sections) + "\n}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--check", metavar="FILE")
    args = parser.parse_args()
    check_xxh3()
    check_neglog2(hashes())
    if args.write:
        with open(args.write, "w", encoding="utf-8") as out:
            out.write(vectors_text())
    if args.check:
        with open(args.check, encoding="utf-8") as found:
            if found.read() != vectors_text():
                sys.exit(f"{args.check} is not what this program makes")


if __name__ == "__main__":
    main()
