/* Snapshots over each engine, while threads commit: a sum that each commit keeps, and a name that
 * each commit moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "mount/meta/memory.h"
#include "mount/meta/testing/engines.h"

enum {
    ACCOUNTS = 3000,
    FIRST = 100,        /* each */
    STEP = 77,          /* between two ids: several hashes of Redis, and several fields of each */
    NAMES = 4,          /* one of each thread, in directories of their own */
    DIRECTORY = 700000, /* not an account */
    SNAPSHOTS = 5,
    BETWEEN = 40, /* commits that a snapshot waits for */
};

struct mover {
    struct fixture *f;
    unsigned number;
    pthread_t thread;
};

struct fixture {
    const struct test_engine *engine;
    struct meta *m;
    struct mover movers[NAMES];
    unsigned moving; /* movers */
    _Atomic uint64_t commits;
    _Atomic bool ends;
};

static int setup(void **state)
{
    static struct fixture f;
    struct error err = ERROR_INIT;
    f = (struct fixture){.engine = *state};
    if (f.engine->open(&f.m, &err) != 0)
        fail_msg("%s", err.message);
    *state = &f;
    return 0;
}

static void stop(struct fixture *f)
{
    atomic_store(&f->ends, true);
    while (f->moving > 0)
        pthread_join(f->movers[--f->moving].thread, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    stop(f);
    meta_close(f->m);
    f->engine->remove();
    return 0;
}

static int commit(struct meta *m, const struct meta_step *steps, size_t count)
{
    struct error err = ERROR_INIT;
    struct meta_commit c = {.steps = steps, .count = count};
    return m->ops->commit(m, &c, &err);
}

static struct meta_key account(uint64_t number)
{
    return meta_key_point(META_ATTR, 1 + number * STEP);
}

/* After so many moves. */
static struct meta_key name_of(unsigned number, uint64_t moves)
{
    static const char *const names[NAMES] = {"n0", "n1", "n2", "n3"};
    return meta_key_named(META_ENTRY, DIRECTORY + moves, names[number], 2);
}

static void fill(struct meta *m)
{
    uint8_t data[8], format[] = "{}";
    struct meta_step steps[100];
    meta_field_put(data, 0, FIRST);
    for (unsigned i = 0; i < ACCOUNTS; i += 100) {
        for (unsigned k = 0; k < 100; k++)
            steps[k] = (struct meta_step){
                .kind = META_PUT, .key = account(i + k), .data = data, .size = sizeof data};
        assert_int_equal(commit(m, steps, 100), 0);
    }
    steps[0] = (struct meta_step){
        .kind = META_PUT, .key.kind = META_FORMAT, .data = format, .size = sizeof format};
    for (unsigned i = 0; i < NAMES; i++)
        steps[1 + i] = (struct meta_step){.kind = META_PUT, .key = name_of(i, 0)};
    assert_int_equal(commit(m, steps, 1 + NAMES), 0);
}

/* ---- changes ---- */

/* From one account to another, and the thread's name to another directory. */
static void *move(void *arg)
{
    const struct mover *w = arg;
    struct rng r;
    rng_seed(&r, w->number);
    for (uint64_t at = 0; !atomic_load(&w->f->ends); at++) {
        const int64_t amount = (int64_t)(rng_next(&r) % 10);
        const struct meta_step steps[] = {
            {.kind = META_ADD, .key = account(rng_next(&r) % ACCOUNTS), .number = -amount},
            {.kind = META_ADD, .key = account(rng_next(&r) % ACCOUNTS), .number = amount},
            {.kind = META_DELETE, .key = name_of(w->number, at)},
            {.kind = META_PUT, .key = name_of(w->number, at + 1)},
        };
        if (commit(w->f->m, steps, 4) != 0)
            abort(); /* no assertion of cmocka in a thread */
        atomic_fetch_add(&w->f->commits, 1);
    }
    return NULL;
}

static void start(struct fixture *f)
{
    for (; f->moving < NAMES; f->moving++) {
        struct mover *w = &f->movers[f->moving];
        *w = (struct mover){.f = f, .number = f->moving};
        assert_int_equal(pthread_create(&w->thread, NULL, move, w), 0);
    }
}

/* ---- snapshots ---- */

struct seen {
    struct fixture *f;
    unsigned rows, names[NAMES];
    uint64_t places[NAMES];
    bool found[ACCOUNTS];
    int64_t values[ACCOUNTS];
};

static void wait_for_commits(struct fixture *f)
{
    const uint64_t before = atomic_load(&f->commits);
    if (f->engine == &test_engines[TEST_MEMORY]) /* keeps the others out */
        return;
    while (!atomic_load(&f->ends) && atomic_load(&f->commits) < before + BETWEEN)
        sched_yield();
}

static void see_account(struct seen *s, const struct meta_row *row)
{
    const uint64_t number = (row->key.id - 1) / STEP;
    const int64_t value = meta_field(&row->value, 0);
    assert_true(number < ACCOUNTS && (row->key.id - 1) % STEP == 0);
    assert_true(!s->found[number] || s->values[number] == value);
    s->found[number] = true;
    s->values[number] = value;
}

static void see_name(struct seen *s, const struct meta_row *row)
{
    assert_int_equal(row->key.name_size, 2);
    const unsigned number = (unsigned)(row->key.name[1] - '0');
    assert_true(number < NAMES);
    assert_true(s->names[number] == 0 || s->places[number] == row->key.id);
    s->names[number]++;
    s->places[number] = row->key.id;
}

static int see(void *context, const struct meta_row *row, struct error *err)
{
    struct seen *s = context;
    (void)err;
    assert_true(row->value.found);
    if (s->rows++ == 0)
        assert_int_equal(row->key.kind, META_FORMAT);
    if (s->rows == 10 || s->rows == ACCOUNTS / 2)
        wait_for_commits(s->f);
    if (row->key.kind == META_ATTR)
        see_account(s, row);
    else if (row->key.kind == META_ENTRY)
        see_name(s, row);
    else
        assert_int_equal(row->key.kind, META_FORMAT);
    return 0;
}

static void check_snapshot(struct fixture *f)
{
    struct error err = ERROR_INIT;
    struct seen *s = calloc(1, sizeof *s);
    int64_t sum = 0;
    s->f = f;
    if (f->m->ops->snapshot(f->m, see, s, &err) != 0)
        fail_msg("%s", err.message);
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        assert_true(s->found[i]);
        sum += s->values[i];
    }
    assert_int_equal(sum, ACCOUNTS * FIRST);
    for (unsigned i = 0; i < NAMES; i++)
        assert_true(s->names[i] > 0);
    free(s);
}

static void a_snapshot_is_of_one_moment(void **state)
{
    struct fixture *f = *state;
    fill(f->m);
    start(f);
    for (unsigned i = 0; i < SNAPSHOTS; i++)
        check_snapshot(f);
    stop(f);
    check_snapshot(f);
}

static int refuse(void *context, const struct meta_row *row, struct error *err)
{
    unsigned *rows = context;
    (void)row;
    return ++*rows < 5 ? 0 : error_set(err, E_NO_SPACE, "no room for a row");
}

static void an_error_of_the_reader_ends_it(void **state)
{
    struct fixture *f = *state;
    unsigned rows = 0;
    struct error err = ERROR_INIT;
    fill(f->m);
    assert_int_equal(f->m->ops->snapshot(f->m, refuse, &rows, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, "no room"));
    assert_int_equal(rows, 5);
    rows = 0; /* at once again */
    assert_int_equal(f->m->ops->snapshot(f->m, refuse, &rows, &err), E_NO_SPACE);
}

#define CASE(test, engine)                                          \
    {                                                               \
#test, test, setup, teardown, (void *)&test_engines[engine] \
    }
#define SUITE(engine) \
    CASE(a_snapshot_is_of_one_moment, engine), CASE(an_error_of_the_reader_ends_it, engine)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {SUITE(TEST_MEMORY), SUITE(TEST_SQLITE)};
    const struct CMUnitTest redis[] = {SUITE(TEST_REDIS)};
    const struct CMUnitTest postgres[] = {SUITE(TEST_POSTGRES)};
    const int asked = test_engines_asked(argc, argv);
    if (asked < 0)
        return 77;
    return asked == TEST_REDIS      ? cmocka_run_group_tests(redis, NULL, NULL)
           : asked == TEST_POSTGRES ? cmocka_run_group_tests(postgres, NULL, NULL)
                                    : cmocka_run_group_tests(tests, NULL, NULL);
}
