/* Tables that are written and read back, damaged, and those of other encoders. */
#include "vdisc/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/mem.h"
#include "common/rng.h"
#include "vdisc/capnp.h"
#include "vdisc/gzip.h"

#define EXTENTS 300

struct made {
    struct vdisc_extent extents[EXTENTS];
    char *texts[EXTENTS];
    struct vdisc_member members[EXTENTS];
};

static struct vdisc_table make(struct made *m, uint64_t seed, uint32_t count)
{
    static const char *const folders[] = {"../raw/", "../raw/x/", "/v1/objects/o/", "", "../raw"};
    struct rng r;
    rng_seed(&r, seed);
    for (uint32_t i = 0; i < count; i++) {
        uint16_t padding = (uint16_t)rng_below(&r, 2049);
        m->texts[i] =
            xprintf("%s%llu", folders[rng_below(&r, 5)], (unsigned long long)rng_below(&r, 1000));
        m->extents[i] = (struct vdisc_extent){.address = m->texts[i],
                                              .blocks = (uint32_t)rng_below(&r, 1000) + 1,
                                              .padding = padding,
                                              .etag = i % 3 == 0 ? "" : "\"tag\"",
                                              .checksum = i % 2 == 0 ? "xxh3:00" : ""};
    }
    struct vdisc_table t = {.extents = m->extents, .count = count, .pinned = true};
    memset(t.image_id, (int)seed, sizeof t.image_id);
    t.members = m->members;
    for (uint32_t i = 0; i < count && seed % 2 == 1; i++) {
        m->members[i].lba = 3 * i + 1;
        memset(m->members[i].sha256, (int)i, sizeof m->members[i].sha256);
        t.member_count++;
    }
    return t;
}

static void made_done(struct made *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(m->texts[i]);
}

static void check_equal(const struct vdisc_table *a, const struct vdisc_table *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->pinned, b->pinned);
    assert_memory_equal(a->image_id, b->image_id, TABLE_ID);
    assert_int_equal(a->has_content_id, b->has_content_id);
    assert_int_equal(a->member_count, b->member_count);
    for (uint32_t i = 0; i < a->member_count; i++) {
        const struct vdisc_member *m = vdisc_table_member(b, 3 * i + 1);
        assert_int_equal(m - b->members, i);
        assert_memory_equal(m->sha256, a->members[i].sha256, 32);
        assert_null(vdisc_table_member(b, 3 * i));
    }
    for (uint32_t i = 0; i < a->count; i++) {
        assert_string_equal(a->extents[i].address, b->extents[i].address);
        assert_int_equal(a->extents[i].blocks, b->extents[i].blocks);
        assert_int_equal(a->extents[i].padding, b->extents[i].padding);
        assert_string_equal(a->extents[i].etag, b->extents[i].etag);
        assert_string_equal(a->extents[i].checksum, b->extents[i].checksum);
    }
}

static void test_tables_come_back(void **state)
{
    (void)state;
    const uint32_t counts[] = {0, 1, 2, 3, 10, EXTENTS};
    for (uint64_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct made m;
        struct vdisc_table *back = NULL, t = make(&m, i, counts[i]);
        _cleanup_buf_ struct buf bytes = BUF_INIT, again = BUF_INIT;
        struct error err = ERROR_INIT;
        t.has_content_id = i % 2 == 0;
        assert_int_equal(vdisc_table_write(&t, 0, &bytes, &err), 0);
        assert_memory_equal(bytes.data, "\x1f\x8b\x08\0\0\0\0\0", 8); /* no name, no time */
        assert_int_equal(vdisc_table_read(bytes.data, bytes.len, 0, &back, &err), 0);
        check_equal(&t, back);
        assert_int_equal(vdisc_table_write(back, 0, &again, &err), 0);
        assert_int_equal(again.len, bytes.len);
        assert_memory_equal(again.data, bytes.data, bytes.len);
        vdisc_table_free(back);
        made_done(&m, counts[i]);
    }
}

/* As the reference writes it: no second part, and no gzip is fine, too. */
static void test_a_table_without_pins(void **state)
{
    (void)state;
    struct made m;
    struct vdisc_table *back = NULL, t = make(&m, 9, 5);
    _cleanup_buf_ struct buf bytes = BUF_INIT, plain = BUF_INIT;
    struct error err = ERROR_INIT;
    t.pinned = false;
    assert_int_equal(vdisc_table_write(&t, 0, &bytes, &err), 0);
    assert_int_equal(gzip_unpack(bytes.data, bytes.len, 1 << 20, &plain, &err), 0);
    assert_int_equal(vdisc_table_read(plain.data, plain.len, 0, &back, &err), 0);
    assert_false(back->pinned);
    assert_string_equal(back->extents[4].address, t.extents[4].address);
    assert_string_equal(back->extents[4].etag, "");
    vdisc_table_free(back);
    made_done(&m, 5);
}

static void test_the_largest_table(void **state)
{
    (void)state;
    struct made m;
    struct vdisc_table *back = NULL, t = make(&m, 3, EXTENTS);
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(vdisc_table_write(&t, 0, &bytes, &err), 0);
    assert_int_equal(vdisc_table_read(bytes.data, bytes.len, 1000, &back, &err), E_IMAGE_TOO_LARGE);
    made_done(&m, EXTENTS);
}

static void expect_damaged(const void *bytes, size_t len)
{
    struct vdisc_table *back = NULL;
    struct error err = ERROR_INIT;
    int rc = vdisc_table_read(bytes, len, 1 << 24, &back, &err);
    if (rc == 0)
        vdisc_table_free(back);
    else
        assert_true(rc == E_IMAGE_DAMAGED || rc == E_UNSUPPORTED || rc == E_IMAGE_TOO_LARGE);
}

static void test_damage_ends(void **state)
{
    (void)state;
    struct made m;
    struct vdisc_table t = make(&m, 5, 40);
    _cleanup_buf_ struct buf bytes = BUF_INIT, plain = BUF_INIT;
    struct error err = ERROR_INIT;
    struct rng r;
    rng_seed(&r, 1);
    assert_int_equal(vdisc_table_write(&t, 0, &bytes, &err), 0);
    assert_int_equal(gzip_unpack(bytes.data, bytes.len, 1 << 20, &plain, &err), 0);
    for (size_t len = 0; len < plain.len; len++) {
        struct vdisc_table *back = NULL;
        char *cut = xmalloc(len + 1); /* of its own, so that a read behind its end is seen */
        memcpy(cut, plain.data, len);
        assert_int_not_equal(vdisc_table_read(cut, len, 0, &back, &err), 0);
        free(cut);
    }
    for (int i = 0; i < 20000; i++) {
        size_t at = rng_below(&r, plain.len);
        char was = plain.data[at];
        plain.data[at] = (char)rng_next(&r);
        expect_damaged(plain.data, plain.len);
        plain.data[at] = was;
    }
    made_done(&m, 40);
}

/* Two segments, with far pointers: root in the first, the struct behind a landing pad in the
 * second. */
static void test_far_pointers(void **state)
{
    (void)state;
    static const uint64_t single[] = {1ull | 1ull << 32, /* two segments, the first of one word */
                                      3ull,              /* the second of three; padding */
                                      2ull | 0ull | 1ull << 32, /* far pointer: segment 1, word 0 */
                                      0ull | 0ull << 2 | 1ull << 32 |
                                          1ull << 48, /* landing pad: a struct of 1 and 1 words */
                                      0x1234ull,
                                      0ull};
    static const uint64_t twice[] = {1ull | 1ull << 32,
                                     4ull,
                                     2ull | 4ull | 1ull << 32, /* double far: segment 1, word 0 */
                                     2ull | 2ull << 3 |
                                         1ull << 32, /* content at word 2 of segment 1 */
                                     0ull | 1ull << 32 | 1ull << 48, /* tag */
                                     0x1234ull,
                                     0ull};
    const struct {
        const uint64_t *words;
        size_t len;
    } rows[] = {{single, sizeof single}, {twice, sizeof twice}};
    for (size_t i = 0; i < 2; i++) {
        struct capnp_reader *r = xcalloc(1, sizeof *r);
        struct capnp_struct root, none;
        struct error err = ERROR_INIT;
        if (capnp_open(r, rows[i].words, rows[i].len, &err) != 0 || capnp_root(r, &root, &err) != 0)
            fail_msg("%zu: %s", i, err.message);
        assert_int_equal(capnp_u16(&root, 0), 0x1234);
        assert_int_equal(capnp_u32(&root, 8), 0); /* beyond the struct */
        assert_int_equal(capnp_get_struct(r, &root, 0, &none, &err), 0);
        assert_null(none.data);
        free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_come_back),  cmocka_unit_test(test_a_table_without_pins),
        cmocka_unit_test(test_the_largest_table), cmocka_unit_test(test_damage_ends),
        cmocka_unit_test(test_far_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
