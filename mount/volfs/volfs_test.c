/* Files over a store in memory. */
#include "mount/volfs/volfs.h"

#include <errno.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "mount/meta/memory.h"
#include "mount/volfs/compact.h"
#include "mount/volfs/restore.h"
#include "mount/volfs/testing/world.h"
#include "mount/volfs/volfs_parts.h"
#include "mount/volume/trees/trees.h"

/* ---- tests ---- */

static void test_pieces_are_stored_side_by_side(void **state)
{
    struct world *w = *state;
    const size_t size = 40 * BLOCK + 1234;
    _cleanup_free_ char *data = random_data(size, 1);
    struct volfs_file *f = open_file(w);
    w->together = UPLOADS;
    write_all(f, data, size);
    assert_int_equal(volfs_flush(f), 0);
    assert_int_equal(w->most, UPLOADS);
    assert_int_equal(w->count, 41);
    assert_bytes(f, data, size);
    volfs_closefile(f);
}

static void test_later_pieces_cover_earlier_ones(void **state)
{
    struct world *w = *state;
    const size_t size = 6 * BLOCK;
    _cleanup_free_ char *data = random_data(size, 2);
    _cleanup_free_ char *more = random_data(size, 3);
    struct rng rng;
    struct volfs_file *f = open_file(w);
    rng_seed(&rng, 4);
    write_all(f, data, size);
    for (unsigned i = 0; i < 400; i++) {
        size_t at = rng_below(&rng, size), n = 1 + rng_below(&rng, 2 * BLOCK);
        n = n < size - at ? n : size - at;
        assert_int_equal(write_at(f, (int64_t)at, more + at / 2, n), n);
        memcpy(data + at, more + at / 2, n);
        if (i % 50 == 0)
            assert_bytes(f, data, size);
    }
    assert_bytes(f, data, size);
    volfs_closefile(f);
}

static void test_what_fails_is_told_and_stored_later(void **state)
{
    struct world *w = *state;
    const size_t size = 12 * BLOCK;
    _cleanup_free_ char *data = random_data(size, 5);
    struct volfs_file *f = open_file(w);
    fail_puts(w, 3, 5);
    for (size_t at = 0; at < size; at += BLOCK) /* a write may tell it */
        write_at(f, (int64_t)at, data + at, BLOCK);
    fail_puts(w, 0, 1000000);
    write_at(f, 0, data, BLOCK);
    assert_int_equal(volfs_flush(f), -EIO);
    assert_int_equal(write_at(f, 0, data, BLOCK), -EIO); /* one has failed, and fails again */
    fail_puts(w, 0, 0);
    assert_int_equal(volfs_flush(f), 0);
    assert_bytes(f, data, size);
    volfs_closefile(f);
}

static void test_a_damaged_block_is_an_error(void **state)
{
    struct world *w = *state;
    const size_t size = 8 * BLOCK;
    _cleanup_free_ char *data = random_data(size, 6);
    _cleanup_free_ char *got = xmalloc(size);
    struct volfs_file *f = open_file(w);
    write_all(f, data, size);
    assert_int_equal(volfs_flush(f), 0);
    for (unsigned i = 0; i < w->count; i++) { /* the second part of the fourth block */
        if (memcmp(w->objects[i].data, data + 3 * BLOCK, BLOCK) == 0)
            w->objects[i].data[BLOCK - 1] ^= 1;
    }
    assert_int_equal(read_at(f, 3 * BLOCK, got, BLOCK), -EIO);
    assert_int_equal(read_at(f, 4 * BLOCK - 1, got, 10), -EIO);
    assert_int_equal(read_at(f, 4 * BLOCK, got, 4 * BLOCK), 4 * BLOCK);
    assert_memory_equal(got, data + 4 * BLOCK, 4 * BLOCK);
    assert_int_equal(read_at(f, 0, got, 3 * BLOCK), 3 * BLOCK);
    assert_memory_equal(got, data, 3 * BLOCK);
    volfs_closefile(f);
}

static void append(struct volfs_file *f, const char *text)
{
    assert_int_equal(volfs_append(f, text, strlen(text)), strlen(text));
}

/* Another client changes the length before the commit. */
static void test_an_append_is_at_the_end_of_its_commit(void **state)
{
    struct world *w = *state;
    struct stat st;
    struct volfs_file *f = open_file(w);
    const struct volume_piece zeros = {.length = 4, .size = 4};
    append(f, "one");
    append(f, "two");
    assert_int_equal(volume_write(w->volume, w->ino, &zeros, 1, VOLUME_APPEND, NULL), 0);
    assert_int_equal(volfs_getattr(w->v, w->ino, &st), 0);
    assert_int_equal(st.st_size, 10);
    assert_int_equal(volfs_flush(f), 0);
    append(f, "!");
    assert_int_equal(write_at(f, 0, "ab", 2), 2); /* commits what is appended */
    append(f, "?");
    assert_int_equal(volfs_getattr(w->v, w->ino, &st), 0);
    assert_int_equal(st.st_size, 12);
    assert_bytes(f, "ab\0\0onetwo!?", 12);
    volfs_closefile(f);
}

/* A program that looks twice finds no change, though the bytes are stored in between. */
static void test_a_time_is_that_of_the_write(void **state)
{
    struct world *w = *state;
    struct stat made, written, stored;
    struct volfs_file *f = open_file(w);
    assert_int_equal(volfs_getattr(w->v, w->ino, &made), 0);
    assert_int_equal(write_at(f, 0, "abc", 3), 3);
    assert_int_equal(volfs_getattr(w->v, w->ino, &written), 0);
    assert_memory_not_equal(&made.st_mtim, &written.st_mtim, sizeof made.st_mtim);
    assert_int_equal(volfs_flush(f), 0);
    assert_int_equal(volfs_getattr(w->v, w->ino, &stored), 0);
    assert_memory_equal(&written, &stored, sizeof written);
    volfs_closefile(f);
}

static void test_an_append_drops_setid(void **state)
{
    struct world *w = *state;
    struct stat st;
    const struct volume_set set = {.fields = VOLUME_SET_MODE, .mode = 06755};
    struct volfs_file *f = open_file(w);
    assert_int_equal(volfs_setattr(w->v, w->ino, &set, &st), 0);
    append(f, "kept");
    assert_int_equal(volfs_flush(f), 0);
    assert_int_equal(volfs_getattr(w->v, w->ino, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 06755);
    volfs_drop_setid(f);
    append(f, "dropped");
    assert_int_equal(volfs_getattr(w->v, w->ino, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0755);
    assert_int_equal(volfs_flush(f), 0);
    assert_int_equal(volfs_getattr(w->v, w->ino, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0755);
    volfs_closefile(f);
}

static void test_zeros_cover_what_was_written_before(void **state)
{
    struct world *w = *state;
    int64_t found;
    const size_t size = 3 * BLOCK;
    _cleanup_free_ char *data = random_data(size, 12);
    struct volfs_file *f = open_file(w);
    write_all(f, data, size);
    memset(data + 100, 0, 2 * BLOCK);
    assert_int_equal(volfs_allocate(f, FALLOC_FL_ZERO_RANGE, 100, 2 * BLOCK), 0);
    assert_bytes(f, data, size);
    assert_int_equal(write_at(f, BLOCK, "a", 1), 1);
    data[BLOCK] = 'a';
    assert_int_equal(volfs_seek(f, 200, false, &found), 0);
    assert_int_equal(found, BLOCK);
    assert_int_equal(volfs_seek(f, 0, true, &found), 0);
    assert_int_equal(found, 100);
    assert_bytes(f, data, size);
    volfs_closefile(f);
}

static size_t planned(struct world *w, uint64_t chunk)
{
    struct arena *arena = arena_new(4096);
    struct volume_rewrite plan;
    assert_int_equal(volume_plan(w->volume, w->ino, chunk, VOLUME_LIST_LONG, arena, &plan), 0);
    arena_free(arena);
    return plan.count;
}

static void pass_ms(struct world *w, int64_t ms)
{
    struct error err = ERROR_INIT;
    int64_t now_ms;
    assert_int_equal(w->meta->ops->now(w->meta, &now_ms, &err), 0);
    meta_memory_set_clock(w->meta, now_ms + ms);
    assert_int_equal(volume_beat(w->volume), 0);
}

static void test_messy_chunks_are_stored_anew(void **state)
{
    struct world *w = *state;
    const size_t size = 20 * BLOCK + 5; /* three chunks */
    _cleanup_free_ char *data = random_data(size, 8);
    struct rng rng;
    struct volfs_file *f = open_file(w);
    rng_seed(&rng, 9);
    write_all(f, data, size);
    for (unsigned i = 0; i < 120; i++) { /* the third chunk stays as it is */
        size_t at = rng_below(&rng, 15 * BLOCK), n = 1 + rng_below(&rng, 20000);
        memset(data + at, (int)i, n);
        assert_int_equal(write_at(f, (int64_t)at, data + at, n), n);
        assert_int_equal(volfs_flush(f), 0);
    }
    assert_true(planned(w, 0) > 0 && planned(w, 1) > 0 && planned(w, 2) == 0);
    unsigned before = w->count;
    compact_due(w->v); /* they are not due */
    assert_int_equal(w->count, before);
    pass_ms(w, 62000);
    compact_due(w->v);
    assert_in_range(w->count, before + 2, before + 16);
    assert_true(planned(w, 0) == 0 && planned(w, 1) == 0);
    assert_bytes(f, data, size);
    before = w->count;
    pass_ms(w, 10000000);
    compact_due(w->v); /* nothing is left to do */
    assert_int_equal(w->count, before);
    assert_int_equal(write_at(f, 100, data, 100), 100);
    memmove(data + 100, data, 100);
    assert_bytes(f, data, size);
    volfs_closefile(f);
}

/* ---- with a disk cache ---- */

/* Bytes of a hole are 0 and need no cache.  Holes without end cost nothing. */
static void test_a_range_is_warmed(void **state)
{
    struct world *w = *state;
    const size_t size = 5 * BLOCK + 99;
    _cleanup_free_ char *data = random_data(size, 10);
    struct volfs_file *f = open_file(w);
    struct volfs_warm look = {.offset = 3, .size = INT64_MAX / 2 - 3};
    const struct volume_set set = {.fields = VOLUME_SET_LENGTH, .length = 1LL << 60};
    struct stat st;
    write_all(f, data, size);
    assert_int_equal(write_at(f, 1000 * BLOCK, data, 10), 10);
    assert_int_equal(volfs_setattr(w->v, w->ino, &set, &st), 0);
    assert_int_equal(volfs_warm(f, &look), 0);
    cache_flush(w->v->cached.tiers.cache);
    assert_int_equal(volfs_warm(f, &look), 0); /* what was written may stay */
    assert_int_equal(look.has_bytes, set.length - 3);
    assert_int_equal(w->fetched, 0);
    _cleanup_free_ char *got = xmalloc(size);
    assert_int_equal(read_at(f, 0, got, size), size);
    assert_memory_equal(got, data, size);
    assert_int_equal(w->fetched, 0);
    volfs_closefile(f);
}

/* The cache's own sums are right, and the bytes are others: the metadata have the last word. */
static void test_a_lying_cache_is_found_out(void **state)
{
    struct world *w = *state;
    _cleanup_free_ char *data = random_data(BLOCK, 11);
    _cleanup_free_ char *wrong = random_data(BLOCK, 12);
    struct volfs_file *f = open_file(w);
    struct tiers *tiers = &w->v->cached.tiers;
    uint32_t count;
    _cleanup_free_ uint64_t *sums = objects_sums(data, BLOCK, &count);
    write_all(f, data, BLOCK);
    assert_int_equal(volfs_flush(f), 0);
    struct entity *e = entity_new(w->objects[0].key, "", "", BLOCK);
    entity_set_sums(e, sums);
    cache_flush(tiers->cache);
    tiers_differ(tiers, e, 0);
    tiers_put(tiers, e, wrong);
    cache_flush(tiers->cache);
    assert_int_equal(tiers_cached(tiers, e, 0, BLOCK), BLOCK);
    assert_bytes(f, data, BLOCK);
    assert_int_equal(tiers_cached(tiers, e, 0, BLOCK), 0);
    assert_true(w->fetched > 0);
    struct volfs_warm warm = {.size = BLOCK, .fetch = true};
    assert_int_equal(volfs_warm(f, &warm), 0);
    assert_int_equal(warm.has_bytes, BLOCK);
    for (unsigned i = 0; i < w->count; i++) /* what the store has is damaged: it is not kept */
        w->objects[i].data[BLOCK - 1] ^= 1;
    tiers_differ(tiers, e, 0);
    assert_int_equal(volfs_warm(f, &warm), -EIO);
    assert_int_equal(tiers_cached(tiers, e, 0, BLOCK), 0);
    entity_unref(e);
    volfs_closefile(f);
}

static bool lost_when_told; /* what the program's next call finds, which may come at once */

static void tell(void *f)
{
    lost_when_told = volfs_is_lost(f);
}

/* A handle that a dead process has left with bytes that it lost. */
static void test_an_fsync_ends_a_loss(void **state)
{
    struct world *w = *state;
    struct ledger_record r = {
        .kind = LEDGER_FILE, .node = w->ino, .inode = 1, .uses = RESTORE_LOST};
    const uint64_t number = ledger_add(w->v->ledger, &r);
    volfs_restore_file(w->v, number, &r, true);
    struct volfs_file *f = volfs_file_of(w->v, r.inode << 32 | number);
    assert_int_equal(volfs_check_write(f), -EIO);
    assert_int_equal(volfs_check_write(f), 0);
    assert_int_equal(write_at(f, 0, "later", 5), 5);
    assert_true(volfs_is_lost(f));
    assert_true(volfs_tell_lost(f, tell, f) && !lost_when_told);
    assert_false(volfs_is_lost(f) || volfs_tell_lost(f, tell, f));
    volfs_closefile(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pieces_are_stored_side_by_side, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_later_pieces_cover_earlier_ones, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_what_fails_is_told_and_stored_later, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_an_fsync_ends_a_loss, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_an_append_is_at_the_end_of_its_commit, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_a_time_is_that_of_the_write, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_an_append_drops_setid, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_zeros_cover_what_was_written_before, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_messy_chunks_are_stored_anew, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_block_is_an_error, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_a_range_is_warmed, world_setup_cached, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_lying_cache_is_found_out, world_setup_cached,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
