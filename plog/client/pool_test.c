/* Handles of a pool over a store in memory: what it counts, and what its keeper stores. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/mem.h"
#include "plog/client/dfc_plog_parts.h"
#include "plog/client/sender.h"
#include "plog/testing/memory_store.h"

enum { BYTES = 1000 };

/* Each handle has a store of its own, which its lock guards. */
static struct memory_store memory[2];

/* A segment is of no use here: it is put without a condition, and is not kept. */
static int put(void *ctx, const char *name, const void *body, size_t len, const char *if_match,
               char etag[static PLOG_ETAG_MAX], struct error *err)
{
    etag[0] = '\0';
    return if_match == NULL ? 0
                            : memory_store_of(ctx).put(ctx, name, body, len, if_match, etag, err);
}

static uint64_t clock_ms(void *ctx)
{
    (void)ctx;
    return 0;
}

static struct dfc_plog *open_one(struct dfc_plog_pool *pool, struct memory_store *m, bool keeps)
{
    const struct plog_file_how how = {
        .write = true, .open = {.create = true}, .clock_ms = clock_ms};
    struct plog_store st = memory_store_of(m);
    struct dfc_plog *p = xcalloc(1, sizeof *p);
    rng_seed(&m->rng, 1);
    if (!keeps)
        st.put = put;
    pthread_mutex_init(&p->lock, NULL);
    p->sender = sender_new(&st, 1);
    assert_int_equal(plog_file_open(&st, "a", &how, &p->file, NULL), 0);
    pool_enter(pool, p);
    return p;
}

static struct dfc_plog_pool *open_pool(uint64_t memory_bytes, uint64_t refresh_ms)
{
    const struct dfc_plog_pool_options o = {.memory_bytes = memory_bytes, .refresh_ms = refresh_ms};
    struct dfc_plog_pool *pool;
    struct dfc_error err;
    assert_int_equal(dfc_plog_pool_open(&o, &pool, &err), DFC_OK);
    return pool;
}

static uint64_t held(struct dfc_plog *p)
{
    pthread_mutex_lock(&p->lock);
    const uint64_t bytes = plog_file_held(p->file);
    pthread_mutex_unlock(&p->lock);
    return bytes;
}

static void write_some(struct dfc_plog *p)
{
    static const char bytes[BYTES];
    struct dfc_error err;
    assert_int_equal(dfc_plog_write(p, bytes, sizeof bytes, 0, &err), DFC_OK);
}

/* A read stores what its handle holds, and a truncation adds to it. */
static void test_all_calls_count(void **state)
{
    char byte;
    size_t got;
    struct dfc_error err;
    struct dfc_plog_pool *pool = open_pool(1 << 20, 1 << 20);
    struct dfc_plog *p = open_one(pool, &memory[0], true);
    (void)state;
    write_some(p);
    assert_true(p->held >= BYTES);
    assert_int_equal(dfc_plog_read(p, &byte, 1, 0, &got, &err), DFC_OK);
    assert_int_equal(p->held, 0);
    assert_int_equal(dfc_plog_truncate(p, 5, &err), DFC_OK);
    assert_int_equal(p->held, held(p));
    dfc_plog_drop(p);
    dfc_plog_pool_close(pool);
    memory_store_done(&memory[0]);
}

/* One that writes no more leaves the others room. */
static void test_idle_handles_are_stored(void **state)
{
    struct dfc_plog_pool *pool = open_pool(BYTES * 3 / 2, 1);
    struct dfc_plog *idle = open_one(pool, &memory[0], false);
    struct dfc_plog *busy = open_one(pool, &memory[1], false);
    (void)state;
    write_some(idle);
    while (held(idle) > 0) {
        write_some(busy); /* above the bound */
        sched_yield();
    }
    dfc_plog_drop(idle);
    dfc_plog_drop(busy);
    dfc_plog_pool_close(pool);
    memory_store_done(&memory[0]);
    memory_store_done(&memory[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_calls_count),
                                       cmocka_unit_test(test_idle_handles_are_stored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
