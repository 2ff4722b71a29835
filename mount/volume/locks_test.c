/* Locks: the list, beside a table of bytes; two clients; sessions that end. */
#include "mount/volume/lock_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/rng.h"
#include "mount/volume/testing/clients.h"

static struct volume_lock lock_of(enum volume_lock_type type, int64_t start, int64_t end)
{
    return (struct volume_lock){.type = type, .owner = 1, .start = start, .end = end, .pid = 9};
}

static const struct volume_lock whole = {
    .type = VOLUME_LOCK_EXCLUSIVE, .flock = true, .owner = 5, .end = INT64_MAX};

/* ---- the list ---- */

enum { HOLDERS = 4, BYTES = 24, ROUNDS = 20000 };

/* What each holder has at each byte. */
static enum volume_lock_type model[HOLDERS][BYTES];

static bool model_allows(unsigned holder, const struct volume_lock *l)
{
    for (unsigned other = 0; other < HOLDERS; other++) {
        for (int64_t at = l->start; at <= l->end && at < BYTES; at++) {
            if (other != holder && model[other][at] != VOLUME_LOCK_NONE &&
                (model[other][at] == VOLUME_LOCK_EXCLUSIVE || l->type == VOLUME_LOCK_EXCLUSIVE))
                return false;
        }
    }
    return true;
}

static void assert_as_model(const struct lock_list *list)
{
    enum volume_lock_type found[HOLDERS][BYTES] = {0};
    for (size_t i = 0; i < list->count; i++) {
        const struct held_lock *h = &list->locks[i];
        for (int64_t at = h->lock.start; at <= h->lock.end && at < BYTES; at++) {
            assert_int_equal(found[h->session][at], VOLUME_LOCK_NONE); /* none twice */
            found[h->session][at] = h->lock.type;
        }
    }
    assert_memory_equal(found, model, sizeof model);
}

static void a_list_is_as_a_table_of_bytes(void **state)
{
    struct arena *arena = arena_new(4096);
    struct lock_list list;
    struct rng r;
    unsigned refused = 0;
    (void)state;
    rng_seed(&r, 3);
    memset(model, 0, sizeof model);
    assert_true(lock_list_decode(arena, NULL, 0, &list));
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct held_lock wanted = {.session = rng_below(&r, HOLDERS)};
        const int64_t start = (int64_t)rng_below(&r, BYTES);
        wanted.lock = lock_of((enum volume_lock_type)rng_below(&r, 3), start,
                              start + (int64_t)rng_below(&r, BYTES - (uint64_t)start));
        if (wanted.lock.end == BYTES - 1) /* the last byte is all that follow */
            wanted.lock.end = INT64_MAX;
        const bool allowed = wanted.lock.type == VOLUME_LOCK_NONE ||
                             model_allows((unsigned)wanted.session, &wanted.lock);
        assert_int_equal(lock_list_conflict(&list, &wanted) == NULL, allowed);
        refused += !allowed;
        if (!allowed)
            continue;
        lock_list_set(&list, &wanted);
        for (int64_t at = start; at <= wanted.lock.end && at < BYTES; at++)
            model[wanted.session][at] = wanted.lock.type;
        const uint8_t *bytes = lock_list_encode(arena, &list);
        assert_true(lock_list_decode(arena, bytes, list.count * LOCK_BYTES, &list));
        assert_as_model(&list);
        assert_true(list.count <= HOLDERS * BYTES / 2 + HOLDERS);
        if (round % 64 == 0) {
            struct held_lock *kept = list.locks;
            struct held_lock copy[LOCKS_MAX];
            memcpy(copy, kept, list.count * sizeof *copy);
            arena_reset(arena);
            list.locks = arena_alloc(arena, (LOCKS_MAX + 2) * sizeof *copy);
            memcpy(list.locks, copy, list.count * sizeof *copy);
        }
    }
    assert_true(refused > ROUNDS / 10);
    arena_free(arena);
}

static void damaged_lists_are_refused(void **state)
{
    struct arena *arena = arena_new(4096);
    struct lock_list list;
    uint8_t bytes[LOCK_BYTES] = {0};
    (void)state;
    assert_false(lock_list_decode(arena, bytes, LOCK_BYTES - 1, &list));
    assert_false(lock_list_decode(arena, bytes, LOCK_BYTES, &list)); /* no type */
    bytes[36] = VOLUME_LOCK_SHARED;
    assert_true(lock_list_decode(arena, bytes, LOCK_BYTES, &list));
    bytes[31] = 0x80; /* the end */
    assert_false(lock_list_decode(arena, bytes, LOCK_BYTES, &list));
    arena_free(arena);
}

/* ---- two clients ---- */

static int set(struct volume *v, uint64_t ino, struct volume_lock l)
{
    return volume_setlock(v, ino, &l);
}

static void clients_see_locks_of_each_other(void **state)
{
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(set(f.a, x, lock_of(VOLUME_LOCK_EXCLUSIVE, 10, 19)), 0);
    assert_true(volume_haslocks(f.a, x));
    assert_int_equal(set(f.b, x, lock_of(VOLUME_LOCK_SHARED, 19, 30)), -EAGAIN);
    assert_int_equal(set(f.b, x, lock_of(VOLUME_LOCK_SHARED, 20, 30)), 0);
    struct volume_lock asked = lock_of(VOLUME_LOCK_EXCLUSIVE, 0, INT64_MAX);
    assert_int_equal(volume_getlock(f.b, x, &asked), 0);
    assert_int_equal(asked.type, VOLUME_LOCK_EXCLUSIVE);
    assert_int_equal(asked.start, 10);
    assert_int_equal(asked.end, 19);
    assert_int_equal(asked.pid, 0);
    assert_int_equal(set(f.b, x, whole), 0); /* another family */
    assert_int_equal(set(f.a, x, lock_of(VOLUME_LOCK_NONE, 0, INT64_MAX)), 0);
    assert_false(volume_haslocks(f.a, x));
    assert_int_equal(set(f.b, x, lock_of(VOLUME_LOCK_EXCLUSIVE, 0, INT64_MAX)), 0);
    assert_int_equal(volume_getlock(f.b, x, &asked), 0);
    assert_int_equal(asked.type, VOLUME_LOCK_NONE);
}

static void a_conversion_gives_up_the_old_lock(void **state)
{
    struct volume_lock shared = whole;
    (void)state;
    shared.type = VOLUME_LOCK_SHARED;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(set(f.a, x, shared), 0);
    assert_int_equal(set(f.b, x, shared), 0);
    assert_int_equal(set(f.a, x, whole), -EAGAIN);
    assert_int_equal(set(f.b, x, whole), 0); /* both would wait for ever */
    assert_int_equal(set(f.a, x, whole), -EAGAIN);
}

static void locks_end_with_their_session(void **state)
{
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(set(f.a, x, whole), 0);
    assert_int_equal(set(f.b, x, whole), -EAGAIN);
    for (unsigned i = 0; i < 5; i++) {
        advance(SESSION_MS / 5);
        assert_int_equal(volume_beat(f.b), 0);
        assert_int_equal(set(f.b, x, whole), -EAGAIN);
    }
    advance(1); /* a is silent for longer than a session lasts */
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(set(f.b, x, whole), 0);
    assert_int_equal(set(f.a, x, whole), -EAGAIN);
    assert_int_equal(set(f.a, x, lock_of(VOLUME_LOCK_SHARED, 0, 1)), -EIO); /* it is over */
}

/* The engine, or the machine, was away: both are alive, and b comes back first. */
static void who_was_silent_himself_ends_nobody(void **state)
{
    (void)state;
    struct volume_lock none = whole;
    none.type = VOLUME_LOCK_NONE;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(set(f.a, x, whole), 0);
    advance(2 * SESSION_MS);
    assert_int_equal(set(f.b, x, whole), -EAGAIN); /* before its heartbeat */
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(set(f.b, x, whole), -EAGAIN); /* after it */
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(set(f.a, x, none), 0);
    assert_int_equal(set(f.b, x, whole), 0);
}

static void locks_of_a_client_that_left_are_dropped(void **state)
{
    struct volume *left;
    struct volume_env env;
    struct error err = ERROR_INIT;
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    volume_env_init(&env);
    assert_int_equal(volume_open(f.m, &env, &left, &err), 0);
    assert_int_equal(set(left, x, whole), 0);
    assert_int_equal(set(f.b, x, whole), -EAGAIN);
    volume_close(left);
    assert_int_equal(set(f.b, x, whole), 0);
}

static void locks_end_with_their_inode(void **state)
{
    bool more;
    struct meta_item item = {.ask = META_GET};
    struct meta_read r = {.arena = f.arena, .items = &item, .count = 1};
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(set(f.a, x, whole), 0);
    item.key = meta_key_point(META_LOCK, x);
    assert_int_equal(f.m->ops->read(f.m, &r, NULL), 0);
    assert_true(item.value.found);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "x"), 0);
    for (unsigned i = 0; i < 20; i++) {
        advance(GRACE_MS / 18);
        assert_int_equal(volume_beat(f.a), 0);
        assert_int_equal(volume_beat(f.b), 0);
    }
    assert_int_equal(volume_clean(f.a, &more), 0);
    assert_int_equal(f.m->ops->read(f.m, &r, NULL), 0);
    assert_false(item.value.found);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clients_setup, clients_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_as_a_table_of_bytes),
        cmocka_unit_test(damaged_lists_are_refused),
        TEST(clients_see_locks_of_each_other),
        TEST(a_conversion_gives_up_the_old_lock),
        TEST(locks_end_with_their_session),
        TEST(who_was_silent_himself_ends_nobody),
        TEST(locks_of_a_client_that_left_are_dropped),
        TEST(locks_end_with_their_inode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
