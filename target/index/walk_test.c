/* Walks in parts: each name once, in order, and never more in a part than its bounds allow. */
#include "target/index/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "io/file.h"

enum { MAP_SIZE = 1 << 28, BUCKET = 7 };

static char dir[64];
static struct index *opened;

static int open_empty(void **state)
{
    (void)state;
    const char *fresh;
    snprintf(dir, sizeof dir, "/tmp/dfc-walk-XXXXXX");
    if (mkdtemp(dir) == NULL || index_open(dir, MAP_SIZE, false, &opened, &fresh, NULL) != 0)
        return 1;
    index_set_complete(opened);
    return 0;
}

static int remove_it(void **state)
{
    (void)state;
    index_close(opened);
    return file_remove_tree(dir, NULL);
}

static void put(uint64_t bucket_id, const char *name, uint64_t size)
{
    struct index_record record = {
        .size = size, .version = {1, 1, 1}, .checksum = {.type = CHECKSUM_CRC32C}};
    assert_int_equal(index_put(opened, bucket_id, name, &record, NULL), 0);
    index_settled(opened, bucket_id, name);
}

/* a, b, … with sizes 0, 1, …; one more in each of the neighbouring buckets. */
static void put_letters(size_t count)
{
    put(BUCKET - 1, "before", 1);
    put(BUCKET + 1, "behind", 1);
    for (size_t i = 0; i < count; i++)
        put(BUCKET, (char[]){(char)('a' + i), '\0'}, i);
}

struct seen {
    char names[128]; /* one behind the other */
    bool odd_only;
    char end_at;
    atomic_bool *stop_at_c;
};

static enum index_answer see(void *ctx, const char *name, const struct index_record *record)
{
    struct seen *s = ctx;
    size_t len = strlen(s->names);
    snprintf(s->names + len, sizeof s->names - len, "%s", name);
    if (*name == s->end_at)
        return INDEX_END;
    if (s->stop_at_c != NULL && *name == 'c')
        atomic_store(s->stop_at_c, true);
    return s->odd_only && record->size % 2 == 0 ? INDEX_PASS : INDEX_TAKE;
}

static void assert_part(struct index_walk *w, struct seen *s, const char *names, bool more)
{
    *s->names = '\0';
    assert_int_equal(index_walk(opened, w, see, s, NULL), 0);
    assert_string_equal(s->names, names);
    assert_int_equal(w->more, more);
}

static void test_without_bounds_one_part_has_all(void **state)
{
    (void)state;
    struct index_walk w = {.bucket_id = BUCKET, .more = true};
    struct seen s = {.names = ""};
    put_letters(5);
    assert_part(&w, &s, "abcde", false);
    assert_string_equal(w.last, "e");
}

static void test_a_part_takes_so_many_names_and_passes_others(void **state)
{
    (void)state;
    struct index_walk w = {.bucket_id = BUCKET, .names_max = 2, .more = true};
    struct seen s = {.odd_only = true};
    put_letters(6); /* b, d and f are odd */
    assert_part(&w, &s, "abcd", true);
    assert_part(&w, &s, "ef", false);
}

/* The bound falls on the last name: nothing is left. */
static void test_the_last_name_ends_the_walk(void **state)
{
    (void)state;
    struct index_walk w = {.bucket_id = BUCKET, .names_max = 2, .more = true};
    struct seen s = {.names = ""};
    put_letters(4);
    assert_part(&w, &s, "ab", true);
    assert_part(&w, &s, "cd", false);
}

static void test_a_part_takes_so_many_bytes(void **state)
{
    (void)state;
    struct index_walk w = {.bucket_id = BUCKET, .bytes_max = 5, .more = true};
    struct seen s = {.names = ""};
    put_letters(5);
    assert_part(&w, &s, "abc", true); /* two bytes each */
    assert_part(&w, &s, "de", false);
}

static void test_a_part_looks_at_so_many_names(void **state)
{
    (void)state;
    struct index_walk w = {.bucket_id = BUCKET, .more = true};
    struct seen s = {.odd_only = true};
    for (unsigned i = 0; i < INDEX_STEPS_MAX + 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "%06u", i);
        put(BUCKET, name, 0);
    }
    assert_int_equal(index_walk(opened, &w, see, &s, NULL), 0);
    assert_true(w.more);
    assert_string_equal(w.last, "019999");
    assert_part(&w, &s, "020000020001", false);
}

static void test_it_ends_where_the_caller_says(void **state)
{
    (void)state;
    struct index_walk w = {.bucket_id = BUCKET, .more = true};
    struct seen s = {.end_at = 'c'};
    put_letters(5);
    assert_part(&w, &s, "abc", false);
}

static void test_a_stop_ends_it(void **state)
{
    (void)state;
    atomic_bool stop = false;
    struct index_walk w = {.bucket_id = BUCKET, .stop = &stop, .more = true};
    struct seen s = {.stop_at_c = &stop};
    put_letters(5);
    assert_part(&w, &s, "abc", false);
    w = (struct index_walk){.bucket_id = BUCKET, .stop = &stop, .more = true};
    assert_part(&w, &s, "", false);
}

static void test_what_comes_between_two_parts_is_found_behind_the_last_name(void **state)
{
    (void)state;
    struct index_walk w = {.bucket_id = BUCKET, .names_max = 3, .more = true};
    struct seen s = {.names = ""};
    put_letters(5);
    assert_part(&w, &s, "abc", true);
    put(BUCKET, "Z", 0);
    put(BUCKET, "cc", 0);
    assert_int_equal(index_delete(opened, BUCKET, "c", NULL), 0);
    index_settled(opened, BUCKET, "c");
    assert_part(&w, &s, "ccde", false);
}

static bool is_even(const void *ctx, const char *name, const struct index_record *record)
{
    (void)ctx, (void)name;
    return record->size % 2 == 0;
}

static void test_a_batch_keeps_what_is_wanted(void **state)
{
    (void)state;
    put_letters(4);
    _cleanup_(index_batch_freep)
    struct index_batch *b = index_batch_new(BUCKET, NULL, is_even, NULL);
    assert_int_equal(index_batch_fill(b, opened, NULL), 0);
    assert_int_equal(b->count, 2);
    assert_string_equal(b->names[0], "a");
    assert_string_equal(b->names[1], "c");
    assert_false(b->walk.more);
}

static void test_a_batch_is_bounded_by_names_and_by_bytes(void **state)
{
    (void)state;
    enum { LONG = 1000 };
    char name[LONG + 1];
    memset(name, 'x', LONG);
    name[LONG] = '\0';
    for (unsigned i = 0; i < INDEX_BATCH_NAMES; i++) {
        snprintf(name + LONG - 6, 7, "%06u", i);
        put(BUCKET, name, i);
        put(BUCKET + 1, name + LONG - 6, i);
    }
    put(BUCKET + 1, "x", 1);
    _cleanup_(index_batch_freep)
    struct index_batch *longs = index_batch_new(BUCKET, NULL, NULL, NULL);
    assert_int_equal(index_batch_fill(longs, opened, NULL), 0);
    assert_int_equal(longs->count, INDEX_BATCH_BYTES / (LONG + 1) + 1);
    assert_true(longs->walk.more);
    _cleanup_(index_batch_freep)
    struct index_batch *shorts = index_batch_new(BUCKET + 1, NULL, NULL, NULL);
    assert_int_equal(index_batch_fill(shorts, opened, NULL), 0);
    assert_int_equal(shorts->count, INDEX_BATCH_NAMES);
    assert_true(shorts->walk.more);
    assert_int_equal(index_batch_fill(shorts, opened, NULL), 0);
    assert_int_equal(shorts->count, 1);
    assert_string_equal(shorts->names[0], "x");
    assert_false(shorts->walk.more);
}

#define walk_test(name) cmocka_unit_test_setup_teardown(name, open_empty, remove_it)

int main(void)
{
    const struct CMUnitTest tests[] = {
        walk_test(test_without_bounds_one_part_has_all),
        walk_test(test_a_part_takes_so_many_names_and_passes_others),
        walk_test(test_the_last_name_ends_the_walk),
        walk_test(test_a_part_takes_so_many_bytes),
        walk_test(test_a_part_looks_at_so_many_names),
        walk_test(test_it_ends_where_the_caller_says),
        walk_test(test_a_stop_ends_it),
        walk_test(test_what_comes_between_two_parts_is_found_behind_the_last_name),
        walk_test(test_a_batch_keeps_what_is_wanted),
        walk_test(test_a_batch_is_bounded_by_names_and_by_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
