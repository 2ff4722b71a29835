#include "cache/cache.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cache/pace.h"
#include "cache/testing/caches.h"
#include "common/fault.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "io/file.h"

static void what_the_store_gave_is_read_again(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= 3; count += 2) {
        const struct cache_entity e = {
            .name = count == 1 ? "1" : "3", .set = "s", .size = 21 * MIB + 17};
        struct cache *c = caches_make(count);
        assert_int_equal(caches_read_all(c, &e), 0);
        caches_fill(c, &e, MIB, true); /* waits, where the disk is slow */
        cache_flush(c);
        assert_int_equal(cache_bytes_of(c, &e, 0, e.size), e.size);
        assert_int_equal(caches_read_all(c, &e), e.size);
        cache_close(c);
        c = caches_make(count); /* the next process */
        caches_store_is_slow(c);
        assert_int_equal(caches_read_all(c, &e), e.size);
        assert_int_equal(cache_bytes_of(c, &e, 5, UINT32_MAX), e.size - 5);
        cache_close(c);
    }
}

static void versions_do_not_meet(void **state)
{
    (void)state;
    const struct cache_entity one = {.name = "1", .set = "s", .size = 5 * MIB};
    const struct cache_entity two = {.name = "2", .set = "s", .size = 5 * MIB};
    struct cache *c = caches_make(1);
    caches_fill(c, &one, MIB, false);
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &two), 0);
    caches_fill(c, &two, MIB, false);
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &one), one.size);
    assert_int_equal(caches_read_all(c, &two), two.size);
    cache_close(c);
}

static void parts_may_come_in_any_order(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "e", .set = "s", .size = PIECE_BYTES};
    struct cache *c = caches_make(1);
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(cache_bytes_of(c, &e, 0, e.size), 0);
        assert_true(caches_fill_span(c, &e, (uint64_t)(i * 13 % 32) * BLOCK, BLOCK, false));
        cache_flush(c);
    }
    assert_int_equal(caches_read_all(c, &e), e.size);
    assert_false(caches_fill_span(c, &e, 0, BLOCK, false)); /* it is there */
    cache_close(c);
}

static void what_the_store_did_not_give_is_not_kept(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "e", .set = "s", .size = BLOCK};
    const struct cache_span s = {.entity = &e, .size = BLOCK};
    struct cache *c = caches_make(1);
    struct cache_fill f = cache_fill_begin(c, &s, false);
    assert_non_null(f.data);
    cache_fill_end(c, &s, &f, false, STORE_US);
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &e), 0);
    caches_fill(c, &e, BLOCK, false);
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &e), e.size);
    cache_close(c);
}

static void an_error_of_the_reader_is_told(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "e", .set = "s", .size = MIB};
    const struct cache_span s = {.entity = &e, .size = MIB};
    struct caches_got g = {.entity = &e, .rc = -EPIPE};
    struct cache *c = caches_make(1);
    caches_fill(c, &e, MIB, false);
    cache_flush(c);
    assert_int_equal(cache_read(c, &s, caches_take, &g), -EPIPE);
    cache_close(c);
}

static uint64_t du(void)
{
    unsigned long long kib = 0;
    _cleanup_free_ char *command = xprintf("du -sk %s | cut -f1", caches_root);
    FILE *out = popen(command, "r");
    assert_int_equal(fscanf(out, "%llu", &kib), 1);
    pclose(out);
    return kib << 10;
}

static void the_limit_holds(void **state)
{
    (void)state;
    char name[32];
    struct cache_entity e = {.name = name, .set = "s", .size = 3 * MIB};
    struct cache *c = caches_make_of(3, 60 * MIB, 64 * MIB);
    for (unsigned i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "%u", i);
        caches_fill(c, &e, MIB, true);
        cache_flush(c);
        assert_true(du() <= 62 * MIB);
    }
    assert_true(du() >= 30 * MIB);
    cache_close(c);
    c = caches_make_of(3, 24 * MIB, 64 * MIB); /* less than there is */
    cache_bytes_of(c, &e, 0, e.size);
    cache_close(c);
    assert_true(du() <= 26 * MIB);
}

static void damaged_bytes_are_not_given(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "e", .set = "s", .size = PIECE_BYTES};
    struct cache *c = caches_make(1);
    caches_fill(c, &e, MIB, false);
    cache_flush(c);
    /* One byte of the third MiB is another one. */
    _cleanup_free_ char *command =
        xprintf("f=$(find %s/d0/dfc-cache/pieces -type f); printf '\\377' | "
                "dd of=$f bs=1 seek=%u conv=notrunc 2>/dev/null",
                caches_root, 2 * MIB + BLOCK + 5);
    char there;
    caches_generate(&e, 2 * MIB + BLOCK + 5, 1, &there);
    assert_true(there != (char)0xff);
    assert_int_equal(system(command), 0);
    struct caches_got g = {.entity = &e, .at = 2 * MIB};
    const struct cache_span s = {.entity = &e, .offset = 2 * MIB, .size = MIB};
    assert_int_equal(cache_read(c, &s, caches_take, &g), BLOCK); /* those before it */
    assert_int_equal(caches_read_all(c, &e), 0);                 /* the piece has gone */
    assert_int_equal(cache_bytes_of(c, &e, 0, e.size), 0);
    caches_fill(c, &e, MIB, false);
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &e), e.size);
    cache_close(c);
}

static void a_full_disk_drops(void **state)
{
    (void)state;
    const struct cache_entity one = {.name = "1", .set = "s", .size = 2 * MIB};
    const struct cache_entity two = {.name = "2", .set = "s", .size = 2 * MIB};
    struct cache *c = caches_make(1);
    caches_fill(c, &one, MIB, false);
    cache_flush(c);
    assert_int_equal(fault_configure("cache.write=ENOSPC", NULL), 0);
    for (unsigned i = 0; i < 10; i++)
        caches_fill(c, &two, MIB, i % 2 == 0);
    cache_flush(c);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    assert_int_equal(caches_read_all(c, &one), one.size);
    assert_int_equal(caches_read_all(c, &two), 0);
    caches_fill(c, &two, MIB, false); /* it is no failed disk */
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &two), two.size);
    cache_close(c);
}

static void a_disk_that_fails_is_left_alone(void **state)
{
    (void)state;
    static const struct cache_entity lost[] = {{.name = "1", .set = "s", .size = MIB},
                                               {.name = "2", .set = "s", .size = MIB},
                                               {.name = "3", .set = "s", .size = MIB}};
    const struct cache_entity e = {.name = "4", .set = "s", .size = MIB};
    struct cache *c = caches_make(1);
    for (unsigned i = 0; i < 3; i++)
        caches_fill(c, &lost[i], MIB, false);
    caches_fill(c, &e, MIB, false);
    cache_flush(c);
    assert_int_equal(fault_configure("cache.read=EIO", NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(caches_read_all(c, &lost[i]), 0);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    assert_int_equal(caches_read_all(c, &e), 0); /* it is not asked */
    assert_false(caches_fill_span(c, &lost[0], 0, MIB, true));
    uint64_t got = 0;
    for (unsigned i = 0; i < 2000 && got == 0; i++) { /* it is tried each half second */
        got = caches_read_all(c, &e);
        usleep(1000);
    }
    assert_int_equal(got, e.size);
    cache_close(c);
}

static void an_error_of_a_file_costs_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        bool stays;
    } rows[] = {
        {"cache.read=EIO@1", false},     {"cache.read=EUCLEAN@1", false},
        {"cache.read=ENODATA@1", false}, {"cache.read=ETIMEDOUT@1", false},
        {"cache.read=EMFILE@1", true},   {"cache.read=ENOMEM@1", true},
    };
    const struct cache_entity e = {.name = "e", .set = "s", .size = MIB};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache *c = caches_make(1);
        caches_fill(c, &e, MIB, true);
        cache_flush(c);
        assert_int_equal(fault_configure(rows[i].fault, NULL), 0);
        assert_int_equal(caches_read_all(c, &e), 0);
        assert_int_equal(fault_configure(NULL, NULL), 0);
        assert_int_equal(caches_read_all(c, &e), rows[i].stays ? e.size : 0);
        assert_int_equal(cache_bytes_of(c, &e, 0, e.size), rows[i].stays ? e.size : 0);
        cache_close(c);
    }
}

static void a_slow_disk_is_passed_by(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "1", .set = "s", .size = BLOCK};
    const struct cache_span s = {.entity = &e, .size = BLOCK};
    struct cache *c = caches_make(1);
    caches_fill(c, &e, BLOCK, false);
    cache_flush(c);
    for (unsigned i = 0; i < 20; i++) { /* the store takes 50 ms */
        struct cache_fill f = {0};
        cache_fill_end(c, &s, &f, true, 50000);
    }
    assert_int_equal(fault_configure("cache.read=delay:80", NULL), 0);
    unsigned hits = 0, passed = 0;
    for (unsigned i = 0; i < 500 && passed < 100; i++) {
        bool hit = caches_read_all(c, &e) > 0;
        hits += hit;
        passed += !hit;
    }
    assert_int_equal(passed, 100); /* some reads showed it; a few more tried */
    assert_true(hits >= 8);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    hits = 0;
    for (unsigned i = 0; i < 5000 && hits < 100; i++) {
        hits += caches_read_all(c, &e) > 0;
        usleep(1000);
    }
    assert_int_equal(hits, 100);
    cache_close(c);
}

static void little_memory_drops_whole_pieces(void **state)
{
    (void)state;
    const struct cache_entity one = {.name = "1", .set = "s", .size = PIECE_BYTES};
    const struct cache_entity two = {.name = "2", .set = "s", .size = PIECE_BYTES};
    const struct cache_span first = {.entity = &one, .size = MIB};
    const struct cache_span second = {.entity = &two, .size = MIB};
    struct cache *c = caches_make_of(1, 1u << 30, 2 * MIB);
    struct cache_fill f = cache_fill_begin(c, &first, false);
    assert_non_null(f.data);
    struct cache_fill g = cache_fill_begin(c, &second, false);
    assert_null(g.data);                                     /* a new piece takes half at most */
    assert_true(caches_fill_span(c, &one, MIB, MIB, false)); /* the piece that has begun goes on */
    caches_generate(&one, 0, MIB, f.data);
    cache_fill_end(c, &first, &f, true, 1);
    caches_fill(c, &two, MIB, true); /* waits for memory */
    for (unsigned i = 2; i < 4; i++)
        caches_fill_span(c, &one, i * MIB, MIB, true);
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &one), one.size);
    assert_int_equal(caches_read_all(c, &two), two.size);
    cache_close(c);
}

struct user {
    struct cache *cache;
    unsigned seed;
};

static void *user(void *context)
{
    struct user *u = context;
    for (unsigned i = 0; i < 60; i++) {
        char name[2] = {(char)('a' + (u->seed + i * 7) % 9), '\0'};
        const struct cache_entity e = {
            .name = name, .set = name[0] < 'e' ? "s" : "t", .size = 3 * MIB + 5};
        if (caches_read_all(u->cache, &e) < e.size)
            caches_fill(u->cache, &e, BLOCK * 8, i % 3 == 0);
    }
    return NULL;
}

static void many_users_in_little_room(void **state)
{
    (void)state;
    struct user users[6];
    pthread_t threads[6];
    struct cache *c = caches_make_of(3, 36 * MIB, 12 * MIB);
    for (unsigned i = 0; i < 6; i++) {
        users[i] = (struct user){.cache = c, .seed = i * 3};
        pthread_create(&threads[i], NULL, user, &users[i]);
    }
    for (unsigned i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    cache_close(c);
    assert_true(du() <= 38 * MIB);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct cache *c;
    struct error err = ERROR_INIT;
    struct cache_options o = {.directories = "/no/such", .bytes = MIB, .fill_bytes = MIB};
    assert_int_not_equal(cache_open(&o, &c, &err), 0);
    assert_non_null(strstr(err.message, "/no/such"));
    o.directories = ":";
    assert_int_not_equal(cache_open(&o, &c, &err), 0);
    assert_non_null(strstr(err.message, "no directory"));
    _cleanup_free_ char *twice = xprintf("%s/d0:%s/d0", caches_root, caches_root);
    o.directories = twice;
    assert_int_equal(cache_open(&o, &c, &err), E_EXISTS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, caches_setup, caches_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_store_gave_is_read_again), TEST(versions_do_not_meet),
        TEST(parts_may_come_in_any_order),       TEST(what_the_store_did_not_give_is_not_kept),
        TEST(an_error_of_the_reader_is_told),    TEST(the_limit_holds),
        TEST(damaged_bytes_are_not_given),       TEST(a_full_disk_drops),
        TEST(a_disk_that_fails_is_left_alone),   TEST(an_error_of_a_file_costs_the_file),
        TEST(a_slow_disk_is_passed_by),          TEST(little_memory_drops_whole_pieces),
        TEST(many_users_in_little_room),         TEST(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
