#include "target/archive/unpackers.h"

#include <stdatomic.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "io/reader.h"
#include "net/http/pipe.h"
#include "target/archive/archive_source.h"
#include "target/archive/member_table.h"
#include "target/archive/member_unpack.h"
#include "target/node/call.h"
#include "target/node/read_range.h"
#include "target/node/target.h"
#include "target/node/thread_classes.h"

enum { PIPE_BYTES = 512 << 10 };

struct unpackers {
    struct pool *pool;
    atomic_bool stops;
};

struct unpack_job {
    struct unpackers *unpackers;
    struct object_call *call; /* until it is replied to */
    struct target *target;
    uint64_t bucket_id;
    struct object object;
    struct reader *reader;
    struct unpack_part part;
    struct read_range range;
    void (*head)(const struct object_call *call, const struct attr *a,
                 const struct read_range *range);
    struct bpipe *pipe;
    bool replied;
    char *request_id; /* the request may end before its bytes are given */
};

int unpackers_submit(struct unpackers *u, void (*fn)(void *arg), void *arg, struct error *err)
{
    return pool_submit(u->pool, fn, arg, err);
}

bool unpackers_are_stopping(const struct unpackers *u)
{
    return atomic_load(&u->stops);
}

static void job_free(struct unpack_job *j)
{
    close(j->object.fd);
    reader_unref(j->reader);
    bpipe_unref(j->pipe);
    free(j->request_id);
    free(j);
}

static int go_on(void *ctx, struct error *err)
{
    struct unpack_job *j = ctx;
    if (unpackers_are_stopping(j->unpackers))
        return error_set(err, E_NOT_READY, "the target stops");
    return bpipe_check(j->pipe, err);
}

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    struct unpack_job *j = ctx;
    if (!j->replied) {
        j->replied = true;
        j->head(j->call, &j->object.attr, &j->range);
        http_reply_pipe(j->call->req, j->range.status, (int64_t)j->range.length, j->pipe);
    }
    return bpipe_write(j->pipe, data, len, err);
}

static void end(struct unpack_job *j, struct error *err)
{
    if (!j->replied) {
        object_call_fail(j->call, "member of", err);
        return;
    }
    if (err->code != 0 && err->code != E_CANCELLED)
        log_error("member cut off", lstr("name", j->object.attr.name), lerr(err));
    bpipe_finish(j->pipe, err->code != 0 ? err : NULL);
}

static void unpack(void *arg)
{
    struct unpack_job *j = arg;
    struct error err = ERROR_INIT;
    struct archive_source source = {.target = j->target,
                                    .bucket_id = j->bucket_id,
                                    .object = &j->object,
                                    .reader = j->reader,
                                    .go_on = go_on,
                                    .ctx = j};
    log_set_request(j->request_id);
    int code = archive_source_open(&source, &err);
    if (code == 0)
        (void)member_unpack(&source, &j->part, take, j, &err); /* what it said is in err */
    archive_source_close(&source);
    end(j, &err);
    log_set_request(NULL);
    job_free(j);
}

void unpackers_reply(struct unpackers *u, struct object_call *call, const struct object *o,
                     struct reader *reader, const struct member_place *m,
                     const struct read_range *range,
                     void (*head)(const struct object_call *call, const struct attr *a,
                                  const struct read_range *range))
{
    struct error err = ERROR_INIT;
    struct unpack_job *j = xcalloc(1, sizeof *j);
    *j = (struct unpack_job){.unpackers = u,
                             .call = call,
                             .target = call->target,
                             .bucket_id = call->bucket->id,
                             .reader = reader_ref(reader),
                             .range = *range,
                             .head = head,
                             .pipe = bpipe_new(PIPE_BYTES),
                             .request_id = xstrdup(http_request_id(call->req))};
    j->part = (struct unpack_part){
        .turn = m->offset, .offset = range->offset, .length = range->length, .size = m->size};
    object_clone(o, &j->object);
    j->object.fd = o->fd;
    if (unpackers_submit(u, unpack, j, &err) == 0)
        return;
    object_call_fail(call, "member of", &err);
    job_free(j);
}

int unpackers_new(struct target *t, struct unpackers **out, struct error *err)
{
    struct unpackers *u = xcalloc(1, sizeof *u);
    *out = u;
    return thread_class_new(THREADS_UNPACKER, &t->params, &u->pool, err);
}

void unpackers_stop(struct unpackers *u)
{
    if (u != NULL)
        atomic_store(&u->stops, true);
}

void unpackers_free(struct unpackers *u)
{
    if (u == NULL)
        return;
    pool_free(u->pool);
    free(u);
}
