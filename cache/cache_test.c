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
#include "cache/testing/pattern.h"
#include "common/fault.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "io/file.h"

#define MIB (1u << 20)
#define BLOCK (128u << 10)
#define STORE_US 60000000 /* the store's latency: no disk is so slow that it is passed by */

static char root[] = "/tmp/dfc-cache-test-XXXXXX";

static int setup(void **state)
{
    (void)state;
    memcpy(root + strlen(root) - 6, "XXXXXX", 6);
    if (mkdtemp(root) == NULL)
        return 1;
    for (unsigned i = 0; i < 3; i++) {
        _cleanup_free_ char *path = xprintf("%s/d%u", root, i);
        if (mkdir(path, 0700) != 0)
            return 1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    return file_remove_tree(root, NULL);
}

/* Of the first `count` directories. */
static struct cache *make_of(unsigned count, uint64_t bytes, uint64_t fill_bytes)
{
    struct cache *c;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *one = xprintf("%s/d0", root);
    _cleanup_free_ char *all = xprintf("%s/d0:%s/d1:%s/d2", root, root, root);
    const struct cache_options options = {
        .directories = count == 1 ? one : all,
        .bytes = bytes,
        .fill_bytes = fill_bytes,
        .free_percent = 0,
        .idle_ms = 3600000,
    };
    if (cache_open(&options, &c, &err) != 0)
        fail_msg("%s", err.message);
    return c;
}

static struct cache *make(unsigned count)
{
    return make_of(count, 1u << 30, 64 * MIB);
}

static void generate(const struct cache_entity *e, uint64_t offset, size_t size, char *to)
{
    pattern_fill(to, (unsigned char)e->name[0], offset, size);
}

/* The store gives these bytes of one piece. */
static bool fill_span(struct cache *c, const struct cache_entity *e, uint64_t offset, uint64_t size,
                      bool insist)
{
    const struct cache_span s = {.entity = e, .offset = offset, .size = size};
    struct cache_fill fill = cache_fill_begin(c, &s, insist);
    bool wanted = fill.data != NULL;
    if (wanted)
        generate(e, offset, size, fill.data);
    cache_fill_end(c, &s, &fill, true, STORE_US);
    return wanted;
}

/* All of the entity, in parts of `part` bytes. */
static void fill(struct cache *c, const struct cache_entity *e, uint64_t part, bool insist)
{
    for (uint64_t at = 0; at < e->size; at += part)
        fill_span(c, e, at, e->size - at < part ? e->size - at : part, insist);
}

struct got {
    const struct cache_entity *entity;
    uint64_t at;
    int rc;
};

static int take(void *context, const void *data, size_t size)
{
    struct got *g = context;
    assert_true(pattern_matches(data, (unsigned char)g->entity->name[0], g->at, size));
    g->at += size;
    return g->rc;
}

/* A cache that knows nothing of the store would pass a very slow directory by, to learn of it. */
static void store_is_slow(struct cache *c)
{
    const struct cache_entity e = {.name = "e", .set = "s"};
    const struct cache_span s = {.entity = &e};
    for (unsigned i = 0; i < PACE_LEAST; i++) {
        struct cache_fill none = {0};
        cache_fill_end(c, &s, &none, true, STORE_US);
    }
}

/* Bytes of it that are cached, each compared. */
static uint64_t read_all(struct cache *c, const struct cache_entity *e)
{
    uint64_t sum = 0;
    for (uint64_t at = 0; at < e->size; at += MIB) {
        struct got g = {.entity = e, .at = at};
        const struct cache_span s = {
            .entity = e, .offset = at, .size = e->size - at < MIB ? e->size - at : MIB};
        int64_t n = cache_read(c, &s, take, &g);
        assert_true(n >= 0 && (uint64_t)n <= s.size);
        sum += (uint64_t)n;
    }
    return sum;
}

static void what_the_store_gave_is_read_again(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= 3; count += 2) {
        const struct cache_entity e = {
            .name = count == 1 ? "1" : "3", .set = "s", .size = 21 * MIB + 17};
        struct cache *c = make(count);
        assert_int_equal(read_all(c, &e), 0);
        fill(c, &e, MIB, true); /* waits, where the disk is slow */
        cache_flush(c);
        assert_int_equal(cache_bytes_of(c, &e, 0, e.size), e.size);
        assert_int_equal(read_all(c, &e), e.size);
        cache_close(c);
        c = make(count); /* the next process */
        store_is_slow(c);
        assert_int_equal(read_all(c, &e), e.size);
        assert_int_equal(cache_bytes_of(c, &e, 5, UINT32_MAX), e.size - 5);
        cache_close(c);
    }
}

static void versions_do_not_meet(void **state)
{
    (void)state;
    const struct cache_entity one = {.name = "1", .set = "s", .size = 5 * MIB};
    const struct cache_entity two = {.name = "2", .set = "s", .size = 5 * MIB};
    struct cache *c = make(1);
    fill(c, &one, MIB, false);
    cache_flush(c);
    assert_int_equal(read_all(c, &two), 0);
    fill(c, &two, MIB, false);
    cache_flush(c);
    assert_int_equal(read_all(c, &one), one.size);
    assert_int_equal(read_all(c, &two), two.size);
    cache_close(c);
}

static void parts_may_come_in_any_order(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "e", .set = "s", .size = PIECE_BYTES};
    struct cache *c = make(1);
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(cache_bytes_of(c, &e, 0, e.size), 0);
        assert_true(fill_span(c, &e, (uint64_t)(i * 13 % 32) * BLOCK, BLOCK, false));
        cache_flush(c);
    }
    assert_int_equal(read_all(c, &e), e.size);
    assert_false(fill_span(c, &e, 0, BLOCK, false)); /* it is there */
    cache_close(c);
}

static void what_the_store_did_not_give_is_not_kept(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "e", .set = "s", .size = BLOCK};
    const struct cache_span s = {.entity = &e, .size = BLOCK};
    struct cache *c = make(1);
    struct cache_fill f = cache_fill_begin(c, &s, false);
    assert_non_null(f.data);
    cache_fill_end(c, &s, &f, false, STORE_US);
    cache_flush(c);
    assert_int_equal(read_all(c, &e), 0);
    fill(c, &e, BLOCK, false);
    cache_flush(c);
    assert_int_equal(read_all(c, &e), e.size);
    cache_close(c);
}

static void an_error_of_the_reader_is_told(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "e", .set = "s", .size = MIB};
    const struct cache_span s = {.entity = &e, .size = MIB};
    struct got g = {.entity = &e, .rc = -EPIPE};
    struct cache *c = make(1);
    fill(c, &e, MIB, false);
    cache_flush(c);
    assert_int_equal(cache_read(c, &s, take, &g), -EPIPE);
    cache_close(c);
}

static uint64_t du(void)
{
    unsigned long long kib = 0;
    _cleanup_free_ char *command = xprintf("du -sk %s | cut -f1", root);
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
    struct cache *c = make_of(3, 60 * MIB, 64 * MIB);
    for (unsigned i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "%u", i);
        fill(c, &e, MIB, true);
        cache_flush(c);
        assert_true(du() <= 62 * MIB);
    }
    assert_true(du() >= 30 * MIB);
    cache_close(c);
    c = make_of(3, 24 * MIB, 64 * MIB); /* less than there is */
    cache_bytes_of(c, &e, 0, e.size);
    cache_close(c);
    assert_true(du() <= 26 * MIB);
}

static void damaged_bytes_are_not_given(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "e", .set = "s", .size = PIECE_BYTES};
    struct cache *c = make(1);
    fill(c, &e, MIB, false);
    cache_flush(c);
    /* One byte of the third MiB is another one. */
    _cleanup_free_ char *command =
        xprintf("f=$(find %s/d0/dfc-cache/pieces -type f); printf '\\377' | "
                "dd of=$f bs=1 seek=%u conv=notrunc 2>/dev/null",
                root, 2 * MIB + BLOCK + 5);
    char there;
    generate(&e, 2 * MIB + BLOCK + 5, 1, &there);
    assert_true(there != (char)0xff);
    assert_int_equal(system(command), 0);
    struct got g = {.entity = &e, .at = 2 * MIB};
    const struct cache_span s = {.entity = &e, .offset = 2 * MIB, .size = MIB};
    assert_int_equal(cache_read(c, &s, take, &g), BLOCK); /* those before it */
    assert_int_equal(read_all(c, &e), 0);                 /* the piece has gone */
    assert_int_equal(cache_bytes_of(c, &e, 0, e.size), 0);
    fill(c, &e, MIB, false);
    cache_flush(c);
    assert_int_equal(read_all(c, &e), e.size);
    cache_close(c);
}

static void a_full_disk_drops(void **state)
{
    (void)state;
    const struct cache_entity one = {.name = "1", .set = "s", .size = 2 * MIB};
    const struct cache_entity two = {.name = "2", .set = "s", .size = 2 * MIB};
    struct cache *c = make(1);
    fill(c, &one, MIB, false);
    cache_flush(c);
    assert_int_equal(fault_configure("cache.write=ENOSPC", NULL), 0);
    for (unsigned i = 0; i < 10; i++)
        fill(c, &two, MIB, i % 2 == 0);
    cache_flush(c);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    assert_int_equal(read_all(c, &one), one.size);
    assert_int_equal(read_all(c, &two), 0);
    fill(c, &two, MIB, false); /* it is no failed disk */
    cache_flush(c);
    assert_int_equal(read_all(c, &two), two.size);
    cache_close(c);
}

static void a_disk_that_fails_is_left_alone(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "1", .set = "s", .size = MIB};
    struct cache *c = make(1);
    fill(c, &e, MIB, false);
    cache_flush(c);
    assert_int_equal(fault_configure("cache.read=EIO", NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(read_all(c, &e), 0);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    assert_int_equal(read_all(c, &e), 0); /* it is not asked */
    const struct cache_entity other = {.name = "2", .set = "s", .size = MIB};
    assert_false(fill_span(c, &other, 0, MIB, true));
    uint64_t got = 0;
    for (unsigned i = 0; i < 2000 && got == 0; i++) { /* it is tried each half second */
        got = read_all(c, &e);
        usleep(1000);
    }
    assert_int_equal(got, e.size);
    cache_close(c);
}

static void a_slow_disk_is_passed_by(void **state)
{
    (void)state;
    const struct cache_entity e = {.name = "1", .set = "s", .size = BLOCK};
    const struct cache_span s = {.entity = &e, .size = BLOCK};
    struct cache *c = make(1);
    fill(c, &e, BLOCK, false);
    cache_flush(c);
    for (unsigned i = 0; i < 20; i++) { /* the store takes 50 ms */
        struct cache_fill f = {0};
        cache_fill_end(c, &s, &f, true, 50000);
    }
    assert_int_equal(fault_configure("cache.read=delay:80", NULL), 0);
    unsigned hits = 0, passed = 0;
    for (unsigned i = 0; i < 500 && passed < 100; i++) {
        bool hit = read_all(c, &e) > 0;
        hits += hit;
        passed += !hit;
    }
    assert_int_equal(passed, 100); /* some reads showed it; a few more tried */
    assert_true(hits >= 8);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    hits = 0;
    for (unsigned i = 0; i < 5000 && hits < 100; i++) {
        hits += read_all(c, &e) > 0;
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
    struct cache *c = make_of(1, 1u << 30, 2 * MIB);
    struct cache_fill f = cache_fill_begin(c, &first, false);
    assert_non_null(f.data);
    struct cache_fill g = cache_fill_begin(c, &second, false);
    assert_null(g.data);                              /* a new piece takes half at most */
    assert_true(fill_span(c, &one, MIB, MIB, false)); /* the piece that has begun goes on */
    generate(&one, 0, MIB, f.data);
    cache_fill_end(c, &first, &f, true, 1);
    fill(c, &two, MIB, true); /* waits for memory */
    for (unsigned i = 2; i < 4; i++)
        fill_span(c, &one, i * MIB, MIB, true);
    cache_flush(c);
    assert_int_equal(read_all(c, &one), one.size);
    assert_int_equal(read_all(c, &two), two.size);
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
        if (read_all(u->cache, &e) < e.size)
            fill(u->cache, &e, BLOCK * 8, i % 3 == 0);
    }
    return NULL;
}

static void many_users_in_little_room(void **state)
{
    (void)state;
    struct user users[6];
    pthread_t threads[6];
    struct cache *c = make_of(3, 36 * MIB, 12 * MIB);
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
    _cleanup_free_ char *twice = xprintf("%s/d0:%s/d0", root, root);
    o.directories = twice;
    assert_int_equal(cache_open(&o, &c, &err), E_EXISTS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_store_gave_is_read_again),
        TEST(versions_do_not_meet),
        TEST(parts_may_come_in_any_order),
        TEST(what_the_store_did_not_give_is_not_kept),
        TEST(an_error_of_the_reader_is_told),
        TEST(the_limit_holds),
        TEST(damaged_bytes_are_not_given),
        TEST(a_full_disk_drops),
        TEST(a_disk_that_fails_is_left_alone),
        TEST(a_slow_disk_is_passed_by),
        TEST(little_memory_drops_whole_pieces),
        TEST(many_users_in_little_room),
        TEST(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
