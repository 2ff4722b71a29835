#include "target/slices/slice_repair.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/parse.h"
#include "io/thread.h"
#include "target/slices/ec.h"
#include "target/format/ec_manifest.h"
#include "target/slices/repair.h"
#include "target/slices/slices.h"
#include "target/node/target.h"
#include "target/store/name_table.h"

enum { MOST = 10000, SLOTS = 1024, TICK_MS = 200, RETRY_MS = 3000, TRIES_MAX = 20 };

struct wanted {
    struct name_entry entry;
    struct wanted *next;
    uint64_t bucket_id;
    ec_mask damaged;
    unsigned tries;
    uint64_t due_ms;
    char name[];
};

struct slice_repair {
    struct target *target;
    struct job_stop *stop;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock; /* of what follows */
    struct name_table names;
    struct wanted *first, **last;
    size_t count;
};

/* --- the names -------------------------------------------------------------------------------- */

static struct wanted *find(const struct slice_repair *m, uint64_t bucket_id, const char *name)
{
    return (struct wanted *)name_table_find(&m->names, bucket_id, name);
}

static void append(struct slice_repair *m, struct wanted *w)
{
    w->next = NULL;
    *m->last = w;
    m->last = &w->next;
    name_table_add(&m->names, &w->entry, w->bucket_id, w->name);
    m->count++;
}

static struct wanted *take_first(struct slice_repair *m)
{
    struct wanted *w = m->first;
    m->first = w->next;
    if (m->first == NULL)
        m->last = &m->first;
    name_table_remove(&m->names, &w->entry);
    m->count--;
    return w;
}

void slice_repair_want(struct target *t, uint64_t bucket_id, const char *name, ec_mask damaged)
{
    struct slice_repair *m = t->ec->repair;
    pthread_mutex_lock(&m->lock);
    struct wanted *w = find(m, bucket_id, name);
    if (w == NULL && m->count < MOST) {
        w = xcalloc(1, sizeof *w + strlen(name) + 1);
        w->bucket_id = bucket_id;
        memcpy(w->name, name, strlen(name) + 1);
        append(m, w);
    }
    if (w != NULL)
        w->damaged |= damaged;
    pthread_mutex_unlock(&m->lock);
}

void ec_mend_slice(struct target *t, uint64_t slices_bucket_id, const char *slice)
{
    struct object o = {.fd = -1};
    struct error err = ERROR_INIT;
    int code = object_head(t->store, slices_bucket_id, slice, &o, &err);
    const char *object = ec_slice_object(&o.attr);
    if (code == E_CORRUPT && object != NULL) /* what is in its place has its attribute */
        slice_repair_want(t, ec_bucket_of_slices(slices_bucket_id), object, 0);
    else if (code != 0)
        log_warn("slice left to the next repair", lstr("slice", slice), lerr(&err));
}

/* The first that is due; NULL: none. */
static struct wanted *take_due(struct slice_repair *m)
{
    struct wanted *w = NULL;
    pthread_mutex_lock(&m->lock);
    if (m->first != NULL && m->first->due_ms <= clock_ms())
        w = take_first(m);
    pthread_mutex_unlock(&m->lock);
    return w;
}

/* Unless somebody has found it again meanwhile. */
static void put_back(struct slice_repair *m, struct wanted *w)
{
    pthread_mutex_lock(&m->lock);
    struct wanted *again = find(m, w->bucket_id, w->name);
    if (again == NULL) {
        w->due_ms = clock_ms() + RETRY_MS;
        append(m, w);
    } else {
        again->damaged |= w->damaged;
        free(w);
    }
    pthread_mutex_unlock(&m->lock);
}

/* --- one of them ------------------------------------------------------------------------------ */

static int tell(struct slice_repair *m, const struct node *acting, const struct wanted *w,
                struct error *err)
{
    struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/slices/%" PRIu64 "?object=", acting->data_url, w->bucket_id);
    buf_put_url_escaped(&url, w->name, strlen(w->name), "");
    int code = http_json_wait(m->target->data_client, acting->id, HTTP_POST, buf_str(&url), NULL,
                              m->target->params.call_timeout, NULL, err);
    buf_done(&url);
    return code;
}

static int mend_here(struct slice_repair *m, const struct cluster_state *s, const struct wanted *w,
                     struct error *err)
{
    struct ec_repaired done;
    const struct ec_repair_ask ask = {.target = m->target,
                                      .stop = m->stop,
                                      .bucket_id = w->bucket_id,
                                      .name = w->name,
                                      .damaged = w->damaged,
                                      .present_only = true};
    int code = ec_repair_name(&ask, s, &done, err);
    if (done.made > 0) {
        metric_add(metric_get(M_copies_mended_total, NULL), done.made);
        log_info("slices mended", lu64("bucket_id", w->bucket_id), lstr("name", w->name),
                 lu64("count", done.made));
    }
    return code;
}

static int mend(struct slice_repair *m, const struct wanted *w, struct error *err)
{
    struct owners owners;
    _cleanup_state_ const struct cluster_state *s = state_current(m->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, w->bucket_id);
    if (b == NULL || b->props.ec_data == 0)
        return 0;
    owners_of(s, b, w->name, &owners);
    if (owners.acting == NULL)
        return error_set(err, E_NODE_UNREACHABLE, "it has no leader");
    return strcmp(owners.acting->id, m->target->id) == 0 ? mend_here(m, s, w, err)
                                                         : tell(m, owners.acting, w, err);
}

static void work_off(struct slice_repair *m)
{
    struct wanted *w;
    while (!m->stop->wanted && (w = take_due(m)) != NULL) {
        struct error err = ERROR_INIT;
        if (mend(m, w, &err) == 0) {
            free(w);
        } else if (++w->tries < TRIES_MAX) {
            put_back(m, w);
        } else {
            log_error("slices not mended", lstr("name", w->name), lerr(&err));
            free(w);
        }
    }
}

static void *read_repair_main(void *arg)
{
    struct slice_repair *m = arg;
    while (job_stop_pause(m->stop, TICK_MS))
        work_off(m);
    return NULL;
}

/* --- its life --------------------------------------------------------------------------------- */

int slice_repair_new(struct target *t, struct job_stop *stop, struct slice_repair **out,
                     struct error *err)
{
    struct slice_repair *m = xcalloc(1, sizeof *m);
    *out = m;
    m->target = t;
    m->stop = stop;
    m->last = &m->first;
    name_table_init(&m->names, SLOTS);
    pthread_mutex_init(&m->lock, NULL);
    int code = thread_start("slices-mend", read_repair_main, m, &m->thread, err);
    m->runs = code == 0;
    return code;
}

void slice_repair_free(struct slice_repair *m)
{
    if (m == NULL)
        return;
    if (m->runs)
        pthread_join(m->thread, NULL);
    while (m->first != NULL)
        free(take_first(m));
    name_table_done(&m->names);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* --- told by others --------------------------------------------------------------------------- */

static void told_begin(struct http_request *req)
{
    const char *object = http_query(req, "object");
    uint64_t id;
    struct error err = ERROR_INIT;
    int code = parse_u64(http_path_param(req, "bucket_id"), &id, &err);
    if (code == 0 && object == NULL)
        code = error_set(&err, E_INVALID, "parameter 'object' is missing");
    if (code == 0)
        code = object_name_check(object, strlen(object), &err);
    if (code != 0) {
        http_reply_error(req, &err);
        return;
    }
    slice_repair_want(http_user(req), id, object, 0);
    http_reply_empty(req, 204);
}

const struct http_route ec_mend_routes[] = {
    {.name = "slices_mend",
     .method = HTTP_POST,
     .pattern = "/v1/slices/{bucket_id}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = told_begin,
     .summary = "Has slices of an object made anew that are missing, by its leader.",
     .query = HTTP_PARAMETERS({"object", "its name"}),
     .body = "",
     .reply = "204: it is looked at soon",
     .errors = "invalid_argument invalid_name"},
    {.name = NULL},
};
