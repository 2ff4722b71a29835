/* What spills: blobs, rowsets, catalogs; and the files that they leave open, which must be none. */
#include "sort/rows/rowset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "common/fault.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/tsan.h"
#include "sort/base/blob.h"
#include "sort/shard/catalog.h"
#include "sort/testing/fixture.h"
#include "sort/shard/gather.h"

static int opened;      /* work files or shards */
static int refuse_from; /* the open that fails, counting from 1; 0: none */

static int open_memory_file(void *ctx, int *fd, struct error *err)
{
    (void)ctx;
    if (++opened == refuse_from)
        return error_set(err, E_NO_SPACE, "no room");
    *fd = memfd_create("work", MFD_CLOEXEC);
    return 0;
}

static const struct sort_env env = {.open_work_file = open_memory_file};

static int setup(void **state)
{
    (void)state;
    opened = 0;
    refuse_from = 0;
    return 0;
}

static void test_blob(void **state)
{
    (void)state;
    static const uint64_t limits[] = {0, 1, 300000, 600000, 10000000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct blob *b = blob_new(&env, limits[i]);
        struct rng rng;
        for (int again = 0; again < 2; again++) {
            rng_seed(&rng, 3);
            struct buf all = BUF_INIT;
            while (all.len < 1000000) {
                char piece[5000];
                size_t n = (size_t)rng_below(&rng, sizeof piece);
                for (size_t k = 0; k < n; k++)
                    piece[k] = (char)rng_next(&rng);
                assert_int_equal(blob_append(b, piece, n, NULL), 0);
                buf_append(&all, piece, n);
            }
            assert_int_equal(blob_size(b), all.len);
            for (int k = 0; k < 300; k++) {
                char out[70000];
                size_t at = (size_t)rng_below(&rng, all.len);
                size_t n = (size_t)rng_below(&rng, sizeof out);
                n = n < all.len - at ? n : all.len - at;
                assert_int_equal(blob_read(b, at, out, n, NULL), 0);
                assert_memory_equal(out, all.data + at, n);
            }
            blob_reset(b);
            buf_done(&all);
        }
        blob_free(b);
    }
}

/* Each time a disk gets full what comes next goes elsewhere, and all can be read. */
static void test_blob_on_disks_that_get_full(void **state)
{
    (void)state;
    struct blob *b = blob_new(&env, 1);
    struct buf all = BUF_INIT;
    char piece[30000];
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 100; i++) {
            memset(piece, i, sizeof piece);
            if (i % 10 == 9)
                assert_int_equal(fault_configure("disk.write=ENOSPC@1", NULL), 0);
            assert_int_equal(blob_append(b, piece, sizeof piece, NULL), 0);
            buf_append(&all, piece, sizeof piece);
        }
        assert_int_equal(opened, again == 0 ? 11 : 21);
        char *out = xmalloc(all.len);
        assert_int_equal(blob_read(b, 0, out, all.len, NULL), 0);
        assert_memory_equal(out, all.data, all.len);
        for (size_t at = 0; at + 70000 < all.len; at += 11111) {
            assert_int_equal(blob_read(b, at, out, 70000, NULL), 0);
            assert_memory_equal(out, all.data + at, 70000);
        }
        free(out);
        blob_reset(b);
        buf_clear(&all);
    }
    buf_done(&all);
    assert_int_equal(fault_configure("disk.write=ENOSPC@1+", NULL), 0);
    memset(piece, 0, sizeof piece);
    struct error err = ERROR_INIT;
    int rc = 0;
    for (int i = 0; rc == 0 && i < 20; i++)
        rc = blob_append(b, piece, sizeof piece, &err);
    assert_int_equal(rc, E_NO_SPACE);
    fault_configure("", NULL);
    blob_free(b);
}

static uint64_t fill(struct rowset *s, uint32_t count, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[80];
        int len = snprintf(name, sizeof name, "%0*llx", (int)(1 + rng_below(&rng, 70)),
                           (unsigned long long)rng_below(&rng, 1 << 20));
        struct sort_row row = {
            .name = name,
            .name_len = (uint32_t)len,
            .shard = (uint32_t)rng_below(&rng, 9),
            .position = i,
            .size = 512 * (1 + rng_below(&rng, 9)),
            .key = rng_next(&rng),
        };
        assert_int_equal(rowset_add(s, &row, NULL), 0);
        sum += row.position * row.size;
    }
    return sum;
}

static void expect_rows(struct rowset *s, const struct sort_order *o, uint32_t count, uint64_t sum)
{
    struct row_source source;
    assert_int_equal(rowset_open(s, &source, NULL), 0);
    struct sort_row row;
    struct sort_row last = {0};
    char *last_name = NULL;
    int rc;
    uint32_t n = 0;
    for (; (rc = source.next(source.ctx, &row, NULL)) > 0; n++) {
        if (n > 0)
            assert_true(order_compare(o, &last, &row) < 0);
        free(last_name);
        last = row;
        last.name = last_name = xstrndup(row.name, row.name_len);
        sum -= row.position * row.size;
    }
    free(last_name);
    assert_int_equal(rc, 0);
    assert_int_equal(n, count);
    assert_int_equal(sum, 0);
}

/* 300,000 rows in 256 KiB are more than RUNS_MAX runs: they are merged on the way. */
static void test_rowset_with_any_number_of_runs(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 100, 10000, 300000};
    for (int algorithm = SORT_ALPHANUMERIC; algorithm <= SORT_NONE; algorithm += TSAN_STRIDE) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            struct sort_order o = {(enum sort_algorithm)algorithm, algorithm == SORT_ALPHANUMERIC};
            struct rowset *s = NULL;
            assert_int_equal(rowset_new(&env, &o, 1, 2, &s, NULL), 0);
            uint64_t sum = fill(s, counts[i], i);
            assert_int_equal(rowset_count(s), counts[i]);
            assert_int_equal(rowset_spilled(s) > 0, counts[i] >= 10000);
            expect_rows(s, &o, counts[i], sum);
            rowset_free(s);
        }
    }
}

static void test_rowset_of_longest_names(void **state)
{
    (void)state;
    struct sort_order o = {SORT_ALPHANUMERIC, false};
    struct rowset *s = NULL;
    assert_int_equal(rowset_new(&env, &o, 1, 2, &s, NULL), 0);
    _cleanup_free_ char *name = xcalloc(1, SORT_NAME_MAX);
    memset(name, 'n', SORT_NAME_MAX);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 20; i++) {
        name[SORT_NAME_MAX - 1] = (char)('z' - i);
        struct sort_row row = {.name = name, .name_len = SORT_NAME_MAX, .position = i, .size = 512};
        assert_int_equal(rowset_add(s, &row, NULL), 0);
        sum += i * row.size;
    }
    expect_rows(s, &o, 20, sum);
    rowset_free(s);
}

static void test_no_room_for_a_work_file(void **state)
{
    (void)state;
    struct sort_order o = {SORT_SHUFFLE, false};
    struct rowset *s = NULL;
    refuse_from = 1;
    assert_int_equal(rowset_new(&env, &o, 1, 2, &s, NULL), 0);
    struct sort_row row = {.name = "n", .name_len = 1, .size = 512};
    struct error err = ERROR_INIT;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < 100000; i++) {
        row.position = i;
        rc = rowset_add(s, &row, &err);
    }
    assert_int_equal(rc, E_NO_SPACE);
    rowset_free(s);
}

/* --- catalogs --------------------------------------------------------------------------------- */

#define SHARDS 70 /* more than a batch of gathering keeps open */
#define RECORDS 30

/* A shard of records whose two members lie apart, with a global header in some shards. */
static void make_shard(struct buf *tar, unsigned shard)
{
    if (shard % 3 == 0) {
        struct buf records = BUF_INIT;
        fixture_pax_record(&records, "comment", "global");
        fixture_pax(tar, 'g', &records);
        buf_done(&records);
    }
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < RECORDS; i++) {
            char path[32];
            char text[3000];
            snprintf(path, sizeof path, "r%u.%u", i, pass);
            memset(text, 'a' + (int)((shard + i) % 26), sizeof text);
            text[shard * 31 % 1000 + i * 50] = '\0';
            fixture_file(tar, path, text);
        }
    }
    fixture_end(tar);
}

static int open_shard(void *ctx, const char *name, int *fd, struct error *err)
{
    (void)ctx;
    (void)err;
    struct buf tar = BUF_INIT;
    opened++;
    make_shard(&tar, (unsigned)strtoul(name, NULL, 10));
    *fd = fixture_fd(&tar);
    buf_done(&tar);
    return 0;
}

static const struct sort_env shard_env = {.open_work_file = open_memory_file,
                                          .open_shard = open_shard};

/* The shard's bytes, which are asked for once a record: made once. */
static const struct buf *made_shard(unsigned shard)
{
    static struct buf made[SHARDS + 1];
    if (made[shard].len == 0)
        make_shard(&made[shard], shard);
    return &made[shard];
}

/* The record's bytes, put together from the shard's own text. */
static void expected_record(unsigned shard, unsigned record, struct buf *out)
{
    const struct buf *tar = made_shard(shard);
    int fd = fixture_fd(tar);
    struct tar_scan *scan = tar_scan_new(fd, tar->len, "s");
    struct tar_member m;
    for (unsigned n = 0; tar_scan_next(scan, &m, NULL) > 0; n++) {
        for (unsigned i = 0; n % RECORDS == record && i < m.piece_count; i++) {
            const struct tar_piece *p = &m.pieces[i];
            const char *from = p->inline_data != NULL ? p->inline_data : tar->data + p->offset;
            buf_append(out, from, p->length);
        }
    }
    tar_scan_free(scan);
    close(fd);
}

static void fill_catalog(struct catalog *c)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        char name[8];
        snprintf(name, sizeof name, "%u", i);
        catalog_add(c, name, SHARDS - i, 0);
    }
    catalog_sort(c, NULL);
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct record_table *t = record_table_new("s", SORT_KEY_FIRST_DOT, SORT_ABORT, 1 << 24);
        struct buf tar = BUF_INIT;
        make_shard(&tar, (unsigned)strtoul(catalog_shard(c, i)->name, NULL, 10));
        int fd = fixture_fd(&tar);
        struct tar_scan *scan = tar_scan_new(fd, tar.len, "s");
        struct tar_member m;
        bool replaced;
        while (tar_scan_next(scan, &m, NULL) > 0)
            assert_int_equal(record_table_add(t, &m, &replaced, NULL), 0);
        assert_int_equal(record_table_finish(t, NULL), 0);
        fixture_catalog(c, i, t);
        tar_scan_free(scan);
        close(fd);
        buf_done(&tar);
        record_table_free(t);
    }
}

static void expect_record(struct catalog *c, struct gather *g, uint32_t shard, uint32_t position,
                          size_t step)
{
    struct buf wanted = BUF_INIT;
    expected_record((unsigned)strtoul(catalog_shard(c, shard)->name, NULL, 10), position, &wanted);
    struct feed f;
    assert_int_equal(feed_begin(&f, g, shard, position, NULL), 0);
    assert_int_equal(f.place.size, wanted.len);
    _cleanup_free_ unsigned char *got = xcalloc(1, wanted.len + 1);
    size_t at = 0;
    ssize_t n;
    while ((n = feed_fill(&f, g, got + at, step, NULL)) > 0)
        at += (size_t)n;
    assert_int_equal(n, 0);
    assert_int_equal(at, wanted.len);
    assert_int_equal(gather_flush(g, NULL), 0);
    assert_memory_equal(got, wanted.data, wanted.len);
    buf_done(&wanted);
}

static void test_records_come_back_from_the_catalog(void **state)
{
    (void)state;
    static const uint64_t limits[] = {0, 1 << 24};
    static const size_t steps[] = {1 << 20, 700, 13};
    for (size_t limit = 0; limit < 2; limit++) {
        struct catalog *c = catalog_new(&shard_env, limits[limit], 8);
        fill_catalog(c);
        struct gather g;
        gather_init(&g, c);
        struct rng rng;
        rng_seed(&rng, 8);
        for (int i = 0; i < 300; i++)
            expect_record(c, &g, (uint32_t)rng_below(&rng, SHARDS),
                          (uint32_t)rng_below(&rng, RECORDS), steps[i % 3]);
        struct feed f;
        assert_int_equal(feed_begin(&f, &g, SHARDS, 0, NULL), E_INVALID);
        assert_int_equal(feed_begin(&f, &g, 0, RECORDS, NULL), E_INVALID);
        gather_done(&g);
        catalog_free(c);
    }
}

/* Shards that are in order themselves, their records alternating: what follows in a shard is read
 * with what was before it, and goes where it belongs. */
static void test_runs_of_alternating_shards(void **state)
{
    (void)state;
    struct catalog *c = catalog_new(&shard_env, 1 << 20, 8);
    fill_catalog(c);
    struct gather g;
    struct buf wanted = BUF_INIT;
    for (uint32_t position = 0; position < RECORDS; position++) {
        for (uint32_t i = 0; i < SHARDS; i++)
            expected_record((unsigned)strtoul(catalog_shard(c, i)->name, NULL, 10), position,
                            &wanted);
    }
    _cleanup_free_ unsigned char *got = xcalloc(1, wanted.len);
    size_t at = 0;
    gather_init(&g, c);
    for (uint32_t position = 0; position < RECORDS; position++) {
        for (uint32_t i = 0; i < SHARDS; i++) {
            struct feed f;
            ssize_t n;
            assert_int_equal(feed_begin(&f, &g, i, position, NULL), 0);
            while ((n = feed_fill(&f, &g, got + at, wanted.len - at, NULL)) > 0)
                at += (size_t)n;
            assert_int_equal(n, 0);
        }
    }
    assert_int_equal(gather_flush(&g, NULL), 0);
    assert_int_equal(at, wanted.len);
    assert_memory_equal(got, wanted.data, at);
    gather_done(&g);
    buf_done(&wanted);
    catalog_free(c);
}

static void test_open_shards_are_bounded(void **state)
{
    (void)state;
    struct catalog *c = catalog_new(&shard_env, 1 << 20, 8);
    fill_catalog(c);
    struct fdcache *files = catalog_files(c);
    int fd;
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(fdcache_get(files, i, &fd, NULL), 0);
        fdcache_put(files, i);
    }
    opened = 0;
    assert_int_equal(fdcache_get(files, 3, &fd, NULL), 0); /* still open */
    assert_int_equal(opened, 0);
    for (uint32_t i = 8; i < 16; i++) { /* everything but the one in use is pushed out */
        assert_int_equal(fdcache_get(files, i, &fd, NULL), 0);
        fdcache_put(files, i);
    }
    assert_int_equal(opened, 8);
    assert_int_equal(fdcache_get(files, 3, &fd, NULL), 0);
    assert_int_equal(opened, 8);
    assert_int_equal(fdcache_get(files, 0, &fd, NULL), 0);
    assert_int_equal(opened, 9);
    fdcache_put(files, 0);
    fdcache_put(files, 3);
    fdcache_put(files, 3);
    catalog_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_blob, setup),
        cmocka_unit_test_setup(test_blob_on_disks_that_get_full, setup),
        cmocka_unit_test_setup(test_rowset_with_any_number_of_runs, setup),
        cmocka_unit_test_setup(test_rowset_of_longest_names, setup),
        cmocka_unit_test_setup(test_no_room_for_a_work_file, setup),
        cmocka_unit_test_setup(test_records_come_back_from_the_catalog, setup),
        cmocka_unit_test_setup(test_runs_of_alternating_shards, setup),
        cmocka_unit_test_setup(test_open_shards_are_bounded, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
