#include "target/copies/read_repair.h"

#include <pthread.h>
#include <stdlib.h>

#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "io/thread.h"
#include "target/copies/copies.h"
#include "target/copies/unrecoverable.h"
#include "target/copies/dirty_worker.h"
#include "target/node/target.h"
#include "target/copies/dirty.h"

enum {
    TICK_MS = 200,
    RETRY_MS = 3000,
    AT_ONCE = 100,
    TRIES_MAX = 20,
};

struct read_repair {
    struct target *target;
    /* The version of a mark says how often a look at it has failed (term), and how often the acting
     * owner was told (counter); 0: it is only doubted. */
    struct dirty *names;
    pthread_t thread;
};

void read_repair_doubt(struct read_repair *m, uint64_t bucket_id, const char *name)
{
    const struct version doubted = {0};
    if (dirty_count(m->names) < READ_REPAIR_MOST)
        dirty_mark(m->names, bucket_id, name, &doubted, 0);
}

static void forget(struct read_repair *m, const struct dirty_name *n)
{
    const struct version any = {.term = UINT64_MAX};
    dirty_clear(m->names, n->bucket_id, n->name, &any);
}

/* Are there other owners of it, and is this target one? */
static bool is_ours(const struct read_repair *m, const struct dirty_name *n)
{
    struct owners o;
    _cleanup_state_ const struct cluster_state *s = state_current(m->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, n->bucket_id);
    if (b == NULL || !bucket_has_copies(b))
        return false;
    owners_of(s, b, n->name, &o);
    return owners_has(&o, m->target->id);
}

/* False: it has come, or nothing is known yet. */
static bool lacks_still(struct read_repair *m, const struct dirty_name *n)
{
    struct object_held held;
    struct error err = ERROR_INIT;
    int code = object_look(m->target->store, n->bucket_id, n->name, &held, &err);
    if (code != 0)
        log_debug("copy not looked at", lstr("name", n->name), lerr(&err));
    if (code != 0 || !held.found || held.damaged)
        return code == 0;
    metric_add(metric_get(M_copies_mended_total, NULL), 1);
    log_info("copy mended", lu64("bucket_id", n->bucket_id), lstr("name", n->name));
    forget(m, n);
    return false;
}

/* A disk that cannot be read is looked at a while, and said so twice. */
static void not_checked(struct read_repair *m, const struct dirty_name *n, const struct error *err)
{
    struct version looked = n->version;
    if (++looked.term == 1)
        log_warn("copy not checked", lstr("name", n->name), lerr(err));
    if (looked.term < TRIES_MAX) {
        dirty_mark(m->names, n->bucket_id, n->name, &looked, clock_ms());
        return;
    }
    log_error("copy not checked, and left to the next scrub", lu64("bucket_id", n->bucket_id),
              lstr("name", n->name), lerr(err));
    forget(m, n);
}

static bool is_found_lacking(struct read_repair *m, const struct dirty_name *n)
{
    bool lacking = false;
    struct error err = ERROR_INIT;
    if (object_check(m->target->store, n->bucket_id, n->name, &lacking, &err) != 0)
        not_checked(m, n, &err);
    else if (!lacking)
        forget(m, n);
    return lacking;
}

/* Is the acting owner to be told? */
static bool is_lacking(struct read_repair *m, const struct dirty_name *n)
{
    struct version told = n->version;
    if (!is_ours(m, n)) {
        forget(m, n);
        return false;
    }
    if (told.counter == 0 ? !is_found_lacking(m, n) : !lacks_still(m, n))
        return false;
    if (++told.counter > TRIES_MAX) {
        log_error("no good copy was brought", lu64("bucket_id", n->bucket_id),
                  lstr("name", n->name));
        forget(m, n);
        return false;
    }
    dirty_mark(m->names, n->bucket_id, n->name, &told, clock_ms());
    return true;
}

static void work_off(struct read_repair *m)
{
    struct dirty_name names[AT_ONCE];
    struct target *t = m->target;
    uint64_t now_ms = clock_ms(), before_ms = now_ms > RETRY_MS ? now_ms - RETRY_MS : 0;
    size_t count;
    while (!t->copies->stop.wanted &&
           (count = dirty_due(m->names, before_ms, clock_ms(), names, AT_ONCE)) > 0) {
        struct dirty_name lacking[AT_ONCE];
        size_t lack = 0;
        for (size_t i = 0; i < count; i++) {
            if (is_lacking(m, &names[i]))
                lacking[lack++] = names[i];
        }
        dirty_want(t, lacking, lack);
        for (size_t i = 0; i < count; i++)
            free(names[i].name);
    }
}

static void *read_repair_main(void *arg)
{
    struct read_repair *m = arg;
    while (job_stop_pause(&m->target->copies->stop, TICK_MS)) {
        work_off(m);
        unrecoverable_look_again(m->target->unrecoverable);
    }
    return NULL;
}

int read_repair_new(struct target *t, struct read_repair **out, struct error *err)
{
    struct read_repair *m = xcalloc(1, sizeof *m);
    m->target = t;
    m->names = dirty_new();
    int code = thread_start("read-repair", read_repair_main, m, &m->thread, err);
    if (code != 0) {
        dirty_free(m->names);
        free(m);
        return code;
    }
    *out = m;
    return 0;
}

void read_repair_free(struct read_repair *m)
{
    if (m == NULL)
        return;
    pthread_join(m->thread, NULL);
    dirty_free(m->names);
    free(m);
}
