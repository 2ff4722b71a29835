#include "target/archive/appends.h"

#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "io/pool.h"
#include "io/reader.h"
#include "target/archive/append_try.h"
#include "target/node/call.h"
#include "target/node/target.h"
#include "target/node/thread_classes.h"
#include "target/node/write_path.h"
#include "target/store/job_stop.h"
#include "target/store/name_queue.h"

enum { TRIES = 4, WAITING_MAX = 4096 };

struct appends {
    struct target *target;
    struct pool *pool;
    struct name_queue *turns;
    struct job_stop stop;
    metric_t *done, *failed;
};

/* What is put in, until its end. */
struct appending {
    struct appends *all;
    struct append append;
    struct object_put *body;
};

int appends_new(struct target *t, struct appends **out, struct error *err)
{
    struct appends *a = xcalloc(1, sizeof *a);
    *out = a;
    a->target = t;
    job_stop_init(&a->stop);
    a->done = metric_get(M_archive_append_total, "outcome=\"done\"");
    a->failed = metric_get(M_archive_append_total, "outcome=\"failed\"");
    int code = thread_class_new(THREADS_APPENDER, &t->params, &a->pool, err);
    if (code == 0)
        a->turns = name_queue_new(a->pool, WAITING_MAX);
    return code;
}

void appends_stop(struct appends *a)
{
    if (a != NULL)
        job_stop_now(&a->stop);
}

void appends_free(struct appends *a)
{
    if (a == NULL)
        return;
    pool_free(a->pool);
    name_queue_free(a->turns);
    job_stop_done(&a->stop);
    free(a);
}

/* --- what is asked for ------------------------------------------------------------------------ */

/* Left as it is where the request does not say. */
static int parse_switch(const struct http_request *req, const char *name, bool *out,
                        struct error *err)
{
    const char *text = http_query(req, name);
    if (text == NULL)
        return 0;
    *out = strcmp(text, "true") == 0;
    return *out || strcmp(text, "false") == 0
               ? 0
               : error_set(err, E_INVALID, "parameter '%s' is '%.32s': it must be true or false",
                           name, text);
}

static int parse_query(const struct http_request *req, struct append *a, struct error *err)
{
    const char *members = http_query(req, "members");
    a->member = http_query(req, "member");
    a->creates = true;
    if (a->member != NULL && members != NULL)
        return error_set(err, E_INVALID, "parameters 'member' and 'members': send one of them");
    if (members != NULL && strcmp(members, "tar") != 0)
        return error_set(err, E_INVALID, "parameter 'members' is '%.32s': with PUT it must be tar",
                         members);
    if (a->member != NULL && *a->member == '\0')
        return error_set(err, E_INVALID, "parameter 'member' is empty: it must name a member");
    int code = parse_switch(req, "overwrite", &a->overwrite, err);
    return code != 0 ? code : parse_switch(req, "create", &a->creates, err);
}

/* --- one -------------------------------------------------------------------------------------- */

static int begin(struct appending *x, struct error *err)
{
    struct append *a = &x->append;
    struct reader *reader = NULL;
    int code = object_put_finish(x->body, err);
    if (code == 0)
        code = object_put_share(x->body, &a->fd, &reader, err);
    reader_unref(reader); /* what has just been written is in memory */
    a->size = code == 0 ? object_put_attr(x->body)->size : 0;
    return code != 0 ? code : parse_query(a->call->req, a, err);
}

static int try_repeatedly(struct appending *x, struct error *err)
{
    bool raced = true;
    int code = E_PRECONDITION;
    for (int i = 0; i < TRIES && raced; i++) {
        *err = ERROR_INIT;
        code = append_try(&x->append, &raced, err);
    }
    return raced ? error_set(err, E_NOT_READY,
                             "archive '%s' is being written again and again; try again",
                             x->append.call->name)
                 : code;
}

static void appending_free(struct appending *x)
{
    if (x->append.fd >= 0)
        close(x->append.fd);
    object_put_abort(x->body);
    free(x->append.request_id);
    free(x);
}

/* In its turn. */
static void run(void *arg)
{
    struct appending *x = arg;
    struct appends *all = x->all;
    struct error err = ERROR_INIT;
    log_set_request(x->append.request_id);
    int code = begin(x, &err);
    if (code == 0)
        code = try_repeatedly(x, &err);
    metric_add(code == 0 ? all->done : all->failed, 1);
    if (code != 0)
        object_call_fail(x->append.call, "append to", &err);
    log_set_request(NULL);
    appending_free(x);
}

/* --- the write path --------------------------------------------------------------------------- */

static bool takes_members(const struct object_call *call)
{
    return call->put.appends;
}

/* The body alone is stored; whatever is asked of the archive is asked when its turn comes. */
static int open_body(struct object_call *call, struct object_put_spec *spec,
                     struct write_parts *out, struct error *err)
{
    struct append asked = {.fd = -1};
    int code = parse_query(call->req, &asked, err);
    spec->unnamed = true;
    spec->checksum = CHECKSUM_NONE;
    spec->content_type = NULL;
    spec->condition = (struct object_condition){.check = NULL};
    spec->earlier = NULL;
    return code != 0 ? code : write_open_here(call, spec, out, err);
}

/* The path that the archive itself takes. */
static void commit_body(struct object_call *call, struct write_parts *parts)
{
    struct appends *all = call->target->appends;
    struct error err = ERROR_INIT;
    struct appending *x = xcalloc(1, sizeof *x);
    *x = (struct appending){.all = all, .body = parts->put};
    x->append = (struct append){.call = call,
                                .target = call->target,
                                .stop = &all->stop,
                                .fd = -1,
                                .request_id = xstrdup(http_request_id(call->req))};
    call->put.appends = false;
    call->path = write_path_of(call);
    if (name_queue_enter(all->turns, call->bucket->id, call->name, run, x, &err) == 0)
        return;
    object_call_fail(call, "append to", &err);
    appending_free(x);
}

const struct write_path append_path = {.name = "members of an archive",
                                       .sees_to_owners = true,
                                       .takes = takes_members,
                                       .open = open_body,
                                       .commit = commit_body};
