#include "sort/rows/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/rng.h"
#include "sort/rows/merge.h"

/* --- varints and codecs ----------------------------------------------------------------------- */

static void test_varints(void **state)
{
    (void)state;
    unsigned char bytes[VARINT_MAX];
    for (unsigned shift = 0; shift < 64; shift++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t value = (UINT64_C(1) << shift) + (uint64_t)delta;
            size_t n = varint_put(bytes, value);
            uint64_t back = 0;
            assert_int_equal(varint_get(bytes, n, &back), n);
            assert_true(back == value);
            assert_int_equal(varint_get(bytes, n - 1, &back), 0);
        }
    }
    static const unsigned char too_long[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
    uint64_t value;
    assert_int_equal(varint_get(too_long, sizeof too_long, &value), 0);
}

/* Hands out its bytes in pieces of odd sizes. */
struct dripping {
    const struct buf *bytes;
    size_t at;
    struct rng rng;
};

static ssize_t drip(void *ctx, void *out, size_t max, struct error *err)
{
    (void)err;
    struct dripping *d = ctx;
    size_t left = d->bytes->len - d->at;
    size_t n = 1 + (size_t)rng_below(&d->rng, 7000);
    n = n < max ? n : max;
    n = n < left ? n : left;
    memcpy(out, d->bytes->data + d->at, n);
    d->at += n;
    return (ssize_t)n;
}

static void test_codec(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    struct encoder e;
    encoder_init(&e, sink_buf(&bytes));
    _cleanup_free_ char *text = xcalloc(1, 200000);
    for (uint64_t i = 0; i < 20000; i++) {
        assert_int_equal(encoder_put_varint(&e, i * i * i, NULL), 0);
        assert_int_equal(encoder_put_u64(&e, ~i, NULL), 0);
    }
    assert_int_equal(encoder_put(&e, text, 200000, NULL), 0);
    assert_int_equal(encoder_put_checksum(&e, NULL), 0);
    encoder_done(&e);

    struct dripping drops = {.bytes = &bytes};
    rng_seed(&drops.rng, 1);
    struct decoder d;
    decoder_init(&d, (struct source){.read = drip, .ctx = &drops});
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t a = 0;
        uint64_t b = 0;
        assert_int_equal(decoder_get_varint(&d, &a, NULL), 0);
        assert_int_equal(decoder_get_u64(&d, &b, NULL), 0);
        assert_true(a == i * i * i && b == ~i);
    }
    assert_int_equal(decoder_get(&d, text, 200000, NULL), 0);
    assert_int_equal(decoder_get_checksum(&d, NULL), 0);
    assert_int_equal(decoder_expect_end(&d, NULL), 0);
    decoder_done(&d);
    buf_done(&bytes);
}

/* --- tables ----------------------------------------------------------------------------------- */

#define JOB 0x1234567890abcdefU

struct rows {
    struct sort_row *row;
    size_t count;
    size_t next;
};

static int rows_next(void *ctx, struct sort_row *row, struct error *err)
{
    (void)err;
    struct rows *r = ctx;
    if (r->next == r->count)
        return 0;
    *row = r->row[r->next++];
    return 1;
}

static const struct sort_order *compared;

static int compare_rows(const void *a, const void *b)
{
    return order_compare(compared, a, b);
}

static struct rows make_rows(size_t count, uint32_t shards, const struct sort_order *o,
                             uint64_t seed)
{
    struct rows r = {.row = xcalloc(count + 1, sizeof *r.row), .count = count};
    struct rng rng;
    rng_seed(&rng, seed);
    for (size_t i = 0; i < count; i++) {
        char *name = xprintf("dir%llu/%.*s%llu", (unsigned long long)rng_below(&rng, 3),
                             (int)rng_below(&rng, 60),
                             "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
                             (unsigned long long)rng_below(&rng, 1000));
        r.row[i] = (struct sort_row){
            .name = name,
            .name_len = (uint32_t)strlen(name),
            .shard = (uint32_t)rng_below(&rng, shards),
            .position = (uint32_t)i,
            .size = 512 * (1 + rng_below(&rng, 100000)),
            .key = o->algorithm == SORT_SHUFFLE ? rng_next(&rng) : 0,
        };
    }
    compared = o;
    qsort(r.row, count, sizeof *r.row, compare_rows);
    return r;
}

static void rows_free(struct rows *r)
{
    for (size_t i = 0; i < r->count; i++)
        free((char *)r->row[i].name);
    free(r->row);
}

static struct dict *make_dict(uint32_t shards, uint32_t owner, uint64_t first, uint64_t step)
{
    struct dict *d = dict_new();
    for (uint32_t i = 0; i < shards; i++) {
        char name[32];
        snprintf(name, sizeof name, "s-%u.tar", i);
        dict_add(d, &(struct dict_entry){
                        .name = name, .place = first + i * step, .owner = owner, .local = i});
    }
    assert_int_equal(dict_sort(d, NULL), 0);
    return d;
}

static void write_table(struct buf *out, const struct sort_order *o, struct rows *rows,
                        const struct dict *dict)
{
    struct table_head head = {.job = JOB, .order = *o, .rows = rows->count};
    for (size_t i = 0; i < rows->count; i++)
        head.bytes += rows->row[i].size;
    rows->next = 0;
    assert_int_equal(table_write(sink_buf(out), &head, dict,
                                 (struct row_source){.next = rows_next, .ctx = rows}, NULL),
                     0);
}

static int read_table(const void *data, size_t len, const struct sort_order *o,
                      const struct rows *rows)
{
    struct span span = {.data = data, .len = len};
    struct table_head expected = {.job = JOB, .order = *o};
    struct table_reader *t = NULL;
    int rc = table_reader_open(source_span(&span), &expected, 4, &t, NULL);
    if (rc != 0)
        return rc;
    struct row_source source = table_reader_rows(t);
    struct sort_row row;
    for (size_t i = 0; (rc = source.next(source.ctx, &row, NULL)) > 0; i++) {
        if (rows == NULL)
            continue;
        const struct sort_row *wanted = &rows->row[i];
        assert_int_equal(order_compare(o, &row, wanted), 0);
        assert_int_equal(row.name_len, wanted->name_len);
        assert_memory_equal(row.name, wanted->name, row.name_len);
        assert_true(row.size == wanted->size && row.key == wanted->key);
    }
    table_reader_free(t);
    return rc;
}

static void test_tables_come_back(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 5000};
    for (int algorithm = SORT_ALPHANUMERIC; algorithm <= SORT_NONE; algorithm++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            struct sort_order o = {(enum sort_algorithm)algorithm, algorithm == SORT_SHUFFLE};
            struct rows rows = make_rows(counts[i], 7, &o, i);
            struct dict *dict = make_dict(7, 3, 0, 1);
            struct buf bytes = BUF_INIT;
            write_table(&bytes, &o, &rows, dict);
            assert_int_equal(read_table(bytes.data, bytes.len, &o, &rows), 0);
            buf_done(&bytes);
            dict_free(dict);
            rows_free(&rows);
        }
    }
}

static void test_names_are_front_coded(void **state)
{
    (void)state;
    struct sort_order o = {SORT_ALPHANUMERIC, false};
    struct rows rows = make_rows(5000, 7, &o, 9);
    struct dict *dict = make_dict(7, 0, 0, 1);
    struct buf bytes = BUF_INIT;
    write_table(&bytes, &o, &rows, dict);
    size_t names = 0;
    for (size_t i = 0; i < rows.count; i++)
        names += rows.row[i].name_len;
    assert_true(bytes.len < names / 2 + 8 * rows.count);
    buf_done(&bytes);
    dict_free(dict);
    rows_free(&rows);
}

/* No prefix of a table is a table, and no change of a byte goes unnoticed. */
static void test_damage_is_noticed(void **state)
{
    (void)state;
    struct sort_order o = {SORT_SHUFFLE, false};
    struct rows rows = make_rows(40, 3, &o, 1);
    struct dict *dict = make_dict(3, 1, 0, 1);
    struct buf bytes = BUF_INIT;
    write_table(&bytes, &o, &rows, dict);
    for (size_t len = 0; len < bytes.len; len++)
        assert_int_equal(read_table(bytes.data, len, &o, NULL), E_LENGTH);
    for (size_t i = 0; i < bytes.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] ^= (char)(1 << bit);
            assert_true(read_table(bytes.data, bytes.len, &o, NULL) < 0);
            bytes.data[i] ^= (char)(1 << bit);
        }
    }
    buf_putc(&bytes, 'x');
    assert_int_equal(read_table(bytes.data, bytes.len, &o, NULL), E_CORRUPT);
    buf_done(&bytes);
    dict_free(dict);
    rows_free(&rows);
}

static void test_another_jobs_table(void **state)
{
    (void)state;
    struct sort_order o = {SORT_NONE, false};
    struct rows rows = make_rows(1, 1, &o, 1);
    struct dict *dict = make_dict(1, 0, 0, 1);
    struct buf bytes = BUF_INIT;
    write_table(&bytes, &o, &rows, dict);
    struct sort_order other = {SORT_SHUFFLE, false};
    assert_int_equal(read_table(bytes.data, bytes.len, &other, NULL), E_CORRUPT);
    bytes.data[8] ^= 1;
    assert_int_equal(read_table(bytes.data, bytes.len, &o, NULL), E_CORRUPT);
    buf_done(&bytes);
    dict_free(dict);
    rows_free(&rows);
}

/* Rightly sent, and still not what it says. */
static void test_counts_that_do_not_add_up(void **state)
{
    (void)state;
    static const int wrong[][2] = {{0, 1}, {0, -1}, {1, 0}, {-1, 0}};
    struct sort_order o = {SORT_ALPHANUMERIC, false};
    struct rows rows = make_rows(10, 1, &o, 1);
    struct dict *dict = make_dict(1, 0, 0, 1);
    uint64_t bytes = 0;
    for (size_t i = 0; i < rows.count; i++)
        bytes += rows.row[i].size;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct table_head head = {.job = JOB,
                                  .order = o,
                                  .rows = rows.count + (uint64_t)wrong[i][0],
                                  .bytes = bytes + (uint64_t)wrong[i][1] * 512};
        struct buf stream = BUF_INIT;
        rows.next = 0;
        assert_int_equal(table_write(sink_buf(&stream), &head, dict,
                                     (struct row_source){.next = rows_next, .ctx = &rows}, NULL),
                         0);
        assert_true(read_table(stream.data, stream.len, &o, NULL) < 0);
        buf_done(&stream);
    }
    dict_free(dict);
    rows_free(&rows);
}

static void test_unsorted_rows_are_refused(void **state)
{
    (void)state;
    struct sort_order o = {SORT_ALPHANUMERIC, false};
    struct rows rows = make_rows(10, 1, &o, 1);
    struct sort_row first = rows.row[0];
    rows.row[0] = rows.row[9];
    rows.row[9] = first;
    struct dict *dict = make_dict(1, 0, 0, 1);
    struct buf bytes = BUF_INIT;
    write_table(&bytes, &o, &rows, dict);
    assert_int_equal(read_table(bytes.data, bytes.len, &o, NULL), E_CORRUPT);
    buf_done(&bytes);
    dict_free(dict);
    rows_free(&rows);
}

/* --- dictionaries and merging ----------------------------------------------------------------- */

static void test_dictionaries_merge(void **state)
{
    (void)state;
    const struct dict *dicts[3] = {make_dict(5, 0, 0, 3), make_dict(4, 1, 1, 3), dict_new()};
    uint32_t *maps[3] = {NULL};
    struct dict *all = NULL;
    assert_int_equal(dict_merge(dicts, 3, &all, maps, NULL), 0);
    assert_int_equal(dict_count(all), 9);
    for (uint32_t d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < dict_count(dicts[d]); i++) {
            const struct dict_entry *e = dict_entry(all, maps[d][i]);
            assert_int_equal(e->owner, d);
            assert_int_equal(e->local, i);
            assert_int_equal(e->place, d + 3 * i);
        }
    }
    for (uint32_t i = 1; i < 9; i++)
        assert_true(dict_entry(all, i - 1)->place < dict_entry(all, i)->place);
    for (int i = 0; i < 3; i++) {
        free(maps[i]);
        dict_free((struct dict *)dicts[i]);
    }
    dict_free(all);
}

static void test_a_shard_of_two_targets(void **state)
{
    (void)state;
    const struct dict *dicts[2] = {make_dict(3, 0, 0, 0), make_dict(1, 1, 0, 0)};
    uint32_t *maps[2] = {NULL};
    struct dict *all = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(dict_merge(dicts, 2, &all, maps, &err), E_CORRUPT);
    assert_string_equal(err.message, "shard 's-0.tar' is in two tables");
    for (int i = 0; i < 2; i++) {
        free(maps[i]);
        dict_free((struct dict *)dicts[i]);
    }
    dict_free(all);
}

static void test_sources_merge(void **state)
{
    (void)state;
    struct sort_order o = {SORT_ALPHANUMERIC, true};
    for (unsigned n = 0; n <= 9; n++) {
        struct rows parts[9] = {0};
        uint32_t maps[9][4];
        struct merge *m = merge_new(&o);
        size_t total = 0;
        for (unsigned i = 0; i < n; i++) {
            parts[i] = make_rows(i * 37 % 100, 4, &o, i);
            for (uint32_t s = 0; s < 4; s++)
                maps[i][s] = s * 9 + i;
            merge_add(m, (struct row_source){.next = rows_next, .ctx = &parts[i]}, maps[i]);
            total += parts[i].count;
        }
        struct sort_row row;
        struct sort_row last = {0};
        char *last_name = NULL;
        size_t count = 0;
        int rc;
        while ((rc = merge_next(m, &row, NULL)) > 0) {
            if (count++ > 0)
                assert_true(order_compare(&o, &last, &row) < 0);
            free(last_name);
            last = row;
            last.name = last_name = xstrndup(row.name, row.name_len);
        }
        assert_int_equal(rc, 0);
        assert_int_equal(count, total);
        free(last_name);
        merge_free(m);
        for (unsigned i = 0; i < n; i++)
            rows_free(&parts[i]);
    }
}

/* Rows are dealt out to sources, and source `at` is one with row `twin` alone. */
static void check_same_row(const struct sort_order *o, const struct rows *all, unsigned sources,
                           unsigned at, size_t twin)
{
    struct merge *m = merge_new(o);
    struct rows *parts = xcalloc(sources, sizeof *parts);
    for (unsigned i = 0; i < sources; i++) {
        parts[i].row = xcalloc(all->count, sizeof *parts[i].row);
        for (size_t k = i; i != at && k < all->count; k += sources)
            parts[i].row[parts[i].count++] = all->row[k];
        if (i == at)
            parts[i].row[parts[i].count++] = all->row[twin];
        merge_add(m, (struct row_source){.next = rows_next, .ctx = &parts[i]}, NULL);
    }
    struct sort_row row;
    size_t count = 0;
    int rc;
    while ((rc = merge_next(m, &row, NULL)) > 0)
        count++;
    bool dealt = twin % sources != at;
    assert_int_equal(rc, dealt ? E_CORRUPT : 0);
    assert_true(!dealt || count <= twin);
    merge_free(m);
    for (unsigned i = 0; i < sources; i++)
        free(parts[i].row);
    free(parts);
}

static void test_the_same_row_twice(void **state)
{
    (void)state;
    struct sort_order o = {SORT_ALPHANUMERIC, false};
    struct rows all = make_rows(50, 4, &o, 1);
    for (unsigned sources = 1; sources <= 12; sources++) {
        for (unsigned at = 0; at < sources; at++) {
            for (size_t twin = 0; twin < all.count; twin++)
                check_same_row(&o, &all, sources, at, twin);
        }
    }
    rows_free(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_codec),
        cmocka_unit_test(test_tables_come_back),
        cmocka_unit_test(test_names_are_front_coded),
        cmocka_unit_test(test_damage_is_noticed),
        cmocka_unit_test(test_another_jobs_table),
        cmocka_unit_test(test_counts_that_do_not_add_up),
        cmocka_unit_test(test_unsorted_rows_are_refused),
        cmocka_unit_test(test_dictionaries_merge),
        cmocka_unit_test(test_a_shard_of_two_targets),
        cmocka_unit_test(test_sources_merge),
        cmocka_unit_test(test_the_same_row_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
