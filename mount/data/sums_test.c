#include "mount/data/sums.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

#include "common/log.h"
#include "common/mem.h"

enum { SIZE = 3 * ENTITY_BLOCK + 77 };

/* A store that damages one byte in the first `bad` calls. */
struct fake {
    char bytes[SIZE];
    uint64_t damaged;
    unsigned bad, calls;
    bool again; /* the whole object is taken back once */
};

static int give(const struct fake *f, uint64_t from, uint64_t to, const struct dfc_sink *sink)
{
    for (uint64_t at = from; at < to;) {
        char piece[5003];
        size_t n = to - at < sizeof piece ? (size_t)(to - at) : sizeof piece;
        memcpy(piece, f->bytes + at, n);
        if (f->calls <= f->bad && f->damaged >= at && f->damaged < at + n)
            piece[f->damaged - at] ^= 1;
        if (sink->write(sink->context, piece, n) != 0)
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
    assert_true(offset % ENTITY_BLOCK == 0 && offset + length <= e->size);
    if (f->again && sink->rewind != NULL) {
        f->again = false;
        if (give(f, offset, offset + length / 2, sink) != 0 || sink->rewind(sink->context) != 0)
            return -EIO;
    }
    return give(f, offset, offset + length, sink);
}

struct got {
    char bytes[SIZE];
    size_t size;
};

static int got_write(void *context, const void *data, size_t size)
{
    struct got *g = context;
    assert_true(size <= SIZE - g->size);
    memcpy(g->bytes + g->size, data, size);
    g->size += size;
    return 0;
}

static int got_rewind(void *context)
{
    struct got *g = context;
    g->size = 0;
    return 0;
}

struct world {
    struct fake fake;
    struct got got;
    struct entity *entity;
};

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    uint64_t sums[SIZE / ENTITY_BLOCK + 1];
    for (size_t i = 0; i < SIZE; i++)
        w->fake.bytes[i] = (char)(i * 2654435761u >> 11);
    for (size_t at = 0; at < SIZE; at += ENTITY_BLOCK)
        sums[at / ENTITY_BLOCK] =
            XXH3_64bits(w->fake.bytes + at, SIZE - at < ENTITY_BLOCK ? SIZE - at : ENTITY_BLOCK);
    w->entity = entity_new("v/b/01/1_0", "", "", SIZE);
    entity_set_sums(w->entity, sums);
    log_set_level(LOG_OFF);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    entity_unref(w->entity);
    free(w);
    return 0;
}

static int fetch(struct world *w, uint64_t offset, uint64_t length)
{
    const struct dfc_sink sink = {got_write, got_rewind, &w->got};
    struct sums store = {.from = {.context = &w->fake, .fetch = fake_fetch}};
    w->got.size = 0;
    w->fake.calls = 0;
    return sums_fetch(&store, w->entity, offset, length, &sink);
}

static void assert_got(const struct world *w, uint64_t offset, uint64_t length)
{
    assert_int_equal(w->got.size, length);
    assert_memory_equal(w->got.bytes, w->fake.bytes + offset, length);
}

static void test_ranges_are_given_on(void **state)
{
    struct world *w = *state;
    static const uint64_t edges[] = {
        0, 1, ENTITY_BLOCK - 1, ENTITY_BLOCK, ENTITY_BLOCK + 1, 2000, SIZE - 1, SIZE - 77, SIZE};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        for (size_t k = 0; k < sizeof edges / sizeof *edges; k++) {
            if (edges[i] >= edges[k])
                continue;
            assert_int_equal(fetch(w, edges[i], edges[k] - edges[i]), 0);
            assert_got(w, edges[i], edges[k] - edges[i]);
            assert_int_equal(w->fake.calls, 1);
        }
    }
}

static void test_a_part_that_differs_is_fetched_again(void **state)
{
    struct world *w = *state;
    w->fake.bad = 1;
    w->fake.damaged = ENTITY_BLOCK + 5;
    assert_int_equal(fetch(w, 0, SIZE), 0);
    assert_got(w, 0, SIZE);
    assert_int_equal(w->fake.calls, 2);
}

struct told {
    struct fake fake; /* first */
    unsigned differs;
    uint64_t at;
};

static void differs(void *context, const struct entity *e, uint64_t offset)
{
    struct told *t = context;
    assert_non_null(e->sums);
    t->differs++;
    t->at = offset;
}

/* The second place is asked only for what the first one does not give. */
static void test_another_place_gives_what_differs(void **state)
{
    struct world *w = *state;
    struct told *first = xcalloc(1, sizeof *first);
    const struct dfc_sink sink = {got_write, got_rewind, &w->got};
    struct sums s = {
        .from = {.context = first, .fetch = fake_fetch},
        .again = {.context = &w->fake, .fetch = fake_fetch},
        .differs = differs,
    };
    first->fake = w->fake;
    first->fake.bad = 100;
    first->fake.damaged = 2 * ENTITY_BLOCK + 9;
    w->got.size = 0;
    assert_int_equal(sums_fetch(&s, w->entity, 0, 2 * ENTITY_BLOCK, &sink), 0);
    assert_got(w, 0, 2 * ENTITY_BLOCK);
    assert_int_equal(first->differs + w->fake.calls, 0);
    w->got.size = 0;
    assert_int_equal(sums_fetch(&s, w->entity, 7, SIZE - 7, &sink), 0);
    assert_got(w, 7, SIZE - 7);
    assert_int_equal(first->differs, 1);
    assert_int_equal(first->at, 2 * ENTITY_BLOCK);
    assert_int_equal(w->fake.calls, 1);
    free(first);
}

static void test_damage_is_an_error_and_no_byte(void **state)
{
    struct world *w = *state;
    w->fake.bad = 100;
    w->fake.damaged = ENTITY_BLOCK + 5;
    assert_int_equal(fetch(w, 0, SIZE), -EIO);
    assert_got(w, 0, ENTITY_BLOCK);
    assert_int_equal(w->fake.calls, 2);
    assert_int_equal(fetch(w, ENTITY_BLOCK + 10, 1), -EIO); /* the part of the byte */
    assert_int_equal(w->got.size, 0);
    assert_int_equal(fetch(w, 2 * ENTITY_BLOCK, 10), 0);
    w->fake.damaged = SIZE - 1;
    assert_int_equal(fetch(w, SIZE - 10, 3), -EIO);
}

static void test_what_is_taken_back_is_compared_anew(void **state)
{
    struct world *w = *state;
    w->fake.again = true;
    assert_int_equal(fetch(w, 0, SIZE), 0);
    assert_got(w, 0, SIZE);
}

/* A part of two blocks: one wrong byte of it, and none of its bytes is given. */
static void test_parts_of_several_blocks(void **state)
{
    struct world *w = *state;
    const size_t part = 2 * ENTITY_BLOCK;
    const uint64_t sums[] = {XXH3_64bits(w->fake.bytes, part),
                             XXH3_64bits(w->fake.bytes + part, SIZE - part)};
    w->entity->part = part;
    entity_set_sums(w->entity, sums);
    assert_int_equal(entity_sums(w->entity), 2);
    assert_int_equal(fetch(w, ENTITY_BLOCK + 1, ENTITY_BLOCK), 0);
    assert_got(w, ENTITY_BLOCK + 1, ENTITY_BLOCK);
    assert_int_equal(fetch(w, 0, SIZE), 0);
    assert_got(w, 0, SIZE);
    w->fake.bad = 100;
    w->fake.damaged = ENTITY_BLOCK + 5;
    assert_int_equal(fetch(w, 3, 1), -EIO);
    assert_int_equal(w->got.size, 0);
    assert_int_equal(fetch(w, SIZE - 2, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts_of_several_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranges_are_given_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_part_that_differs_is_fetched_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_place_gives_what_differs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_an_error_and_no_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_taken_back_is_compared_anew, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
