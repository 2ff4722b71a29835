#include "mount/data/tiers.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache/testing/pattern.h"
#include "common/fault.h"
#include "common/mem.h"

#define MIB (1u << 20)
#define SIZE (9u * MIB + 5)

static char directory[] = "/tmp/dfc-tiers-test-XXXXXX";

/* A store whose bytes tell their place, and the object's tag by its first letter. */
struct fake {
    uint64_t bytes; /* that it gave */
    unsigned calls;
    int error;
    uint64_t error_at; /* bytes that come before the error */
    bool again;        /* what was given of a whole object is taken back once */
};

struct world {
    struct fake fake;
    struct tiers tiers;
};

static unsigned char letter(const struct entity *e)
{
    return (unsigned char)e->etag[e->etag[0] == '"'];
}

static int fake_give(const struct entity *e, uint64_t from, uint64_t to,
                     const struct dfc_sink *sink)
{
    char part[4093];
    for (uint64_t at = from; at < to;) {
        size_t n = to - at < sizeof part ? (size_t)(to - at) : sizeof part;
        pattern_fill(part, letter(e), at, n);
        if (sink->write(sink->context, part, n) != 0)
            return -errno;
        at += n;
    }
    return 0;
}

static int fake_fetch(void *context, const struct entity *e, uint64_t offset, uint64_t length,
                      const struct dfc_sink *sink)
{
    struct fake *f = context;
    f->calls++;
    if (f->error != 0) {
        uint64_t most = f->error_at < length ? f->error_at : length;
        int rc = fake_give(e, offset, offset + most, sink);
        return rc != 0 ? rc : f->error;
    }
    if (f->again && sink->rewind != NULL) {
        f->again = false;
        if (fake_give(e, offset, offset + length / 2, sink) != 0 ||
            sink->rewind(sink->context) != 0)
            return -EIO;
    }
    f->bytes += length;
    return fake_give(e, offset, offset + length, sink);
}

static void cache_start(struct world *w)
{
    struct error err = ERROR_INIT;
    const struct cache_options options = {
        .directories = directory, .bytes = 1u << 30, .fill_bytes = 64 * MIB, .idle_ms = 3600000};
    if (cache_open(&options, &w->tiers.cache, &err) != 0)
        fail_msg("%s", err.message);
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    memcpy(directory + strlen(directory) - 6, "XXXXXX", 6);
    if (mkdtemp(directory) == NULL)
        return 1;
    cache_start(w);
    w->tiers.scope = xstrdup("7/1234");
    w->tiers.store = (struct data_store){.context = &w->fake, .fetch = fake_fetch};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    fault_configure(NULL, NULL);
    cache_close(w->tiers.cache);
    free(w->tiers.scope);
    free(w);
    _cleanup_free_ char *command = xprintf("rm -rf %s", directory);
    return system(command);
}

struct got {
    const struct entity *entity;
    uint64_t from, at;
    bool may_rewind;
};

static int got_write(void *context, const void *data, size_t size)
{
    struct got *g = context;
    assert_true(pattern_matches(data, letter(g->entity), g->at, size));
    g->at += size;
    return 0;
}

static int got_rewind(void *context)
{
    struct got *g = context;
    assert_true(g->may_rewind);
    g->at = g->from;
    return 0;
}

/* All of the range, each byte compared. */
static int fetch(struct world *w, const struct entity *e, uint64_t offset, uint64_t length)
{
    bool whole = offset == 0 && length == e->size;
    struct got g = {.entity = e, .from = offset, .at = offset, .may_rewind = whole};
    const struct dfc_sink sink = {
        .write = got_write, .rewind = whole ? got_rewind : NULL, .context = &g};
    int rc = tiers_fetch(&w->tiers, e, offset, length, &sink);
    if (rc == 0)
        assert_int_equal(g.at, offset + length);
    return rc;
}

static void the_second_read_asks_the_store_for_nothing(void **state)
{
    struct world *w = *state;
    struct entity *e = entity_new("a/b", "\"1\"", "", SIZE);
    assert_int_equal(fetch(w, e, 0, SIZE), 0); /* over borders of pieces */
    assert_int_equal(w->fake.bytes, SIZE);
    cache_flush(w->tiers.cache);
    assert_int_equal(tiers_cached(&w->tiers, e, 0, UINT64_MAX), SIZE);
    for (uint64_t at = 0; at < SIZE; at += 128u << 10)
        assert_int_equal(fetch(w, e, at, SIZE - at < MIB ? SIZE - at : MIB), 0);
    assert_int_equal(w->fake.bytes, SIZE);
    entity_unref(e);
}

static void another_version_is_another_entity(void **state)
{
    struct world *w = *state;
    struct entity *old = entity_new("a", "\"1\"", "", MIB);
    struct entity *new = entity_new("a", "\"2\"", "", MIB);
    assert_int_equal(fetch(w, old, 0, MIB), 0);
    cache_flush(w->tiers.cache);
    assert_int_equal(fetch(w, new, 0, MIB), 0);
    assert_int_equal(w->fake.bytes, 2 * MIB);
    cache_flush(w->tiers.cache);
    assert_int_equal(fetch(w, old, 0, MIB), 0);
    assert_int_equal(fetch(w, new, 0, MIB), 0);
    assert_int_equal(w->fake.bytes, 2 * MIB);
    entity_unref(old);
    entity_unref(new);
}

/* Nothing tells its versions apart. */
static void without_a_tag_nothing_is_kept(void **state)
{
    struct world *w = *state;
    static const char *const tags[] = {"", "W/\"1\""};
    for (size_t i = 0; i < 2; i++) {
        struct entity *e = entity_new("a", tags[i], "", MIB);
        for (uint64_t times = 1; times < 3; times++) {
            w->fake.calls = 0;
            assert_int_equal(fetch(w, e, 0, MIB), 0);
            assert_int_equal(w->fake.calls, 1);
            cache_flush(w->tiers.cache);
        }
        assert_int_equal(tiers_warm(&w->tiers, e, 0, MIB), -EOPNOTSUPP);
        entity_unref(e);
    }
}

static void a_failure_of_the_store_is_told_and_not_kept(void **state)
{
    struct world *w = *state;
    struct entity *e = entity_new("a", "\"1\"", "", SIZE);
    w->fake.error = -ESTALE;
    for (w->fake.error_at = 0; w->fake.error_at < SIZE; w->fake.error_at += 3 * MIB + 7)
        assert_int_equal(fetch(w, e, 0, SIZE), -ESTALE);
    cache_flush(w->tiers.cache);
    assert_int_equal(tiers_cached(&w->tiers, e, 0, SIZE), 0);
    assert_int_equal(tiers_warm(&w->tiers, e, 0, SIZE), -ESTALE);
    w->fake.error = 0;
    assert_int_equal(fetch(w, e, 0, SIZE), 0);
    assert_int_equal(w->fake.bytes, SIZE);
    entity_unref(e);
}

/* An object that changed under its GET, or came damaged, begins anew. */
static void what_is_taken_back_is_not_kept(void **state)
{
    struct world *w = *state;
    struct entity *e = entity_new("a", "\"1\"", "", MIB);
    w->fake.again = true;
    assert_int_equal(fetch(w, e, 0, MIB), 0);
    assert_false(w->fake.again);
    cache_flush(w->tiers.cache);
    assert_int_equal(fetch(w, e, 0, MIB), 0);
    assert_int_equal(w->fake.bytes, MIB);
    entity_unref(e);
}

static void a_disk_that_fails_fails_no_read(void **state)
{
    struct world *w = *state;
    static const char *const faults[] = {"cache.read=EIO@5", "cache.read=EIO", "cache.write=EIO",
                                         "cache.write=ENOSPC", "cache.rename=EROFS"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char tag[] = {'"', (char)('a' + i), '"', '\0'};
        struct entity *e = entity_new("a", tag, "", SIZE);
        assert_int_equal(fetch(w, e, 0, SIZE), 0);
        cache_flush(w->tiers.cache);
        assert_int_equal(fault_configure(faults[i], NULL), 0);
        for (unsigned times = 0; times < 4; times++) {
            assert_int_equal(fetch(w, e, 0, SIZE), 0);
            assert_int_equal(fetch(w, e, MIB, MIB), 0);
        }
        assert_int_equal(fault_configure(NULL, NULL), 0);
        entity_unref(e);
        cache_close(w->tiers.cache);
        cache_start(w); /* the disk works again */
    }
}

static void warming_brings_what_is_missing(void **state)
{
    struct world *w = *state;
    struct entity *e = entity_new("a", "\"1\"", "", SIZE);
    assert_int_equal(tiers_warm(&w->tiers, e, 5 * MIB, 1), 0); /* a piece comes whole */
    assert_int_equal(w->fake.bytes, PIECE_BYTES);
    assert_int_equal(tiers_cached(&w->tiers, e, 0, SIZE), PIECE_BYTES);
    assert_int_equal(tiers_warm(&w->tiers, e, 0, UINT64_MAX), 0);
    assert_int_equal(w->fake.bytes, SIZE);
    assert_int_equal(tiers_warm(&w->tiers, e, 0, SIZE), 0);
    assert_int_equal(tiers_warm(&w->tiers, e, SIZE, 5), 0);
    assert_int_equal(fetch(w, e, 0, SIZE), 0);
    assert_int_equal(w->fake.bytes, SIZE);
    struct entity *empty = entity_new("b", "\"1\"", "", 0);
    assert_int_equal(tiers_warm(&w->tiers, empty, 0, UINT64_MAX), 0);
    assert_int_equal(tiers_cached(&w->tiers, empty, 0, UINT64_MAX), 0);
    entity_unref(empty);
    entity_unref(e);
}

static void what_cannot_be_written_is_not_warm(void **state)
{
    struct world *w = *state;
    struct entity *e = entity_new("a", "\"1\"", "", SIZE);
    assert_int_equal(fault_configure("cache.write=ENOSPC@4+", NULL), 0);
    assert_int_equal(tiers_warm(&w->tiers, e, 0, SIZE), -ENOSPC);
    entity_unref(e);
}

/* Its sums tell its bytes, so it needs no tag. */
static struct entity *summed(uint64_t first_sum)
{
    struct entity *e = entity_new("v/b/01/1_0", "", "", 3 * MIB);
    uint64_t sums[3 * MIB / ENTITY_BLOCK] = {first_sum};
    entity_set_sums(e, sums);
    return e;
}

static void what_was_written_is_kept(void **state)
{
    struct world *w = *state;
    struct entity *e = summed(1), *other = summed(2);
    _cleanup_free_ char *data = xmalloc(e->size);
    pattern_fill(data, letter(e), 0, e->size);
    tiers_put(&w->tiers, e, data);
    cache_flush(w->tiers.cache);
    assert_int_equal(tiers_cached(&w->tiers, e, 0, UINT64_MAX), e->size);
    assert_int_equal(fetch(w, e, 0, e->size), 0);
    assert_int_equal(w->fake.calls, 0);
    assert_int_equal(tiers_cached(&w->tiers, other, 0, UINT64_MAX), 0); /* of the same name */
    entity_unref(other);
    entity_unref(e);
}

static void what_differs_leaves(void **state)
{
    struct world *w = *state;
    struct entity *e = summed(1);
    tiers_differ(&w->tiers, e, 0); /* nothing is there */
    assert_int_equal(tiers_warm(&w->tiers, e, 0, e->size), 0);
    tiers_differ(&w->tiers, e, MIB);
    assert_int_equal(tiers_cached(&w->tiers, e, 0, UINT64_MAX), 0);
    assert_int_equal(fetch(w, e, 0, e->size), 0);
    assert_int_equal(w->fake.bytes, 2 * e->size);
    entity_unref(e);
}

static bool near(struct world *w, const struct entity *e, uint64_t offset, size_t length)
{
    _cleanup_free_ char *got = xmalloc(length);
    if (!tiers_near(&w->tiers, e, offset, length, got))
        return false;
    assert_true(pattern_matches(got, letter(e), offset, length));
    return true;
}

static void a_few_bytes_come_from_the_cache_alone(void **state)
{
    struct world *w = *state;
    const size_t few = 4096;
    struct entity *e = entity_new("a/b", "\"1\"", "", SIZE);
    struct entity *weak = entity_new("a/b", "W/\"1\"", "", SIZE);
    assert_false(near(w, e, 0, few));
    assert_int_equal(fetch(w, e, 0, SIZE), 0);
    cache_flush(w->tiers.cache);
    uint64_t given = w->fake.bytes;
    assert_true(near(w, e, 0, few));
    assert_true(near(w, e, PIECE_PART - 1, 2)); /* of two parts */
    assert_true(near(w, e, PIECE_PART - 1, NEAR_MOST));
    assert_true(near(w, e, SIZE - 1, 1));
    assert_true(near(w, e, PIECE_BYTES - few, few));
    assert_false(near(w, e, PIECE_BYTES - 1, 2)); /* of two pieces */
    assert_false(near(w, weak, 0, few));
    assert_int_equal(fault_configure("cache.read=EIO", NULL), 0);
    assert_false(near(w, e, 0, few));
    assert_int_equal(w->fake.bytes, given);
    entity_unref(e);
    entity_unref(weak);
}

static void sets_are_two_directories(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a", "s\n"},           {"a/b", "s\na/"}, {"a/b/c", "s\na/b/"},
        {"a/b/c/d", "s\na/b/"}, {"", "s\n"},      {"a/", "s\na/"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_free_ char *set = tiers_set("s", rows[i][0]);
        assert_string_equal(set, rows[i][1]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_second_read_asks_the_store_for_nothing),
        TEST(another_version_is_another_entity),
        TEST(without_a_tag_nothing_is_kept),
        TEST(a_failure_of_the_store_is_told_and_not_kept),
        TEST(what_is_taken_back_is_not_kept),
        TEST(a_disk_that_fails_fails_no_read),
        TEST(warming_brings_what_is_missing),
        TEST(what_cannot_be_written_is_not_warm),
        TEST(what_was_written_is_kept),
        TEST(what_differs_leaves),
        TEST(a_few_bytes_come_from_the_cache_alone),
        cmocka_unit_test(sets_are_two_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
