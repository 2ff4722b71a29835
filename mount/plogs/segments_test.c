/* Segments over a fake store: what is asked for, and what a reader is told. */
#include "mount/plogs/segments.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

#include "common/log.h"
#include "common/mem.h"

#define MIB (1u << 20)
#define SIZE (6u * MIB + 5)
#define PARTS 7

/* A store whose objects all have the same bytes. */
struct fake {
    char bytes[SIZE];
    atomic_int calls, error;
    atomic_uint_fast64_t given, damaged; /* damaged: SIZE: nothing */
};

struct world {
    struct fake fake;
    uint8_t sums[8 * PARTS];
    struct segments *segments;
};

static int fake_fetch(void *context, const struct entity *e, uint64_t offset, uint64_t length,
                      const struct dfc_sink *sink)
{
    struct fake *f = context;
    (void)e;
    atomic_fetch_add(&f->calls, 1);
    if (f->error != 0)
        return f->error;
    atomic_fetch_add(&f->given, length);
    for (uint64_t at = offset; at < offset + length;) {
        char piece[60000];
        const size_t left = (size_t)(offset + length - at);
        const size_t n = left < sizeof piece ? left : sizeof piece;
        memcpy(piece, f->bytes + at, n);
        if (f->damaged >= at && f->damaged < at + n)
            piece[f->damaged - at] ^= 1;
        if (sink->write(sink->context, piece, n) != 0)
            return -errno;
        at += n;
    }
    return 0;
}

static void begin(struct world *w, uint64_t readahead_bytes, const char *cache)
{
    const struct data_store store = {.context = &w->fake, .fetch = fake_fetch};
    const struct segments_options how = {
        .buffer_bytes = 128 * MIB,
        .readahead_bytes = readahead_bytes,
        .fetchers = 3,
        .cache = {.directories = cache, .bytes = 1u << 30, .idle_ms = 3600000}};
    struct error err = ERROR_INIT;
    if (segments_open(&how, &store, "1/2", &w->segments, &err) != 0)
        fail_msg("%s", err.message);
    w->fake.calls = 0;
    w->fake.given = 0;
}

static void end(struct world *w)
{
    segments_close(w->segments);
    w->segments = NULL;
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    for (size_t i = 0; i < SIZE; i++)
        w->fake.bytes[i] = (char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < PARTS; i++) {
        const size_t left = SIZE - i * MIB;
        const uint64_t sum = htole64(XXH3_64bits(w->fake.bytes + i * MIB, left < MIB ? left : MIB));
        memcpy(w->sums + 8 * i, &sum, sizeof sum);
    }
    w->fake.damaged = SIZE;
    log_set_level(LOG_OFF);
    begin(w, 2 * MIB, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    segments_close(w->segments);
    free(w);
    return 0;
}

static int read_of(struct world *w, const char *name, uint64_t offset, size_t size,
                   struct dfc_error *err)
{
    const struct dfc_plog_segment g = {.object = name, .bytes = SIZE, .sums = w->sums};
    _cleanup_free_ char *to = xcalloc(1, size + 1);
    const int rc = segments_read(w->segments, &g, to, size, offset, err);
    if (rc == DFC_OK)
        assert_memory_equal(to, w->fake.bytes + offset, size);
    return rc;
}

static void must_read(struct world *w, const char *name, uint64_t offset, size_t size)
{
    struct dfc_error err;
    assert_int_equal(read_of(w, name, offset, size, &err), DFC_OK);
}

/* Waits until what was asked for ahead has come. */
static void settle(const struct world *w, uint64_t given)
{
    for (int i = 0; i < 5000 && w->fake.given < given; i++)
        usleep(1000);
    assert_int_equal(w->fake.given, given);
}

static void test_one_request_serves_all_readers_of_a_part(void **state)
{
    struct world *w = *state;
    for (uint64_t at = 2 * MIB + 77; at + 40000 < 3 * MIB; at += 4 * 47008)
        must_read(w, "a", at, 40000);
    must_read(w, "a", 2 * MIB, MIB);
    assert_int_equal(w->fake.calls, 1);
    assert_int_equal(w->fake.given, MIB);
    must_read(w, "a", SIZE - 3, 3);
    assert_int_equal(w->fake.given, MIB + 5);
}

static void test_reads_in_order_are_read_ahead(void **state)
{
    struct world *w = *state;
    must_read(w, "a", 3 * MIB, 10000);
    assert_int_equal(w->fake.given, MIB);
    must_read(w, "a", 3 * MIB + 10000, 600000); /* half a MiB ahead ends in the next part */
    settle(w, 2 * MIB);
    must_read(w, "a", 3 * MIB + 610000, 400000); /* 1 MiB ahead: the same */
    must_read(w, "a", 3 * MIB + 1010000, 600000);
    settle(w, 3 * MIB + 5);
    end(w);
    begin(w, 0, NULL);
    for (uint64_t at = 0; at < 3 * MIB; at += MIB / 2)
        must_read(w, "a", at, MIB / 2);
    usleep(20000);
    assert_int_equal(w->fake.given, 3 * MIB);
}

static void test_reads_at_random_are_not(void **state)
{
    struct world *w = *state;
    static const unsigned order[] = {4, 1, 5, 2};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        must_read(w, "a", order[i] * MIB + 500000, 1000);
    usleep(20000);
    assert_int_equal(w->fake.given, 4 * MIB);
}

/* A little of each segment in turn, as of a strided file of many writers: what is read ahead must
 * not drive out what is read next. */
static void test_many_segments_in_turn(void **state)
{
    enum { SEGMENTS = 40, PIECE = 128 << 10 };
    struct world *w = *state;
    char name[16];
    for (uint64_t at = 0; at < SIZE; at += PIECE) {
        for (int i = 0; i < SEGMENTS; i++) {
            snprintf(name, sizeof name, "s/%d", i);
            must_read(w, name, at, SIZE - at < PIECE ? (size_t)(SIZE - at) : PIECE);
        }
    }
    assert_int_equal(w->fake.given, (uint64_t)SEGMENTS * SIZE);
}

static void test_the_table_is_bounded(void **state)
{
    struct world *w = *state;
    char name[32];
    for (unsigned i = 0; i < SEGMENTS_MOST + 100; i++) {
        const struct dfc_plog_segment g = {.object = name, .bytes = 5, .sums = w->sums + 48};
        char to[5];
        struct dfc_error err;
        snprintf(name, sizeof name, "s/%u", i);
        (void)segments_read(w->segments, &g, to, 5, 0, &err); /* the bytes are another part's */
        assert_true(segments_known(w->segments) <= i + 1);
        if (i == 0)
            w->fake.error = -EIO; /* from now on, without threads' work */
    }
    assert_int_equal(segments_known(w->segments), SEGMENTS_MOST);
}

static void test_errors_are_told_and_not_kept(void **state)
{
    struct world *w = *state;
    static const struct {
        int rc, result;
        const char *code;
    } rows[] = {{-ENOENT, DFC_NOT_FOUND, "object_not_found"},
                {-ESTALE, DFC_NOT_FOUND, "bucket_not_found"},
                {-EACCES, DFC_DENIED, "access_denied"},
                {-ETIMEDOUT, DFC_TIMED_OUT, "timeout"},
                {-EIO, DFC_LOCAL, "io_error"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dfc_error err;
        w->fake.error = rows[i].rc;
        assert_int_equal(read_of(w, "a", MIB, 100, &err), rows[i].result);
        assert_int_equal(err.result, rows[i].result);
        assert_string_equal(err.code, rows[i].code);
        assert_non_null(strstr(err.message, "'a'"));
    }
    w->fake.error = 0;
    must_read(w, "a", MIB, 100);
}

/* Neither memory nor the disk cache gives what differs, and what is mended is read at once. */
static void damage(struct world *w)
{
    struct dfc_error err;
    w->fake.damaged = 4 * MIB - 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read_of(w, "a", 3 * MIB + 5, 100, &err), DFC_LOCAL);
        assert_string_equal(err.code, "io_error");
    }
    must_read(w, "a", 2 * MIB, MIB);
    w->fake.damaged = SIZE;
    must_read(w, "a", 3 * MIB + 5, 100);
    must_read(w, "a", 0, SIZE);
}

static void test_damage(void **state)
{
    damage(*state);
}

static void test_a_disk_cache(void **state)
{
    struct world *w = *state;
    char directory[] = "/tmp/dfc-segments-test-XXXXXX";
    assert_non_null(mkdtemp(directory));
    end(w);
    begin(w, 2 * MIB, directory);
    damage(w);
    end(w);
    begin(w, 2 * MIB, directory);
    must_read(w, "a", 0, SIZE);
    assert_int_equal(w->fake.calls, 0);
    w->sums[0] ^= 1; /* another segment, of the same name: none of its bytes is cached */
    struct dfc_error err;
    assert_int_equal(read_of(w, "a", 0, 1, &err), DFC_LOCAL);
    assert_true(w->fake.calls > 0);
    end(w);
    _cleanup_free_ char *command = xprintf("rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

static void test_other_objects(void **state)
{
    struct world *w = *state;
    struct segments_object o = {.key = "o", .etag = "\"1\"", .size = SIZE};
    _cleanup_free_ char *to = xmalloc(SIZE);
    assert_int_equal(segments_read_object(w->segments, &o, to, SIZE - 7, 7), 0);
    assert_memory_equal(to, w->fake.bytes + 7, SIZE - 7);
    const uint64_t given = w->fake.given;
    assert_int_equal(segments_read_object(w->segments, &o, to, 10, SIZE - 10), 0);
    assert_int_equal(w->fake.given, given);
    o.etag = "\"2\"";
    assert_int_equal(segments_read_object(w->segments, &o, to, 10, SIZE - 10), 0);
    assert_true(w->fake.given > given);
    w->fake.error = -ESTALE;
    o.etag = "\"3\"";
    assert_int_equal(segments_read_object(w->segments, &o, to, 10, 0), -ESTALE);
    assert_int_equal(segments_known(w->segments), 1);
}

enum { THREADS = 8, RECORD = 47008 };

struct reading {
    struct world *world;
    unsigned rank;
};

static void *read_strided(void *context)
{
    const struct reading *r = context;
    for (uint64_t at = (uint64_t)r->rank * RECORD; at < SIZE; at += (uint64_t)THREADS * RECORD)
        must_read(r->world, "a", at, SIZE - at < RECORD ? (size_t)(SIZE - at) : RECORD);
    return NULL;
}

static void test_readers_at_once(void **state)
{
    struct world *w = *state;
    pthread_t threads[THREADS];
    struct reading readings[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        readings[i] = (struct reading){.world = w, .rank = i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_strided, &readings[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(w->fake.given, SIZE);
    assert_true(segments_used(w->segments) >= SIZE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_request_serves_all_readers_of_a_part),
        TEST(test_reads_in_order_are_read_ahead),
        TEST(test_reads_at_random_are_not),
        TEST(test_many_segments_in_turn),
        TEST(test_the_table_is_bounded),
        TEST(test_errors_are_told_and_not_kept),
        TEST(test_damage),
        TEST(test_a_disk_cache),
        TEST(test_other_objects),
        TEST(test_readers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
