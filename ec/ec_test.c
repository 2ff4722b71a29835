/* Encoding, reading and rebuilding, over slices in memory, against the object itself: with every
 * pattern of lost slices, all lengths about a stripe's, ranges, slices that lie or fail while they
 * are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/checksum.h"
#include "common/mem.h"
#include "common/rng.h"
#include "ec/encode.h"
#include "ec/read.h"

enum { UNIT = 64, LENGTH_MAX = 20000 };

/* An object and its slices. */
static struct world {
    struct ec_layout layout;
    uint64_t tag;
    unsigned char object[LENGTH_MAX];
    unsigned char *slices[EC_SLICES_MAX];
    size_t bytes[EC_SLICES_MAX]; /* of each slice, so far */
    struct ec_header headers[EC_SLICES_MAX];
    ec_mask broken; /* cannot be read */
    ec_mask read;   /* were asked */
} w;

static int put_stripe(void *ctx, unsigned char *const *blocks, size_t len, struct error *err)
{
    (void)ctx;
    (void)err;
    for (unsigned i = 0; i < w.layout.k + w.layout.m; i++) {
        w.slices[i] = xrealloc(w.slices[i], w.bytes[i] + len);
        memcpy(w.slices[i] + w.bytes[i], blocks[i], len);
        w.bytes[i] += len;
    }
    return 0;
}

static void read_some(void *ctx, struct ec_want *wants, size_t count)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        struct ec_want *want = &wants[i];
        w.read |= UINT64_C(1) << want->slice;
        want->code = (w.broken >> want->slice & 1) != 0 ? E_IO : 0;
        if (want->offset + want->len > w.bytes[want->slice])
            want->code = E_LENGTH;
        if (want->code == 0)
            memcpy(want->out, w.slices[want->slice] + want->offset, want->len);
    }
}

static const struct ec_source source = {.read = read_some};

static void forget(void)
{
    for (size_t i = 0; i < EC_SLICES_MAX; i++)
        free(w.slices[i]);
    memset(&w, 0, sizeof w);
}

static void encode(unsigned k, unsigned m, uint32_t unit, size_t length, struct rng *rng)
{
    static const struct ec_sink sink = {.stripe = put_stripe};
    struct ec_encoder *e;
    forget();
    w.layout = (struct ec_layout){.k = k, .m = m, .unit = unit, .length = length};
    w.tag = rng_next(rng);
    for (size_t i = 0; i < length; i++)
        w.object[i] = (unsigned char)rng_next(rng);
    assert_int_equal(ec_encoder_new(&w.layout, w.tag, &sink, &e, NULL), 0);
    for (size_t at = 0; at < length;) { /* in any pieces */
        size_t len = 1 + rng_below(rng, 3 * unit);
        if (len > length - at)
            len = length - at;
        assert_int_equal(ec_encoder_write(e, w.object + at, len, NULL), 0);
        at += len;
    }
    assert_int_equal(ec_encoder_finish(e, w.headers, NULL), 0);
    ec_encoder_free(e);
    for (unsigned i = 0; i < k + m; i++) {
        assert_int_equal(w.headers[i].index, i);
        assert_int_equal(ec_header_check_file(&w.headers[i], w.bytes[i], NULL), 0);
    }
}

struct taken {
    unsigned char bytes[2 * LENGTH_MAX];
    size_t len;
};

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    struct taken *t = ctx;
    (void)err;
    assert_true(t->len + len <= sizeof t->bytes);
    memcpy(t->bytes + t->len, data, len);
    t->len += len;
    return 0;
}

static int read_range(ec_mask have, uint64_t offset, uint64_t len, ec_mask *failed, uint64_t *bytes)
{
    struct ec_reader *r;
    static struct taken t;
    t.len = 0;
    assert_int_equal(ec_reader_new(&w.layout, w.tag, have, 0, &source, &r, NULL), 0);
    w.read = 0;
    int code = ec_reader_range(r, offset, len, take, &t, NULL);
    if (code == 0) {
        assert_int_equal(t.len, len);
        assert_memory_equal(t.bytes, w.object + offset, len);
    }
    if (failed != NULL)
        *failed = ec_reader_failed(r);
    if (bytes != NULL)
        *bytes = ec_reader_bytes(r);
    ec_reader_free(r);
    return code;
}

static int read_all(ec_mask have)
{
    return read_range(have, 0, w.layout.length, NULL, NULL);
}

static void rebuild(ec_mask have, unsigned slice)
{
    struct ec_reader *r;
    static struct taken t;
    uint64_t sum;
    t.len = 0;
    assert_int_equal(ec_reader_new(&w.layout, w.tag, have, 0, &source, &r, NULL), 0);
    assert_int_equal(ec_reader_rebuild(r, slice, take, &t, &sum, NULL), 0);
    assert_int_equal(t.len, w.bytes[slice]);
    if (t.len > 0)
        assert_memory_equal(t.bytes, w.slices[slice], t.len);
    assert_int_equal(sum, w.headers[slice].slice_sum);
    ec_reader_free(r);
}

static const struct {
    unsigned k, m;
} codes[] = {{2, 1}, {4, 2}, {6, 3}};

static void test_every_pattern_of_lost_slices(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 1);
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        const unsigned k = codes[c].k, n = k + codes[c].m;
        encode(k, codes[c].m, UNIT, 3 * k * UNIT + 77, &rng);
        for (ec_mask have = 0; have < UINT64_C(1) << n; have++) {
            bool enough = (unsigned)__builtin_popcountll(have) >= k;
            assert_int_equal(read_all(have), enough ? 0 : E_CORRUPT);
            for (unsigned i = 0; i < n && enough; i++) {
                if ((have >> i & 1) == 0)
                    rebuild(have, i);
            }
        }
    }
}

static void test_lengths(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 2);
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        const size_t k = codes[c].k, stripe = k * UNIT;
        const size_t lengths[] = {0,          1,      63,         64,         65,
                                  stripe - 1, stripe, stripe + 1, 2 * stripe, 5 * stripe - 63};
        const ec_mask all = (UINT64_C(1) << (k + codes[c].m)) - 1;
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            encode((unsigned)k, codes[c].m, UNIT, lengths[i], &rng);
            assert_int_equal(read_all(all), 0);
            assert_int_equal(read_all(all & ~UINT64_C(1)), 0);
            rebuild(all & ~(UINT64_C(1) << k), (unsigned)k);
            rebuild(all & ~UINT64_C(1), 0);
            rebuild(all, 0); /* its own blocks, then */
        }
    }
}

static void test_only_what_is_needed_is_read(void **state)
{
    (void)state;
    struct rng rng;
    uint64_t bytes;
    rng_seed(&rng, 3);
    encode(4, 2, UNIT, 10 * 4 * UNIT, &rng);
    const ec_mask all = 0x3f;
    /* Five bytes of slice 2 in stripe 3. */
    const uint64_t at = (3 * 4 + 2) * UNIT + 9;
    assert_int_equal(read_range(all, at, 5, NULL, &bytes), 0);
    assert_int_equal(w.read, 1 << 2);
    assert_int_equal(bytes, UNIT + EC_CHECK_BYTES);
    /* It is gone: k others, data first. */
    assert_int_equal(read_range(all & ~(UINT64_C(1) << 2), at, 5, NULL, &bytes), 0);
    assert_int_equal(w.read, 0x1b);
    assert_int_equal(bytes, 4 * (UNIT + EC_CHECK_BYTES));
    /* Over two slices, one of them gone: what was read counts towards the k. */
    assert_int_equal(read_range(all & ~(UINT64_C(1) << 2), at + UNIT - 20, UNIT, NULL, &bytes), 0);
    assert_int_equal(w.read, 0x1b);
    assert_int_equal(bytes, 4 * (UNIT + EC_CHECK_BYTES));
    assert_int_equal(read_range(all, 0, 4 * UNIT, NULL, NULL), 0);
    assert_int_equal(w.read, 0xf); /* no parity */
    assert_int_equal(read_range(all, 10 * 4 * UNIT, 0, NULL, NULL), 0);
    assert_int_equal(read_range(all, 10 * 4 * UNIT, 1, NULL, NULL), E_RANGE);
}

/* One that is there is copied; a block of it that is damaged is made of others. */
static void test_a_slice_is_rebuilt_of_its_own_blocks(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 5);
    encode(4, 2, UNIT, 5 * 4 * UNIT, &rng);
    w.read = 0;
    rebuild(0x3f, 3);
    assert_int_equal(w.read, 1 << 3);
    unsigned char *kept = w.slices[3];
    w.slices[3] = xmalloc(w.bytes[3]);
    memcpy(w.slices[3], kept, w.bytes[3]);
    w.slices[3][w.bytes[3] / 2] ^= 4;
    unsigned char *damaged = w.slices[3];
    struct ec_reader *r;
    static struct taken t;
    uint64_t sum;
    t.len = 0;
    assert_int_equal(ec_reader_new(&w.layout, w.tag, 0x3f, 0, &source, &r, NULL), 0);
    assert_int_equal(ec_reader_rebuild(r, 3, take, &t, &sum, NULL), 0);
    assert_int_equal(ec_reader_damaged(r), 1 << 3);
    assert_int_equal(t.len, w.bytes[3]);
    assert_memory_equal(t.bytes, kept, t.len);
    assert_int_equal(sum, w.headers[3].slice_sum);
    ec_reader_free(r);
    free(damaged);
    w.slices[3] = kept;
}

static void test_slices_that_fail_or_lie(void **state)
{
    (void)state;
    struct rng rng;
    ec_mask failed;
    rng_seed(&rng, 4);
    encode(4, 2, UNIT, 5 * 4 * UNIT + 3, &rng);
    const ec_mask all = 0x3f;
    w.broken = 1 << 1;
    w.slices[3][w.bytes[3] / 2] ^= 4; /* one of its blocks */
    assert_int_equal(read_range(all, 0, w.layout.length, &failed, NULL), 0);
    assert_int_equal(failed, 1 << 1 | 1 << 3);
    w.broken |= 1 << 4;
    assert_int_equal(read_range(all, 0, w.layout.length, &failed, NULL), E_IO);
    w.broken = 0;
    w.bytes[0] -= 1; /* a short one */
    assert_int_equal(read_range(all, 0, w.layout.length, &failed, NULL), 0);
    assert_int_equal(failed, 1 << 0 | 1 << 3);
    w.bytes[0] += 1;
}

static void damage_block(unsigned slice, uint64_t stripe)
{
    w.slices[slice][ec_layout_block_at(&w.layout, stripe) + 5] ^= 1;
}

static void test_slices_damaged_in_different_blocks(void **state)
{
    (void)state;
    struct rng rng;
    ec_mask failed;
    uint64_t bytes;
    const uint64_t stripes = 12, block = UNIT + EC_CHECK_BYTES;
    rng_seed(&rng, 6);
    encode(2, 1, UNIT, stripes * 2 * UNIT, &rng);
    damage_block(1, 4);
    /* A slice that is known to be damaged is left alone. */
    assert_int_equal(read_range(7, 0, w.layout.length, &failed, &bytes), 0);
    assert_int_equal(failed, 1 << 1);
    assert_int_equal(bytes, (2 * stripes + 1) * block);
    for (uint64_t i = 0; i < stripes; i++) {
        if (i != 4)
            damage_block(i % 2 == 0 ? 0 : 2, i);
    }
    assert_int_equal(read_range(7, 0, w.layout.length, &failed, NULL), 0);
    assert_int_equal(failed & 3, 3);
    for (uint64_t at = 0; at + 90 < w.layout.length; at += 50)
        assert_int_equal(read_range(7, at, 90, NULL, NULL), 0);
    /* Its own good blocks, and others in place of those that are not. */
    for (unsigned slice = 0; slice < 3; slice++) {
        struct ec_reader *r;
        static struct taken t;
        uint64_t slice_sum;
        t.len = 0;
        assert_int_equal(ec_reader_new(&w.layout, w.tag, 7, 7, &source, &r, NULL), 0);
        assert_int_equal(ec_reader_rebuild(r, slice, take, &t, &slice_sum, NULL), 0);
        assert_int_equal(slice_sum, w.headers[slice].slice_sum);
        ec_reader_free(r);
    }
    damage_block(0, 5); /* where slice 2 is damaged, too */
    const uint64_t fifth = 5 * 2 * UNIT;
    assert_int_equal(read_range(7, fifth, 10, NULL, NULL), E_CORRUPT);
    assert_int_equal(read_range(7, fifth + UNIT, 10, NULL, NULL), 0);
    assert_int_equal(read_range(7, 0, fifth, NULL, NULL), 0);
    assert_int_equal(read_range(7, fifth + 2 * UNIT, 5 * UNIT, NULL, NULL), 0);
}

static void test_blocks_in_other_places_are_none(void **state)
{
    (void)state;
    struct rng rng;
    ec_mask failed;
    rng_seed(&rng, 5);
    encode(2, 1, UNIT, 6 * 2 * UNIT, &rng);
    const size_t block = UNIT + EC_CHECK_BYTES;
    unsigned char kept[UNIT + EC_CHECK_BYTES];
    memcpy(kept, w.slices[0], block); /* two blocks of a slice exchanged */
    memcpy(w.slices[0], w.slices[0] + block, block);
    memcpy(w.slices[0] + block, kept, block);
    assert_int_equal(read_range(7, 0, w.layout.length, &failed, NULL), 0);
    assert_int_equal(failed, 1);
    memcpy(w.slices[0] + block, w.slices[0], block);
    memcpy(w.slices[0], kept, block);
    unsigned char *slice = w.slices[1]; /* two slices exchanged */
    w.slices[1] = w.slices[2];
    w.slices[2] = slice;
    assert_int_equal(read_range(7, 0, w.layout.length, &failed, NULL), E_CORRUPT);
    w.slices[2] = w.slices[1];
    w.slices[1] = slice;
    w.tag++; /* another version's */
    assert_int_equal(read_range(7, 0, w.layout.length, &failed, NULL), E_CORRUPT);
}

static void test_wrong_lengths_are_refused(void **state)
{
    (void)state;
    static const struct ec_sink sink = {.stripe = put_stripe};
    struct ec_header headers[EC_SLICES_MAX];
    struct ec_encoder *e;
    forget();
    w.layout = (struct ec_layout){.k = 2, .m = 1, .unit = UNIT, .length = 100};
    assert_int_equal(ec_encoder_new(&w.layout, 1, &sink, &e, NULL), 0);
    assert_int_equal(ec_encoder_write(e, w.object, 99, NULL), 0);
    assert_int_equal(ec_encoder_finish(e, headers, NULL), E_LENGTH);
    assert_int_equal(ec_encoder_write(e, w.object, 2, NULL), E_LENGTH);
    ec_encoder_free(e);
    const struct ec_layout none = {.k = 0, .m = 1, .unit = UNIT};
    assert_int_equal(ec_encoder_new(&none, 1, &sink, &e, NULL), E_INVALID);
}

/* Random objects, losses, damage and ranges.  DFC_SEED=n repeats one, DFC_ROUNDS=n makes many. */
static void test_against_the_object(void **state)
{
    (void)state;
    const char *seed = getenv("DFC_SEED"), *rounds = getenv("DFC_ROUNDS");
    unsigned long first = seed != NULL ? strtoul(seed, NULL, 10) : 1;
    unsigned long count = seed != NULL ? 1 : rounds != NULL ? strtoul(rounds, NULL, 10) : 300;
    for (unsigned long s = first; s < first + count; s++) {
        struct rng rng;
        rng_seed(&rng, s);
        const unsigned k = 1 + (unsigned)rng_below(&rng, 10), m = 1 + (unsigned)rng_below(&rng, 4);
        const uint32_t unit = UNIT * (1 + (uint32_t)rng_below(&rng, 8));
        encode(k, m, unit, rng_below(&rng, rng_below(&rng, 2) ? 300 : LENGTH_MAX), &rng);
        ec_mask have = (UINT64_C(1) << (k + m)) - 1;
        unsigned bad = (unsigned)rng_below(&rng, m + 1);
        for (unsigned i = 0; i < bad; i++) {
            unsigned slice = (unsigned)rng_below(&rng, k + m);
            switch (rng_below(&rng, 3)) {
            case 0:
                have &= ~(UINT64_C(1) << slice);
                break;
            case 1:
                w.broken |= UINT64_C(1) << slice;
                break;
            default:
                if (w.bytes[slice] > 0)
                    w.slices[slice][rng_below(&rng, w.bytes[slice])] ^= 1;
                break;
            }
        }
        for (int i = 0; i < 10; i++) {
            uint64_t at = rng_below(&rng, w.layout.length + 1);
            uint64_t len = rng_below(&rng, w.layout.length - at + 1);
            if (read_range(have, at, len, NULL, NULL) != 0)
                fail_msg("seed %lu: %llu bytes at %llu", s, (unsigned long long)len,
                         (unsigned long long)at);
        }
    }
}

static int teardown(void **state)
{
    (void)state;
    forget();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pattern_of_lost_slices),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_only_what_is_needed_is_read),
        cmocka_unit_test(test_a_slice_is_rebuilt_of_its_own_blocks),
        cmocka_unit_test(test_slices_that_fail_or_lie),
        cmocka_unit_test(test_slices_damaged_in_different_blocks),
        cmocka_unit_test(test_blocks_in_other_places_are_none),
        cmocka_unit_test(test_wrong_lengths_are_refused),
        cmocka_unit_test(test_against_the_object),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
