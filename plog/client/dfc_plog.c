#include "plog/client/dfc_plog.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/failure.h"
#include "common/mem.h"
#include "plog/client/dfc_plog_parts.h"
#include "plog/client/sender.h"
#include "plog/merge.h"

enum {
    PARALLEL_MAX = 64,
    INFLIGHT = 2,
    SEGMENT_MIN = 64 << 10,
    SEGMENT_MAX = 1 << 30,
    LEASE_MS = 60000,
};

int plog_result(int code, const struct error *e, struct dfc_error *err)
{
    if (code == 0)
        return DFC_OK;
    return failure_common(
        err, code == E_CORRUPT ? DFC_CORRUPT : failure_result_of_status(error_status(code)), e);
}

void plog_free(struct dfc_plog *p)
{
    sender_free(p->sender);
    pthread_mutex_destroy(&p->lock);
    free(p->bucket);
    free(p);
}

static int check_options(const struct dfc_plog_options *o, struct dfc_error *err)
{
    if (o->segment_bytes != 0 && (o->segment_bytes < SEGMENT_MIN || o->segment_bytes > SEGMENT_MAX))
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "segment_bytes is %llu: it must be from 64 KiB to 1 GiB",
                           (unsigned long long)o->segment_bytes);
    if (o->index_parallel > PARALLEL_MAX)
        return failure_set(err, DFC_INVALID, E_INVALID, "index_parallel is %u: at most %d",
                           o->index_parallel, PARALLEL_MAX);
    if (o->inflight > PARALLEL_MAX)
        return failure_set(err, DFC_INVALID, E_INVALID, "inflight is %u: at most %d", o->inflight,
                           PARALLEL_MAX);
    return DFC_OK;
}

static int read_data(void *ctx, const struct plog_data *data, void *out, size_t len,
                     uint64_t offset, struct error *err)
{
    const struct bucket_store *b = ctx;
    const struct dfc_plog_reader *r = b->reader;
    const struct dfc_plog_segment s = {
        .object = data->segment, .bytes = data->bytes, .sums = data->sums};
    struct dfc_error e;
    return r->read(r->context, &s, out, len, offset, &e) == DFC_OK ? 0
                                                                   : bucket_store_error(&e, err);
}

static struct dfc_plog *plog_new(struct dfc_client *client, const char *bucket,
                                 const struct dfc_plog_options *o)
{
    struct dfc_plog *p = xcalloc(1, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    p->bucket = xstrdup(bucket);
    p->store = (struct bucket_store){.client = client,
                                     .bucket = p->bucket,
                                     .data = o->reader != NULL ? read_data : NULL,
                                     .reader = o->reader,
                                     .parallel =
                                         o->index_parallel > 0 ? o->index_parallel : PLOG_PARALLEL};
    if ((o->flags & DFC_PLOG_WRITE) != 0) {
        const struct plog_store st = bucket_store_of(&p->store);
        p->sender = sender_new(&st, o->inflight > 0 ? o->inflight : INFLIGHT);
        p->store.sender = p->sender;
    }
    return p;
}

/* The file `name` of a handle that is new. */
static int open_file(struct dfc_plog *p, const char *name, const struct plog_file_how *how,
                     struct dfc_plog_pool *pool, struct dfc_plog **plog, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    const struct plog_store st = bucket_store_of(&p->store);
    const int code = plog_file_open(&st, name, how, &p->file, &e);
    if (code != 0) {
        plog_free(p);
        return plog_result(code, &e, err);
    }
    pool_enter(pool, p);
    *plog = p;
    return DFC_OK;
}

int dfc_plog_open(struct dfc_client *client, const char *bucket, const char *name,
                  const struct dfc_plog_options *o, struct dfc_plog **plog, struct dfc_error *err)
{
    const int rc = check_options(o, err);
    if (rc != DFC_OK)
        return rc;
    const struct plog_file_how how = {
        .write = (o->flags & DFC_PLOG_WRITE) != 0,
        .truncate = (o->flags & DFC_PLOG_TRUNCATE) != 0,
        .open = {.create = (o->flags & DFC_PLOG_CREATE) != 0,
                 .exclusive = (o->flags & DFC_PLOG_EXCLUSIVE) != 0,
                 .mode = o->mode & 07777,
                 .uid = o->uid,
                 .gid = o->gid,
                 .id = o->id},
        .segment_bytes = (size_t)o->segment_bytes,
        .refresh_ms = pool_refresh_ms(o->pool),
        .clock_ms = bucket_store_clock,
    };
    return open_file(plog_new(client, bucket, o), name, &how, o->pool, plog, err);
}

int dfc_plog_open_token(struct dfc_client *client, const char *token,
                        const struct dfc_plog_options *o, struct dfc_plog **plog,
                        struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct plog_token t;
    struct dfc_plog_options writes = *o;
    const int rc = check_options(o, err);
    if (rc != DFC_OK)
        return rc;
    const int code = plog_token_parse(token, &t, &e);
    if (code != 0)
        return plog_result(code, &e, err);
    writes.flags = DFC_PLOG_WRITE;
    const struct plog_file_how how = {.write = true,
                                      .token = &t,
                                      .segment_bytes = (size_t)o->segment_bytes,
                                      .refresh_ms = pool_refresh_ms(o->pool),
                                      .clock_ms = bucket_store_clock};
    return open_file(plog_new(client, t.bucket, &writes), t.object, &how, o->pool, plog, err);
}

_Static_assert(DFC_PLOG_TOKEN_MAX == (int)PLOG_TOKEN_MAX, "of one length");

int dfc_plog_share(struct dfc_plog *p, char token[DFC_PLOG_TOKEN_MAX], struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct plog_token t;
    pthread_mutex_lock(&p->lock);
    int code = plog_file_share(p->file, &t, &e);
    pthread_mutex_unlock(&p->lock);
    if (code == 0 && strlen(p->bucket) > PLOG_TOKEN_BUCKET)
        code = error_set(&e, E_TOO_LARGE, "the name of the bucket '%s' is too long", p->bucket);
    if (code != 0)
        return plog_result(code, &e, err);
    snprintf(t.bucket, sizeof t.bucket, "%s", p->bucket);
    plog_token_print(&t, token);
    return DFC_OK;
}

int dfc_plog_write(struct dfc_plog *p, const void *data, size_t size, uint64_t offset,
                   struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    int code = plog_file_write(p->file, data, size, offset, &e);
    if (code == 0)
        code = pool_bound(p, &e);
    pthread_mutex_unlock(&p->lock);
    return plog_result(code, &e, err);
}

int dfc_plog_truncate(struct dfc_plog *p, uint64_t length, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_cut(p->file, length, &e);
    pool_count(p);
    pthread_mutex_unlock(&p->lock);
    return plog_result(code, &e, err);
}

int dfc_plog_sync(struct dfc_plog *p, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    int code = plog_file_sync(p->file, &e);
    if (code == 0)
        code = pool_bound(p, &e);
    pthread_mutex_unlock(&p->lock);
    return plog_result(code, &e, err);
}

int dfc_plog_read(struct dfc_plog *p, void *to, size_t size, uint64_t offset, size_t *got,
                  struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_read(p->file, to, size, offset, got, &e);
    pool_count(p);
    pthread_mutex_unlock(&p->lock);
    return plog_result(code, &e, err);
}

void dfc_plog_renew(struct dfc_plog *p)
{
    pthread_mutex_lock(&p->lock);
    plog_file_renew(p->file);
    pthread_mutex_unlock(&p->lock);
}

int dfc_plog_stat(struct dfc_plog *p, struct dfc_plog_stat *out, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct plog_file_stat s;
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_stat(p->file, &s, &e);
    pthread_mutex_unlock(&p->lock);
    if (code == 0)
        *out = (struct dfc_plog_stat){.size = s.size,
                                      .stored = s.bytes,
                                      .segments = s.segments,
                                      .sessions = s.records,
                                      .mode = (uint32_t)s.head.mode,
                                      .uid = (uint32_t)s.head.uid,
                                      .gid = (uint32_t)s.head.gid,
                                      .created_ms = s.head.created_ms,
                                      .modified_ms = s.head.mtime_ms};
    return plog_result(code, &e, err);
}

struct walk {
    int (*each)(void *context, const struct dfc_plog_extent *e);
    void *context;
    bool is_ended; /* by each() */
};

static int walk_one(void *ctx, const struct plog_extent *e, const char *segment, const char *why)
{
    struct walk *w = ctx;
    const struct dfc_plog_extent x = {.start = e->start,
                                      .length = e->length,
                                      .segment = segment,
                                      .physical = e->physical,
                                      .why = why};
    w->is_ended = w->each(w->context, &x) != 0;
    return w->is_ended ? E_CANCELLED : 0;
}

int dfc_plog_walk(struct dfc_plog *p, bool verify,
                  int (*each)(void *context, const struct dfc_plog_extent *e), void *context,
                  struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct walk w = {.each = each, .context = context};
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_walk(p->file, verify, walk_one, &w, &e);
    pthread_mutex_unlock(&p->lock);
    if (w.is_ended)
        return failure_set(err, DFC_LOCAL, E_CANCELLED, "the caller ended the walk");
    return plog_result(code, &e, err);
}

int dfc_plog_close(struct dfc_plog *p, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_close(p->file, &e);
    p->file = code == 0 ? NULL : p->file;
    pthread_mutex_unlock(&p->lock);
    if (code == 0)
        dfc_plog_drop(p);
    return plog_result(code, &e, err);
}

void dfc_plog_drop(struct dfc_plog *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    sender_free(p->sender);
    p->sender = NULL;
    plog_file_drop(p->file);
    p->file = NULL;
    pthread_mutex_unlock(&p->lock);
    pool_leave(p);
}

int dfc_plog_unlink(struct dfc_client *client, const char *bucket, const char *name,
                    struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct bucket_store b = {.client = client, .bucket = bucket, .parallel = PLOG_PARALLEL};
    const struct plog_store st = bucket_store_of(&b);
    return plog_result(plog_unlink(&st, name, &e), &e, err);
}

int dfc_plog_recover(struct dfc_client *client, const char *bucket, const char *name,
                     uint64_t lease_ms, bool *busy, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct bucket_store b = {.client = client, .bucket = bucket, .parallel = PLOG_PARALLEL};
    const struct plog_store st = bucket_store_of(&b);
    _cleanup_plog_watch_ struct plog_watch watch = {.count = 0};
    enum plog_merge_result result;
    lease_ms = lease_ms > 0 ? lease_ms : LEASE_MS;
    int code = plog_merge(&st, name, &watch, bucket_store_clock(NULL), lease_ms, &result, &e);
    if (code == 0 && result == PLOG_MERGED_BUSY) {
        /* The time is what is waited for: a record that does not change in it is a dead one's. */
        struct timespec left = {.tv_sec = (time_t)(lease_ms / 1000),
                                .tv_nsec = (long)(lease_ms % 1000 * 1000000)};
        while (clock_nanosleep(CLOCK_BOOTTIME, 0, &left, &left) == EINTR)
            continue;
        code = plog_merge(&st, name, &watch, bucket_store_clock(NULL), lease_ms, &result, &e);
    }
    *busy = code == 0 && result == PLOG_MERGED_BUSY;
    return plog_result(code, &e, err);
}
