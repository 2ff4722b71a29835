#include "cache/tier.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/testing/caches.h"
#include "cache/tier_parts.h"
#include "common/fault.h"
#include "common/mem.h"

#define SETS 5

static const struct cache_entity entity = {.name = "0", .set = "0", .size = MIB};

/* The first directory. */
static struct tier *tier_opened(void)
{
    struct tier *t;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *directory = xprintf("%s/d0", caches_root);
    const struct tier_options options = {
        .directory = directory, .limit_bytes = 1u << 30, .fill_bytes = 64 * MIB};
    if (tier_open(&options, &t, &err) != 0)
        fail_msg("%s", err.message);
    return t;
}

/* Each of `count` sets has an entity there. */
static struct tier *tier_of_sets(unsigned count, const char *faults)
{
    struct cache *c = caches_make(1);
    for (unsigned i = 0; i < count; i++) {
        _cleanup_free_ char *name = xprintf("%u", i);
        const struct cache_entity e = {.name = name, .set = name, .size = MIB};
        caches_fill(c, &e, MIB, true);
    }
    cache_close(c);
    assert_int_equal(fault_configure(faults, NULL), 0);
    return tier_opened();
}

static void a_scan_ends_when_it_is_stopped(void **state)
{
    (void)state;
    const struct piece p = piece_of(&entity, 0);
    _cleanup_free_ char *hold = xprintf("%s/hold", caches_root);
    _cleanup_free_ char *faults = xprintf("cache.scan=hold:%s", hold);
    assert_int_equal(mkdir(hold, 0700), 0);
    struct tier *t = tier_of_sets(SETS, faults);
    pthread_mutex_lock(&t->lock);
    t->stop = true; /* as tier_stop(), which waits then */
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(rmdir(hold), 0);
    tier_has(t, &p.id); /* the scan has ended */
    assert_true(policy_count(t->policy) < SETS);
    tier_close(t);
}

static void a_scan_of_a_bad_disk_is_given_up(void **state)
{
    (void)state;
    const struct piece p = piece_of(&entity, 0);
    struct tier *t = tier_of_sets(SETS, "cache.scan=EIO@2+");
    tier_has(t, &p.id);
    assert_int_equal(t->health.state, HEALTH_SICK);
    tier_close(t);
}

/* The error of a read. */
static void meet(struct tier *t, const struct piece *p, const struct files_piece *found)
{
    _cleanup_free_ char *to = xmalloc(p->size);
    assert_int_equal(fault_configure("cache.read=EIO", NULL), 0);
    assert_int_equal(tier_read(t, found, p, 0, p->size, to), -EIO);
    assert_int_equal(fault_configure(NULL, NULL), 0);
}

/* It counts, and leaves later. */
static void what_cannot_be_removed_stays_known(void **state)
{
    (void)state;
    struct files_piece found;
    const struct piece p = piece_of(&entity, 0);
    struct tier *t = tier_of_sets(1, NULL);
    _cleanup_free_ char *command =
        xprintf("f=$(find %s/d0/dfc-cache/pieces -type f); rm $f; mkdir $f", caches_root);
    assert_true(tier_has(t, &p.id));
    assert_int_equal(tier_find(t, &p, &found), 0);
    assert_int_equal(system(command), 0);
    meet(t, &p, &found);
    assert_true(tier_knows(t, &p.id));
    files_found_close(&found);
    tier_close(t);
}

/* The piece cannot be read after so many errors of the disk. */
static struct tier *tier_after(unsigned errors, const struct piece *p)
{
    struct files_piece found;
    struct tier *t = tier_of_sets(1, NULL);
    assert_true(tier_has(t, &p->id));
    assert_int_equal(tier_find(t, p, &found), 0);
    for (unsigned i = 0; i < errors; i++)
        tier_note(t, "write", -EIO);
    meet(t, p, &found);
    files_found_close(&found);
    assert_int_equal(t->health.state, HEALTH_SICK);
    return t;
}

static void a_failed_disk_loses_nothing(void **state)
{
    (void)state;
    struct files_piece found;
    const struct piece p = piece_of(&entity, 0);
    struct tier *t = tier_after(HEALTH_ERRORS, &p);
    assert_true(tier_knows(t, &p.id));
    assert_int_equal(tier_find(t, &p, &found), 0);
    files_found_close(&found);
    tier_close(t);
}

/* The tries of the disk would meet it again, and again. */
static void the_last_error_costs_its_piece(void **state)
{
    (void)state;
    const struct piece p = piece_of(&entity, 0);
    struct tier *t = tier_after(HEALTH_ERRORS - 1, &p);
    assert_false(tier_knows(t, &p.id));
    tier_close(t);
}

/* A file of all pieces that nobody will compare, for the disk has failed meanwhile. */
static void a_suspect_that_cannot_wait_leaves(void **state)
{
    (void)state;
    const struct cache_entity large = {.name = "0", .set = "0", .size = 2 * PIECE_BYTES};
    const struct piece whole = piece_whole(&large);
    struct cache *c = caches_make(1);
    caches_fill(c, &large, MIB, true);
    cache_flush(c);
    caches_store_is_slow(c);
    assert_int_equal(cache_whole(c, &large), -1); /* it is asked for */
    caches_settle();
    cache_close(c);
    struct tier *t = tier_opened();
    assert_true(tier_has(t, &whole.id));
    t->health.state = HEALTH_SICK;
    tier_suspect(t, &large);
    assert_false(tier_knows(t, &whole.id));
    tier_close(t);
}

static void a_copy_takes_no_try(void **state)
{
    (void)state;
    const struct pace_side store = {0};
    const struct piece p = piece_of(&entity, 0);
    struct tier *t = tier_of_sets(1, NULL);
    assert_true(tier_has(t, &p.id));
    assert_true(tier_may_copy(t));
    t->health.state = HEALTH_SICK; /* it was never tried */
    assert_false(tier_may_copy(t));
    assert_true(tier_may_read(t, &store));
    assert_false(tier_may_read(t, &store));
    t->health.state = HEALTH_GOOD;
    t->pace.passed_by = true;
    assert_false(tier_may_copy(t));
    assert_true(tier_may_read(t, &store));
    assert_false(tier_may_read(t, &store));
    tier_close(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, caches_setup, caches_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_scan_ends_when_it_is_stopped),     TEST(a_scan_of_a_bad_disk_is_given_up),
        TEST(what_cannot_be_removed_stays_known), TEST(a_failed_disk_loses_nothing),
        TEST(the_last_error_costs_its_piece),     TEST(a_copy_takes_no_try),
        TEST(a_suspect_that_cannot_wait_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
