#include "mount/data/buffer.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (1u << 20)

/* A store whose byte at position i is byte_at(i). */
struct fake {
    pthread_mutex_t lock;
    unsigned calls;
    uint64_t bytes;
    int error;         /* of every call */
    bool held;         /* calls wait */
    unsigned lag_us;   /* a call ends so long after its last byte … */
    unsigned ended;    /* … and so many have */
    uint64_t short_by; /* bytes that do not come */
};

static char byte_at(uint64_t i)
{
    return (char)(i * 2654435761u >> 13);
}

static int fake_fetch(void *context, const struct entity *e, uint64_t offset, uint64_t length,
                      const struct dfc_sink *sink)
{
    struct fake *f = context;
    char part[4093];
    (void)e;
    pthread_mutex_lock(&f->lock);
    f->calls++;
    f->bytes += length;
    int error = f->error;
    uint64_t end = offset + length - f->short_by;
    pthread_mutex_unlock(&f->lock);
    while (__atomic_load_n(&f->held, __ATOMIC_ACQUIRE))
        usleep(1000);
    if (error != 0)
        return error;
    for (uint64_t at = offset; at < end;) {
        size_t n = end - at < sizeof part ? (size_t)(end - at) : sizeof part;
        for (size_t i = 0; i < n; i++)
            part[i] = byte_at(at + i);
        if (sink->write(sink->context, part, n) != 0)
            return -errno;
        at += n;
    }
    usleep(f->lag_us);
    __atomic_add_fetch(&f->ended, 1, __ATOMIC_RELEASE);
    return 0;
}

static struct buffer *make(struct fake *f, uint64_t bytes)
{
    *f = (struct fake){.lock = PTHREAD_MUTEX_INITIALIZER};
    const struct buffer_options options = {.bytes = bytes, .fetchers = 4};
    const struct data_store store = {.context = f, .fetch = fake_fetch};
    return buffer_new(&options, &store);
}

static int read_at(struct buffer *b, struct entity *e, uint64_t offset, size_t size)
{
    char *got = malloc(size + 1);
    const struct buffer_read r = {.entity = e, .offset = offset, .size = size};
    int rc = buffer_read(b, &r, got);
    for (size_t i = 0; rc == 0 && i < size; i++)
        assert_int_equal(got[i], byte_at(offset + i));
    free(got);
    return rc;
}

static int read_alone(struct buffer *b, struct entity *e, uint64_t offset, size_t size)
{
    char got[2 * NEAR_MOST];
    const struct buffer_read r = {.entity = e, .offset = offset, .size = size, .lone = true};
    int rc = buffer_read(b, &r, got);
    for (size_t i = 0; rc == 0 && i < size; i++)
        assert_int_equal(got[i], byte_at(offset + i));
    return rc;
}

static void bytes_come_once_and_stay(void **state)
{
    (void)state;
    struct fake f;
    struct buffer *b = make(&f, 8 * MIB);
    struct entity *e = entity_new("a", "\"1\"", "", 3 * MIB + 17);
    assert_int_equal(read_at(b, e, 0, 3 * MIB + 17), 0);
    assert_int_equal(f.bytes, 3 * MIB + 17);
    for (uint64_t at = 1; at < 3 * MIB; at += 99991)
        assert_int_equal(read_at(b, e, at, 1000), 0);
    assert_int_equal(read_at(b, e, 3 * MIB + 16, 1), 0);
    assert_int_equal(read_at(b, e, 3 * MIB + 17, 0), 0);
    assert_int_equal(f.bytes, 3 * MIB + 17);
    assert_int_equal(buffer_used(b), 3 * MIB + 17);
    entity_unref(e);
    buffer_free(b);
}

static void the_bound_holds(void **state)
{
    (void)state;
    struct fake f;
    struct buffer *b = make(&f, MIB);
    struct entity *e = entity_new("a", "\"1\"", "", 16 * MIB);
    for (uint64_t at = 0; at < 16 * MIB; at += MIB) {
        assert_int_equal(read_at(b, e, at, MIB), 0);
        assert_true(buffer_used(b) <= MIB);
    }
    assert_int_equal(read_at(b, e, 0, 16 * MIB), 0); /* more than there is room for */
    assert_true(buffer_used(b) <= MIB);
    entity_unref(e);
    buffer_free(b);
}

static void read_ahead_takes_what_room_there_is(void **state)
{
    (void)state;
    struct fake f;
    struct buffer *b = make(&f, MIB);
    struct entity *e = entity_new("a", "\"1\"", "", 16 * MIB);
    char one;
    const struct buffer_read r = {.entity = e, .size = 1, .ahead = {1, 16 * MIB}};
    assert_int_equal(buffer_read(b, &r, &one), 0);
    assert_true(buffer_used(b) <= MIB);
    entity_unref(e);
    buffer_free(b);
    assert_true(f.bytes > ENTITY_BLOCK && f.bytes <= MIB);
}

static void fail_with(struct fake *f, int error, uint64_t short_by)
{
    pthread_mutex_lock(&f->lock);
    f->error = error;
    f->short_by = short_by;
    pthread_mutex_unlock(&f->lock);
}

/* One fetch brings all of this object, so nothing goes on when the read has failed. */
static void a_failure_is_told_and_not_kept(void **state)
{
    (void)state;
    enum { SIZE = 100000 };
    struct fake f;
    struct buffer *b = make(&f, 8 * MIB);
    struct entity *e = entity_new("a", "\"1\"", "", SIZE);
    fail_with(&f, -ESTALE, 0);
    assert_int_equal(read_at(b, e, 5, SIZE - 5), -ESTALE);
    fail_with(&f, 0, 1);
    assert_int_equal(read_at(b, e, 0, SIZE), -EIO);
    fail_with(&f, 0, 0);
    assert_int_equal(read_at(b, e, 0, SIZE), 0);
    entity_unref(e);
    buffer_free(b);
    assert_int_equal(f.calls, 3);
}

static void a_failure_of_many_fetches(void **state)
{
    (void)state;
    static const struct {
        int error;
        uint64_t short_by;
        int want;
    } rows[] = {{-ESTALE, 0, -ESTALE}, {0, 1, -EIO}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake f;
        struct buffer *b = make(&f, 8 * MIB);
        struct entity *e = entity_new("a", "\"1\"", "", 3 * MIB);
        fail_with(&f, rows[i].error, rows[i].short_by);
        assert_int_equal(read_at(b, e, 5, 2 * MIB), rows[i].want);
        entity_unref(e);
        buffer_free(b);
    }
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static void an_interrupted_reader_leaves(void **state)
{
    (void)state;
    struct fake f;
    struct buffer *b = make(&f, MIB);
    struct entity *e = entity_new("a", "\"1\"", "", 1000);
    char got[1000];
    const struct buffer_read r = {.entity = e, .size = sizeof got, .interrupted = always};
    __atomic_store_n(&f.held, true, __ATOMIC_RELEASE);
    assert_int_equal(buffer_read(b, &r, got), -EINTR);
    __atomic_store_n(&f.held, false, __ATOMIC_RELEASE);
    assert_int_equal(read_at(b, e, 0, 1000), 0); /* the fetch went on */
    entity_unref(e);
    buffer_free(b);
    assert_int_equal(f.calls, 1);
}

struct reader {
    struct buffer *buffer;
    struct entity *entity;
    unsigned seed;
    int rc;
};

static void *reader(void *context)
{
    struct reader *r = context;
    unsigned at = r->seed;
    for (unsigned i = 0; i < 40 && r->rc == 0; i++) {
        at = at * 1103515245u + 12345u;
        r->rc = read_at(r->buffer, r->entity, at % (6 * MIB), 300000);
    }
    return NULL;
}

static void many_readers_in_little_room(void **state)
{
    (void)state;
    struct fake f;
    struct buffer *b = make(&f, MIB);
    struct entity *e = entity_new("a", "\"1\"", "", 8 * MIB);
    struct reader readers[8];
    pthread_t threads[8];
    for (unsigned i = 0; i < 8; i++) {
        readers[i] = (struct reader){.buffer = b, .entity = e, .seed = i};
        pthread_create(&threads[i], NULL, reader, &readers[i]);
    }
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].rc, 0);
    }
    assert_true(buffer_used(b) <= MIB);
    entity_unref(e);
    buffer_free(b);
}

static void a_settled_range_has_no_call(void **state)
{
    (void)state;
    struct fake f;
    struct buffer *b = make(&f, 8 * MIB);
    struct entity *e = entity_new("a", "\"1\"", "", 3 * MIB);
    f.lag_us = 50000; /* readers have the bytes before the calls end */
    assert_int_equal(read_at(b, e, 0, 3 * MIB), 0);
    buffer_settle(b, e, (struct span){0, 3 * MIB});
    assert_int_equal(__atomic_load_n(&f.ended, __ATOMIC_ACQUIRE), f.calls);
    buffer_settle(b, e, (struct span){0, 3 * MIB}); /* nothing runs */
    entity_unref(e);
    buffer_free(b);
}

struct near_by {
    struct fake fake; /* first: of the fetches */
    bool has;
    unsigned asked;
};

static bool fake_near(void *context, const struct entity *e, uint64_t offset, size_t length,
                      void *to)
{
    struct near_by *n = context;
    (void)e;
    n->asked++;
    for (size_t i = 0; n->has && i < length; i++)
        ((char *)to)[i] = byte_at(offset + i);
    return n->has;
}

static void a_short_read_at_a_random_place_is_served_near(void **state)
{
    (void)state;
    struct near_by n = {.fake = {.lock = PTHREAD_MUTEX_INITIALIZER}, .has = true};
    const struct buffer_options options = {.bytes = 8 * MIB, .fetchers = 1};
    const struct data_store store = {.context = &n, .fetch = fake_fetch, .near = fake_near};
    struct buffer *b = buffer_new(&options, &store);
    struct entity *e = entity_new("a", "\"1\"", "", 3 * MIB);
    assert_int_equal(read_alone(b, e, 3 * ENTITY_BLOCK - 4096, 4096), 0);
    assert_int_equal(buffer_used(b), 0);
    assert_int_equal(read_alone(b, e, 2 * ENTITY_BLOCK, 4096), 0); /* again there: it is fetched */
    assert_int_equal(buffer_used(b), ENTITY_BLOCK);
    assert_int_equal(read_alone(b, e, 2 * ENTITY_BLOCK + 7, 4096), 0);
    assert_int_equal(n.asked, 1);
    assert_int_equal(read_alone(b, e, MIB - 1, 2), 0); /* of two blocks */
    assert_int_equal(read_alone(b, e, 2 * MIB, NEAR_MOST + 1), 0);
    assert_int_equal(read_at(b, e, 4 * ENTITY_BLOCK, 1), 0); /* it continues another */
    char one;
    const struct buffer_read r = {.entity = e, .size = 1, .ahead = {1, ENTITY_BLOCK}, .lone = true};
    assert_int_equal(buffer_read(b, &r, &one), 0);
    assert_int_equal(n.asked, 1);
    uint64_t fetched = n.fake.bytes;
    n.has = false;
    assert_int_equal(read_alone(b, e, 2 * MIB + 5 * ENTITY_BLOCK, 1), 0);
    assert_int_equal(n.asked, 2);
    assert_int_equal(n.fake.bytes, fetched + ENTITY_BLOCK);
    entity_unref(e);
    buffer_free(b);
}

static void readers_share(void **state)
{
    (void)state;
    struct fake f;
    struct buffer *b = make(&f, 10 * MIB);
    assert_int_equal(buffer_share(b), 8 * MIB);
    buffer_readers(b, 1);
    buffer_readers(b, 1);
    assert_int_equal(buffer_share(b), 4 * MIB);
    buffer_readers(b, -1);
    assert_int_equal(buffer_share(b), 8 * MIB);
    buffer_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_once_and_stay),
        cmocka_unit_test(the_bound_holds),
        cmocka_unit_test(read_ahead_takes_what_room_there_is),
        cmocka_unit_test(a_failure_is_told_and_not_kept),
        cmocka_unit_test(a_failure_of_many_fetches),
        cmocka_unit_test(an_interrupted_reader_leaves),
        cmocka_unit_test(many_readers_in_little_room),
        cmocka_unit_test(a_settled_range_has_no_call),
        cmocka_unit_test(a_short_read_at_a_random_place_is_served_near),
        cmocka_unit_test(readers_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
