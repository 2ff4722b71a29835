#include "target/archive/shard_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "target/archive/member_table.h"

enum { MEMORY = 1000 };

struct told {
    unsigned times;
    int code;
};

static void tell(void *arg, struct shard *s, const struct error *err)
{
    struct told *told = arg;
    told->times++;
    told->code = err != NULL ? err->code : 0;
    assert_int_equal(shard_members(s) == NULL, err != NULL);
}

static struct shard_key key_of(const char *name, uint64_t counter)
{
    return (struct shard_key){
        .bucket_id = 1, .name = name, .version = {.counter = counter}, .size = 7};
}

static struct shard *begin(struct shard_index *x, const char *name, uint64_t counter,
                           struct told *told)
{
    struct shard_key key = key_of(name, counter);
    struct shard *s = NULL;
    assert_int_equal(shard_index_get(x, &key, tell, told, &s), SHARD_MINE);
    return s;
}

static void make(struct shard_index *x, const char *name, uint64_t counter, uint64_t bytes)
{
    struct told told = {0};
    struct error err = ERROR_INIT;
    struct shard *s = begin(x, name, counter, &told);
    struct member_table *t = member_table_new();
    member_table_finish(t);
    assert_int_equal(shard_index_grow(x, s, bytes, &err), 0);
    shard_index_made(x, s, t, NULL);
    assert_int_equal(told.times, 1);
    assert_int_equal(told.code, 0);
}

/* Without making it. */
static bool has(struct shard_index *x, const char *name, uint64_t counter)
{
    struct shard_key key = key_of(name, counter);
    struct told told = {0};
    struct shard *s = NULL;
    switch (shard_index_get(x, &key, tell, &told, &s)) {
    case SHARD_READY:
        assert_true(shard_is(s, &key));
        shard_unref(s);
        return true;
    case SHARD_MINE:
        shard_index_made(x, s, NULL, &(struct error){.code = E_ABORTED});
        assert_int_equal(told.code, E_ABORTED);
        return false;
    default:
        fail_msg("'%s' is being made", name);
        return false;
    }
}

static void test_one_makes_it_and_all_are_told(void **state)
{
    (void)state;
    struct shard_index *x = shard_index_new(MEMORY);
    struct told first = {0}, second = {0};
    struct shard *s = begin(x, "a", 1, &first), *other = NULL;
    struct shard_key key = key_of("a", 1);
    assert_int_equal(shard_index_get(x, &key, tell, &second, &other), SHARD_WAITS);
    struct error why = {.code = E_ARCHIVE_DAMAGED};
    shard_index_made(x, s, NULL, &why);
    assert_int_equal(first.code, E_ARCHIVE_DAMAGED);
    assert_int_equal(second.times, 1);
    assert_false(has(x, "a", 1)); /* a failure is not kept */
    make(x, "a", 1, 10);
    assert_true(has(x, "a", 1));
    shard_index_free(x);
}

static void test_a_version_takes_the_place_of_another(void **state)
{
    (void)state;
    struct shard_index *x = shard_index_new(MEMORY);
    make(x, "a", 1, 600);
    struct shard_key key = key_of("a", 1);
    struct shard *used = NULL;
    assert_int_equal(shard_index_get(x, &key, tell, NULL, &used), SHARD_READY);
    make(x, "a", 2, 700);
    assert_int_equal(shard_index_bytes(x), 700);
    assert_non_null(shard_members(used)); /* good while it is used */
    shard_unref(used);
    assert_true(has(x, "a", 2));
    shard_index_free(x);
}

static void test_the_longest_unused_goes(void **state)
{
    (void)state;
    struct shard_index *x = shard_index_new(MEMORY);
    make(x, "a", 1, 400);
    make(x, "b", 1, 400);
    assert_true(has(x, "a", 1));
    make(x, "c", 1, 400);
    assert_int_equal(shard_index_bytes(x), 800);
    assert_true(has(x, "a", 1));
    assert_true(has(x, "c", 1));
    assert_false(has(x, "b", 1));
    shard_index_free(x);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    struct shard_index *x = shard_index_new(MEMORY);
    struct told told = {0};
    struct error err = ERROR_INIT;
    struct shard *a = begin(x, "a", 1, &told), *b = begin(x, "b", 1, &told);
    assert_int_equal(shard_index_grow(x, a, MEMORY + 1, &err), E_ARCHIVE_LIMIT);
    assert_int_equal(shard_index_grow(x, a, MEMORY, &err), 0);
    assert_int_equal(shard_index_grow(x, b, 1, &err), E_OVERLOAD);
    assert_int_equal(shard_index_grow(x, a, MEMORY - 1, &err), 0);
    assert_int_equal(shard_index_grow(x, b, 1, &err), 0);
    shard_index_made(x, a, NULL, &err);
    shard_index_made(x, b, NULL, &err);
    assert_int_equal(shard_index_bytes(x), 0);
    shard_index_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_makes_it_and_all_are_told),
        cmocka_unit_test(test_a_version_takes_the_place_of_another),
        cmocka_unit_test(test_the_longest_unused_goes),
        cmocka_unit_test(test_memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
