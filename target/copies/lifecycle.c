#include "target/copies/copies.h"

#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "target/copies/acting.h"
#include "target/copies/compare.h"
#include "target/copies/read_repair.h"
#include "target/copies/dirty_worker.h"
#include "target/copies/dirty_turns.h"
#include "target/copies/staged.h"
#include "target/node/target.h"
#include "target/store/name_queue.h"
#include "target/copies/dirty.h"
#include "target/node/thread_classes.h"

enum {
    TURNS_MAX = 4096,
    DIRTY_TURNS_MAX = 1024,
    DIRTY_TURNS_SHARE = 4, /* one of so many threads may settle */
};

static void settle_now(void *arg, uint64_t bucket_id, const char *name)
{
    struct target *t = arg;
    struct error err = ERROR_INIT;
    if (!t->copies->stop.wanted &&
        copies_compare_now(t, bucket_id, name, COMPARE_FOR_ALL, NULL, &err) != 0)
        log_debug("still dirty", lstr("name", name), lerr(&err));
}

static size_t dirty_turns_at_once(const struct target *t)
{
    size_t share = t->params.copies_parallel / DIRTY_TURNS_SHARE;
    return share > 0 ? share : 1;
}

int copies_new(struct target *t, struct copies **out, struct error *err)
{
    struct copies *c = xcalloc(1, sizeof *c);
    *out = c;
    c->target = t;
    job_stop_init(&c->stop);
    c->dirty = dirty_new();
    c->staged = staged_new();
    int code = thread_class_new(THREADS_COMMIT, &t->params, &c->pool, err);
    if (code != 0)
        return code;
    c->turns = name_queue_new(c->pool, TURNS_MAX);
    c->dirty_turns =
        dirty_turns_new(c->turns, dirty_turns_at_once(t), DIRTY_TURNS_MAX, settle_now, t);
    code = dirty_worker_new(t, &c->dirty_worker, err);
    return code != 0 ? code : read_repair_new(t, &c->read_repair, err);
}

void copies_stop(struct copies *c)
{
    if (c != NULL)
        job_stop_now(&c->stop);
}

void copies_free(struct copies *c)
{
    if (c == NULL)
        return;
    dirty_worker_free(c->dirty_worker);
    read_repair_free(c->read_repair);
    pool_free(c->pool);
    dirty_turns_free(c->dirty_turns);
    name_queue_free(c->turns);
    staged_free(c->staged);
    dirty_free(c->dirty);
    job_stop_done(&c->stop);
    free(c);
}

void copies_lease(struct copies *c, uint64_t sent_ms, uint64_t lease_ms)
{
    atomic_store(&c->lease_until_ms, lease_ms > 0 ? sent_ms + lease_ms : 0);
}

void copies_forgo_lease(struct copies *c)
{
    atomic_store(&c->forgone, true);
}

int copies_settle(struct target *t, uint64_t bucket_id, const char *name, struct error *err)
{
    return dirty_turns_want(t->copies->dirty_turns, bucket_id, name, err);
}
