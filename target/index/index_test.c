/* The index against a sorted array of the same names: long ones, with long common prefixes, are
 * what it is all about. */
#include "target/index/index.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fault.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/tsan.h"
#include "io/file.h"

enum { MAP_SIZE = 1 << 30, BUCKET = 7 };

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/dfc-index-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    return file_remove_tree(dir, NULL);
}

static struct index *open_index(const char *expect_fresh)
{
    struct index *x;
    const char *fresh;
    struct error err = ERROR_INIT;
    int code = index_open(dir, MAP_SIZE, false, &x, &fresh, &err);
    if (code != 0)
        fail_msg("%s", err.message);
    if (expect_fresh == NULL)
        assert_null(fresh);
    else
        assert_non_null(strstr(fresh, expect_fresh));
    return x;
}

static struct index *open_new(void)
{
    struct index *x = open_index("is new");
    index_set_complete(x);
    return x;
}

static struct index_record record_of(uint64_t n);

struct rebuilder {
    struct index *index;
    atomic_bool settled, saw_settled;
};

static void *begin_rebuild(void *arg)
{
    struct rebuilder *r = arg;
    assert_int_equal(index_rebuild_begin(r->index, NULL), 0);
    r->saw_settled = r->settled;
    return NULL;
}

/* A change that has been made to the index, and not yet to its file, would be undone by what is
 * read there. */
static void test_a_rebuild_waits_for_changes_under_way(void **state)
{
    (void)state;
    struct rebuilder r = {.index = open_new()};
    struct index_record record = record_of(1);
    pthread_t thread;
    assert_int_equal(index_put(r.index, BUCKET, "a", &record, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, begin_rebuild, &r), 0);
    usleep(50000); /* time to do the wrong thing */
    r.settled = true;
    index_settled(r.index, BUCKET, "a");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(r.saw_settled);
    assert_int_equal(index_rebuild_end(r.index, false, NULL), 0);
    index_close(r.index);
}

static struct index_record record_of(uint64_t n)
{
    return (struct index_record){.size = n,
                                 .version = {1, n, 3},
                                 .checksum = {.type = CHECKSUM_CRC32C, .bytes = {1, 2, 3, 4}},
                                 .modified_ms = 1700000000000 + (int64_t)n,
                                 .tombstone = n % 3 == 0,
                                 .job = n % 5 == 0 ? "srt-1" : NULL};
}

static void assert_record(const struct index_record *got, uint64_t n)
{
    struct index_record want = record_of(n);
    assert_int_equal(got->size, want.size);
    assert_int_equal(version_compare(&got->version, &want.version), 0);
    assert_true(checksum_equal(&got->checksum, &want.checksum));
    assert_int_equal(got->modified_ms, want.modified_ms);
    assert_int_equal(got->tombstone, want.tombstone);
    assert_int_equal(got->job != NULL, want.job != NULL);
}

static void put(struct index *x, uint64_t bucket, const char *name, uint64_t n)
{
    struct index_record rec = record_of(n);
    struct error err = ERROR_INIT;
    if (index_put(x, bucket, name, &rec, &err) != 0)
        fail_msg("%s", err.message);
}

static void put_settled(struct index *x, uint64_t bucket, const char *name, uint64_t n)
{
    put(x, bucket, name, n);
    index_settled(x, bucket, name);
}

static void test_a_sum_is_of_what_lies_here(void **state)
{
    (void)state;
    struct index *x = open_new();
    struct index_record manifest = {.size = 1000, .version = {1, 1, 1}, .sliced = true};
    uint64_t objects, bytes;
    put_settled(x, BUCKET, "a", 7);
    assert_int_equal(index_put(x, BUCKET, "b", &manifest, NULL), 0);
    index_settled(x, BUCKET, "b");
    assert_int_equal(index_sum(x, BUCKET, &objects, &bytes, NULL), 0);
    assert_int_equal(objects, 2);
    assert_int_equal(bytes, 7);
    index_close(x);
}

/* --- the reference: names in a sorted array, the number is the record ------------------------- */

struct row {
    char *name;
    uint64_t n;
};

struct table {
    struct row *rows;
    size_t count;
};

static int row_compare(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

/* Names that hurt: any length, few letters, and long common prefixes whose ends lie around the
 * places where keys are cut. */
static char *random_name(struct rng *r)
{
    static const size_t edges[] = {1, 20, 502, 503, 504, 1005, 1006, 1007, 1024};
    size_t len = rng_below(r, 2) ? 1 + rng_below(r, 1024)
                                 : edges[rng_below(r, sizeof edges / sizeof *edges)];
    char *name = xmalloc(len + 1);
    size_t same = rng_below(r, 4) == 0 ? 0 : rng_below(r, len + 1);
    for (size_t i = 0; i < len; i++)
        name[i] = i < same ? 'x' : (char)(rng_below(r, 8) ? 'w' + rng_below(r, 3) : 0xc3);
    name[len] = '\0';
    return name;
}

static void table_make(struct table *t, size_t count, uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed);
    t->rows = xcalloc(count, sizeof *t->rows);
    for (size_t i = 0; i < count; i++)
        t->rows[i] = (struct row){.name = random_name(&r), .n = i};
    qsort(t->rows, count, sizeof *t->rows, row_compare);
    t->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (t->count > 0 && strcmp(t->rows[t->count - 1].name, t->rows[i].name) == 0)
            free(t->rows[i].name);
        else
            t->rows[t->count++] = t->rows[i];
    }
}

static void table_free(struct table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->rows[i].name);
    free(t->rows);
}

static void table_store(const struct table *t, struct index *x)
{
    struct index_item *items = xcalloc(t->count, sizeof *items);
    /* Not in order: a stride that shares no factor with the count visits every row once. */
    size_t stride = 7919;
    while (t->count % stride == 0)
        stride++;
    for (size_t i = 0, at = 0; i < t->count; i++, at = (at + stride) % t->count)
        items[i] = (struct index_item){BUCKET, t->rows[at].name, record_of(t->rows[at].n)};
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < t->count; i += 1000) {
        size_t n = t->count - i < 1000 ? t->count - i : 1000;
        if (index_fill(x, items + i, n, &err) != 0)
            fail_msg("%s", err.message);
    }
    free(items);
}

/* First row that is not less than `name`, or greater with `after`. */
static size_t table_seek(const struct table *t, const char *name, bool after)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(t->rows[mid].name, name);
        if (order < 0 || (after && order == 0))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void assert_at(const struct table *t, size_t row, const struct index_cursor *c, int found)
{
    assert_int_equal(found, row < t->count);
    if (row < t->count) {
        assert_string_equal(index_cursor_name(c), t->rows[row].name);
        assert_record(index_cursor_record(c), t->rows[row].n);
    }
}

static void assert_walk(const struct table *t, struct index *x)
{
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    assert_int_equal(index_cursor_open(x, &c, NULL), 0);
    int found = index_cursor_seek(c, BUCKET, "", false, NULL);
    for (size_t i = 0; i < t->count; i++) {
        assert_at(t, i, c, found);
        found = index_cursor_next(c, NULL);
    }
    assert_int_equal(found, 0);
}

/* Other buckets stand before and behind, so that a walk that runs out of its own is seen. */
static void put_neighbours(struct index *x)
{
    char longest[1025];
    memset(longest, 'x', sizeof longest - 1);
    longest[1024] = '\0';
    for (uint64_t bucket = BUCKET - 1; bucket <= BUCKET + 1; bucket += 2) {
        put_settled(x, bucket, "a", 1);
        put_settled(x, bucket, longest, 1);
    }
}

static void test_hundred_thousand_names_walk_in_order(void **state)
{
    (void)state;
    struct index *x = open_new();
    struct table t;
    table_make(&t, 100000 / TSAN_STRIDE, 1);
    put_neighbours(x);
    table_store(&t, x);
    assert_walk(&t, x);
    index_close(x);
    x = open_index(NULL); /* and again from the disk */
    assert_walk(&t, x);
    index_close(x);
    table_free(&t);
}

static void test_seek_finds_what_a_sorted_array_finds(void **state)
{
    (void)state;
    struct index *x = open_new();
    struct table t;
    table_make(&t, 3000, 2);
    put_neighbours(x);
    table_store(&t, x);
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    assert_int_equal(index_cursor_open(x, &c, NULL), 0);
    struct rng r;
    rng_seed(&r, 3);
    for (int i = 0; i < 20000; i++) {
        _cleanup_free_ char *name =
            rng_below(&r, 2) ? random_name(&r) : xstrdup(t.rows[rng_below(&r, t.count)].name);
        bool after = rng_below(&r, 2);
        size_t row = table_seek(&t, name, after);
        assert_at(&t, row, c, index_cursor_seek(c, BUCKET, name, after, NULL));
        if (row < t.count)
            assert_at(&t, row + 1, c, index_cursor_next(c, NULL));
    }
    index_cursor_close(steal(c));
    index_close(x);
    table_free(&t);
}

static void test_deleted_names_are_gone_and_leave_nothing(void **state)
{
    (void)state;
    struct index *x = open_new();
    struct table t;
    table_make(&t, 2000, 4);
    put_neighbours(x);
    table_store(&t, x);
    struct rng r;
    rng_seed(&r, 5);
    while (t.count > 0) {
        size_t row = rng_below(&r, t.count);
        assert_int_equal(index_delete(x, BUCKET, t.rows[row].name, NULL), 0);
        assert_int_equal(index_delete(x, BUCKET, t.rows[row].name, NULL), 0); /* absent: fine */
        free(t.rows[row].name);
        memmove(&t.rows[row], &t.rows[row + 1], (t.count - row - 1) * sizeof *t.rows);
        t.count--;
        if (t.count % 250 == 0)
            assert_walk(&t, x);
    }
    bool done = false;
    assert_int_equal(index_drop_some(x, BUCKET, 1, &done, NULL), 0);
    assert_true(done); /* no link was left behind */
    index_close(x);
    table_free(&t);
}

static void test_put_replaces(void **state)
{
    (void)state;
    struct index *x = open_new();
    put_settled(x, BUCKET, "a", 1);
    put_settled(x, BUCKET, "a", 2);
    struct row row = {.name = (char[]){"a"}, .n = 2};
    struct table t = {.rows = &row, .count = 1};
    assert_walk(&t, x);
    index_close(x);
}

static void test_drop_takes_a_bucket_in_pieces_and_no_other(void **state)
{
    (void)state;
    struct index *x = open_new();
    struct table t, none = {0};
    table_make(&t, 3000, 6);
    put_neighbours(x);
    table_store(&t, x);
    bool done = false;
    unsigned rounds = 0;
    for (; !done; rounds++)
        assert_int_equal(index_drop_some(x, BUCKET, 100, &done, NULL), 0);
    assert_true(rounds >= t.count / 100);
    assert_walk(&none, x);
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    assert_int_equal(index_cursor_open(x, &c, NULL), 0);
    for (uint64_t bucket = BUCKET - 1; bucket <= BUCKET + 1; bucket += 2) {
        assert_int_equal(index_cursor_seek(c, bucket, "", false, NULL), 1);
        assert_string_equal(index_cursor_name(c), "a");
        assert_int_equal(index_cursor_next(c, NULL), 1);
        assert_int_equal(strlen(index_cursor_name(c)), 1024);
        assert_int_equal(index_cursor_next(c, NULL), 0);
    }
    index_cursor_close(steal(c));
    index_close(x);
    table_free(&t);
}

/* --- the marker ------------------------------------------------------------------------------- */

static bool marker_stands(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/complete", dir);
    return access(path, F_OK) == 0;
}

static void test_the_marker_stands_while_nothing_changes(void **state)
{
    (void)state;
    struct index *x = open_new();
    put(x, BUCKET, "a", 1);
    assert_false(marker_stands());
    assert_int_equal(index_checkpoint(x, NULL), 0);
    assert_false(marker_stands()); /* a change is under way */
    index_settled(x, BUCKET, "a");
    assert_int_equal(index_checkpoint(x, NULL), 0);
    assert_true(marker_stands());
    put(x, BUCKET, "b", 2);
    assert_false(marker_stands());
    index_settled(x, BUCKET, "b");
    index_close(x);
    assert_true(marker_stands());
    x = open_index(NULL);
    assert_true(marker_stands()); /* reading is no change */
    assert_int_equal(index_delete(x, BUCKET, "b", NULL), 0);
    assert_false(marker_stands());
    index_close(x);
    assert_false(marker_stands()); /* never settled */
}

/* A copy of the directory is what another machine, or the same one after a restart, finds. */
static void test_a_copy_that_was_not_closed_begins_anew(void **state)
{
    (void)state;
    struct index *x = open_new();
    put(x, BUCKET, "a", 1);
    char copy[80], command[300];
    snprintf(copy, sizeof copy, "%s.crashed", dir);
    snprintf(command, sizeof command, "cp -r %s %s", dir, copy);
    assert_int_equal(system(command), 0);
    index_close(x);
    struct index *after;
    const char *fresh;
    assert_int_equal(index_open(copy, MAP_SIZE, false, &after, &fresh, NULL), 0);
    assert_non_null(fresh);
    assert_int_equal(index_check(after, NULL), E_NOT_READY);
    struct table none = {0};
    assert_walk(&none, after);
    index_close(after); /* never completed: no marker */
    assert_int_equal(index_open(copy, MAP_SIZE, false, &after, &fresh, NULL), 0);
    assert_non_null(fresh);
    index_close(after);
    assert_int_equal(file_remove_tree(copy, NULL), 0);
}

static void test_a_stale_index_says_so_and_begins_anew(void **state)
{
    (void)state;
    struct index *x = open_new();
    assert_int_equal(index_check(x, NULL), 0);
    struct error err = ERROR_INIT, why = ERROR_INIT;
    error_set(&why, E_IO, "the dog ate it");
    index_set_stale(x, &why);
    assert_int_equal(index_check(x, &err), E_IO);
    assert_non_null(strstr(err.message, "the dog ate it"));
    index_close(x);
    index_close(open_index("distrusted"));
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(file_replace(path, text, strlen(text), 0640, NULL), 0);
}

static void test_damage_and_other_layouts_begin_anew(void **state)
{
    (void)state;
    index_close(open_new());
    write_file("complete", "dfc index 99\n");
    struct index *x = open_index("another release");
    index_set_complete(x);
    index_close(x);
    char garbage[9000];
    memset(garbage, 'g', sizeof garbage - 1);
    garbage[sizeof garbage - 1] = '\0';
    write_file("data.mdb", garbage);
    x = open_index("damaged");
    put(x, BUCKET, "a", 1);
    index_close(x);
}

static void test_errors_are_reported_and_change_nothing(void **state)
{
    (void)state;
    struct index *x = open_new();
    put(x, BUCKET, "a", 1);
    struct index_record rec = record_of(2);
    struct error err = ERROR_INIT;
    assert_int_equal(fault_configure("index.write=ENOSPC", NULL), 0);
    assert_int_equal(index_put(x, BUCKET, "a", &rec, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, dir));
    assert_int_equal(index_delete(x, BUCKET, "a", &err), E_NO_SPACE);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    struct row row = {.name = (char[]){"a"}, .n = 1};
    struct table t = {.rows = &row, .count = 1};
    assert_walk(&t, x);
    index_close(x);
}

static void test_a_full_map_names_the_parameter(void **state)
{
    (void)state;
    struct index *x;
    const char *fresh;
    struct error err = ERROR_INIT;
    assert_int_equal(index_open(dir, 1 << 20, false, &x, &fresh, NULL), 0);
    struct index_record rec = record_of(1);
    char name[32];
    int code = 0;
    for (unsigned i = 0; i < 100000 && code == 0; i++) {
        snprintf(name, sizeof name, "object-%08u", i);
        code = index_put(x, BUCKET, name, &rec, &err);
    }
    assert_int_equal(code, E_NO_SPACE);
    assert_non_null(strstr(err.message, "index_map_size"));
    assert_int_equal(index_delete(x, BUCKET, "object-00000000", &err), 0);
    index_close(x);
}

static void test_readers_have_a_limit_and_say_so(void **state)
{
    enum { READERS_MAX = 1024 };
    (void)state;
    struct index *x = open_new();
    put_settled(x, BUCKET, "a", 1);
    struct index_cursor **all = xcalloc(READERS_MAX + 1, sizeof *all);
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < READERS_MAX; i++)
        assert_int_equal(index_cursor_open(x, &all[i], NULL), 0);
    assert_int_equal(index_cursor_open(x, &all[READERS_MAX], &err), E_OVERLOAD);
    assert_int_equal(index_check(x, NULL), 0);
    index_cursor_close(all[0]);
    assert_int_equal(index_cursor_open(x, &all[0], NULL), 0);
    for (unsigned i = 0; i < READERS_MAX; i++)
        index_cursor_close(all[i]);
    free(all);
    index_close(x);
}

#define index_test(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        index_test(test_hundred_thousand_names_walk_in_order),
        index_test(test_seek_finds_what_a_sorted_array_finds),
        index_test(test_deleted_names_are_gone_and_leave_nothing),
        index_test(test_put_replaces),
        index_test(test_a_rebuild_waits_for_changes_under_way),
        index_test(test_a_sum_is_of_what_lies_here),
        index_test(test_drop_takes_a_bucket_in_pieces_and_no_other),
        index_test(test_the_marker_stands_while_nothing_changes),
        index_test(test_a_copy_that_was_not_closed_begins_anew),
        index_test(test_a_stale_index_says_so_and_begins_anew),
        index_test(test_damage_and_other_layouts_begin_anew),
        index_test(test_errors_are_reported_and_change_nothing),
        index_test(test_a_full_map_names_the_parameter),
        index_test(test_readers_have_a_limit_and_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
