/* Lists that become images: equal contents, contradictions, any order of the rows. */
#include "vdisc/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/rng.h"
#include "vdisc/burn_rules.h"

struct given {
    const char *path, *key;
    uint64_t size;
    char sha; /* 0: not known; else each byte of it */
};

static void add(struct plan *p, const struct given *g, uint64_t line)
{
    struct burn_row row = {.line = line, .entry = {.path = g->path, .size = g->size}};
    row.entry.mtime_s = ISO_NO_TIME;
    row.entry.mode = ISO_NO_MODE;
    if (g->sha != 0) {
        row.checksum.type = CHECKSUM_SHA256;
        memset(row.checksum.bytes, g->sha, 32);
    }
    const struct plan_part part = {.bucket = "b", .key = g->key, .object_size = g->size};
    plan_add(p, PLAN_NEW, &row, &part);
}

static int try_plan(const struct given *rows, size_t count, struct plan **plan, struct error *err)
{
    const struct plan_options options = {.date_s = ISO_NO_TIME};
    struct plan *p = plan_new();
    for (size_t i = 0; i < count; i++)
        add(p, &rows[i], i + 1);
    int rc = plan_close(p, &options, err);
    *plan = p;
    return rc;
}

static struct buf table_of(struct plan *p)
{
    static const uint8_t sha[TABLE_ID];
    const struct plan_object header = {.bucket = "b", .key = "n.vdsc.isohdr"};
    uint8_t id[TABLE_ID];
    struct buf out = BUF_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(plan_table(p, "b", "n.vdsc", &header, sha, id, &out, &err), 0);
    return out;
}

static void test_equal_contents_are_one_extent(void **state)
{
    (void)state;
    static const struct {
        struct given rows[4];
        uint32_t extents;
        const char *first; /* object */
    } cases[] = {
        {{{"a", "x", 5, 0}, {"b", "x", 5, 0}, {"c", "y", 5, 0}, {"d", "z", 6, 0}}, 3, "x"},
        {{{"a", "y", 5, 's'}, {"b", "x", 5, 's'}, {"c", "z", 5, 't'}, {"d", "w", 5, 0}}, 3, "x"},
        /* One row knows what is in the object of another. */
        {{{"a", "y", 5, 0}, {"b", "y", 5, 's'}, {"c", "x", 5, 's'}, {"d", "x", 5, 0}}, 1, "x"},
        {{{"a", "x", 0, 0}, {"b", "y", 0, 0}, {"c", "z", 0, 's'}, {"d", "w", 1, 0}}, 2, "x"},
        {{{"a", "x", 5, 's'}, {"b", "y", 6, 's'}, {"c", "y", 6, 0}, {"d", "x", 5, 0}}, 2, "x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        _cleanup_(plan_freep)
        struct plan *p = NULL;
        struct error err = ERROR_INIT;
        uint32_t count = 0;
        if (try_plan(cases[i].rows, 4, &p, &err) != 0)
            fail_msg("%zu: %s", i, err.message);
        const struct plan_object *objects = plan_objects(p, &count);
        assert_int_equal(count, cases[i].extents);
        assert_string_equal(objects[0].key, i == 3 ? "x" : cases[i].first);
    }
}

static void test_contradictions(void **state)
{
    (void)state;
    static const struct given cases[][2] = {
        {{"a", "x", 5, 0}, {"b", "x", 6, 0}},
        {{"a", "x", 5, 's'}, {"b", "x", 5, 't'}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        _cleanup_(plan_freep)
        struct plan *p = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(try_plan(cases[i], 2, &p, &err), E_INVALID);
        assert_non_null(strstr(err.message, "lines 1 and 2"));
    }
}

static void test_limits(void **state)
{
    (void)state;
    static const struct given rows[] = {{"a", "x", 5, 0}, {"b/c", "y", 5, 0}};
    static const uint8_t sha[TABLE_ID];
    static const struct plan_object header = {.bucket = "b", .key = "n.vdsc.isohdr"};
    const struct plan_options few = {.date_s = ISO_NO_TIME, .entries_max = 3};
    const struct plan_options small = {.date_s = ISO_NO_TIME, .entries_max = 4, .table_max = 100};
    uint8_t id[TABLE_ID];
    for (int enough = 0; enough <= 1; enough++) {
        _cleanup_(plan_freep)
        struct plan *p = plan_new();
        _cleanup_buf_ struct buf out = BUF_INIT;
        struct error err = ERROR_INIT;
        add(p, &rows[0], 1);
        add(p, &rows[1], 2);
        assert_int_equal(burn_rules_count(p, 2, &err), 0);
        assert_int_equal(burn_rules_count(p, 0, &err), 0);
        assert_int_equal(burn_rules_count(p, 1, &err), E_IMAGE_TOO_LARGE);
        if (!enough) {
            assert_int_equal(plan_close(p, &few, &err), E_IMAGE_TOO_LARGE);
            assert_non_null(strstr(err.message, "vdisc_entries_max"));
            continue;
        }
        assert_int_equal(plan_close(p, &small, &err), 0);
        assert_int_equal(plan_table(p, "b", "n.vdsc", &header, sha, id, &out, &err),
                         E_IMAGE_TOO_LARGE);
        assert_non_null(strstr(err.message, "vdisc_table_max"));
    }
}

static void add_part(struct plan *p, const char *path, const char *key, uint64_t object,
                     uint64_t offset, uint64_t size, char sha)
{
    struct burn_row row = {.entry = {.path = path, .size = size, .mtime_s = ISO_NO_TIME}};
    const struct plan_part part = {
        .bucket = "b", .key = key, .object_size = object, .offset = offset};
    row.checksum.type = CHECKSUM_SHA256;
    memset(row.checksum.bytes, sha, 32);
    plan_add(p, PLAN_NEW, &row, &part);
}

static void test_files_share_an_object(void **state)
{
    (void)state;
    const struct plan_options options = {.date_s = ISO_NO_TIME};
    struct error err = ERROR_INIT;
    uint32_t count;
    _cleanup_(plan_freep)
    struct plan *p = plan_new();
    add_part(p, "z", "pack", 3 * 2048, 4096, 7, 'z');
    add_part(p, "a", "pack", 3 * 2048, 0, 2049, 'a');
    add_part(p, "b", "alone", 5, 0, 5, 'b');
    add_part(p, "c", "other", 2049, 0, 2049, 'a'); /* the pack has it, but comes later by name */
    assert_int_equal(plan_close(p, &options, &err), 0);
    const struct iso_layout *l = plan_layout(p);
    const struct plan_object *o = plan_objects(p, &count);
    assert_int_equal(count, 3);
    assert_string_equal(o[0].key, "other");
    assert_string_equal(o[1].key, "alone");
    assert_string_equal(o[2].key, "pack");
    assert_int_equal(l->blocks, l->header_blocks + 2 + 1 + 3);
    const struct iso_node *z = &l->tree->nodes[l->tree->files[3]];
    assert_int_equal(l->contents[z->content].lba, l->header_blocks + 2 + 1 + 2);
    _cleanup_buf_ struct buf bytes = table_of(p);
    struct vdisc_table *t = NULL;
    assert_int_equal(vdisc_table_read(bytes.data, bytes.len, 0, &t, &err), 0);
    assert_int_equal(t->member_count, 1);
    assert_int_equal(t->members[0].sha256[0], 'z');
    assert_int_equal(t->members[0].lba, l->contents[z->content].lba);
    vdisc_table_free(t);
}

/* An object is asked for once, and what is learnt makes equal contents one. */
static void test_checksums_are_learnt(void **state)
{
    (void)state;
    static const struct given rows[] = {{"a", "x", 5, 0},
                                        {"b", "y", 5, 's'},
                                        {"c", "x", 5, 0},
                                        {"d", "z", 5, 0},
                                        {"e", "empty", 0, 0}};
    const struct plan_options options = {.date_s = ISO_NO_TIME};
    struct error err = ERROR_INIT;
    struct plan_object *unknown;
    uint32_t count;
    _cleanup_(plan_freep)
    struct plan *p = plan_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add(p, &rows[i], i + 1);
    add_part(p, "f", "pack", 4096, 0, 5, 'p');
    assert_int_equal(plan_unknown(p, &options, &unknown, &count, &err), 0);
    assert_int_equal(count, 3);
    assert_string_equal(unknown[0].key, "empty");
    assert_string_equal(unknown[1].key, "x");
    assert_string_equal(unknown[2].key, "z");
    unknown[1].checksum.type = CHECKSUM_SHA256;
    memset(unknown[1].checksum.bytes, 's', 32);
    unknown[1].etag = "tag of x";
    assert_int_equal(plan_close(p, &options, &err), 0);
    const struct plan_object *o = plan_objects(p, &count);
    assert_int_equal(count, 4);
    assert_string_equal(o[0].key, "x"); /* and y is not referred to */
    assert_string_equal(o[0].wanted_etag, "tag of x");
    assert_int_equal(o[0].checksum.bytes[31], 's');
    assert_string_equal(o[1].key, "z");
    assert_null(o[1].wanted_etag);
    assert_int_equal(o[1].checksum.type, CHECKSUM_NONE);
}

#define ROWS 200

static void fill(struct given *rows, char texts[][2][24], struct rng *r)
{
    for (size_t i = 0; i < ROWS; i++) {
        uint64_t object = rng_below(r, 60);
        snprintf(texts[i][0], sizeof texts[i][0], "d%llu/%zu", (unsigned long long)rng_below(r, 7),
                 i);
        snprintf(texts[i][1], sizeof texts[i][1], "o%llu", (unsigned long long)object);
        rows[i] = (struct given){.path = texts[i][0], .key = texts[i][1], .size = object % 9};
        if (object % 3 != 0 && rng_below(r, 2) == 0)
            rows[i].sha = (char)('a' + object % 9);
    }
}

static void shuffle(struct given *rows, struct rng *r)
{
    for (size_t i = ROWS - 1; i > 0; i--) {
        size_t k = rng_below(r, i + 1);
        struct given g = rows[i];
        rows[i] = rows[k];
        rows[k] = g;
    }
}

static void test_the_order_of_rows_does_not_show(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        static struct given rows[ROWS];
        static char texts[ROWS][2][24];
        struct rng r;
        struct error err = ERROR_INIT;
        rng_seed(&r, seed);
        fill(rows, texts, &r);
        struct buf first = BUF_INIT, second = BUF_INIT;
        for (int i = 0; i < 2; i++) {
            _cleanup_(plan_freep)
            struct plan *p = NULL;
            if (try_plan(rows, ROWS, &p, &err) != 0)
                fail_msg("seed %llu: %s", (unsigned long long)seed, err.message);
            *(i == 0 ? &first : &second) = table_of(p);
            shuffle(rows, &r);
        }
        if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
            fail_msg("seed %llu: two tables differ", (unsigned long long)seed);
        buf_done(&first);
        buf_done(&second);
    }
}

/* The way of new files to other objects makes the bytes of a plan that had them there. */
static void test_files_move(void **state)
{
    (void)state;
    static const struct given older = {"b/old", "o", 9, 'o'};
    static const struct given before[] = {
        {"b/y", "y", 5, 's'}, {"a", "x", 5, 't'}, {"b-", "z", 7, 'u'}};
    static const struct given after[] = {
        {"b/y", "3", 5, 's'}, {"a", "1", 5, 't'}, {"b-", "2", 7, 'u'}};
    static const char *const paths[] = {"a", "b/y", "b-"}; /* a directory before its neighbours */
    static const char *const keys[] = {"1", "3", "2"};
    const struct plan_options options = {.date_s = ISO_NO_TIME};
    struct plan *plans[2];
    struct buf tables[2];
    struct error err = ERROR_INIT;
    struct plan_file *files;
    size_t count;
    for (size_t n = 0; n < 2; n++) {
        struct burn_row row = {.entry = {.path = older.path, .size = older.size}};
        const struct plan_part part = {.bucket = "b", .key = "o", .object_size = older.size};
        plans[n] = plan_new();
        plan_add(plans[n], PLAN_OLDER, &row, &part);
        for (size_t i = 0; i < 3; i++)
            add(plans[n], n == 0 ? &before[i] : &after[i], i + 1);
    }
    assert_int_equal(plan_files(plans[0], &options, &files, &count, &err), 0);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(files[i].path, paths[i]);
        files[i].part =
            (struct plan_part){.bucket = "b", .key = keys[i], .object_size = files[i].size};
    }
    assert_int_equal(plan_move(plans[0], &err), 0);
    for (size_t n = 0; n < 2; n++) {
        assert_int_equal(plan_close(plans[n], &options, &err), 0);
        tables[n] = table_of(plans[n]);
    }
    assert_int_equal(tables[0].len, tables[1].len);
    assert_memory_equal(tables[0].data, tables[1].data, tables[0].len);
    for (size_t n = 0; n < 2; n++) {
        buf_done(&tables[n]);
        plan_free(plans[n]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_contents_are_one_extent),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_files_share_an_object),
        cmocka_unit_test(test_checksums_are_learnt),
        cmocka_unit_test(test_files_move),
        cmocka_unit_test(test_the_order_of_rows_does_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
