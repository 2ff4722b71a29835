#include "plog/client/dfc_plog.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/failure.h"
#include "common/mem.h"
#include "plog/client/store.h"
#include "plog/file.h"
#include "plog/merge.h"

enum {
    PARALLEL = 8,
    PARALLEL_MAX = 64,
    SEGMENT_MIN = 64 << 10,
    SEGMENT_MAX = 1 << 30,
    LEASE_MS = 60000,
};

struct dfc_plog {
    pthread_mutex_t lock; /* of the file */
    char *bucket;
    struct bucket_store store;
    struct plog_file *file;
};

static int result_of(int code, const struct error *e, struct dfc_error *err)
{
    if (code == 0)
        return DFC_OK;
    return failure_common(
        err, code == E_CORRUPT ? DFC_CORRUPT : failure_result_of_status(error_status(code)), e);
}

static void plog_free(struct dfc_plog *p)
{
    pthread_mutex_destroy(&p->lock);
    free(p->bucket);
    free(p);
}

int dfc_plog_open(struct dfc_client *client, const char *bucket, const char *name,
                  const struct dfc_plog_options *o, struct dfc_plog **plog, struct dfc_error *err)
{
    if (o->segment_bytes != 0 && (o->segment_bytes < SEGMENT_MIN || o->segment_bytes > SEGMENT_MAX))
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "segment_bytes is %llu: it must be from 64 KiB to 1 GiB",
                           (unsigned long long)o->segment_bytes);
    if (o->index_parallel > PARALLEL_MAX)
        return failure_set(err, DFC_INVALID, E_INVALID, "index_parallel is %u: at most %d",
                           o->index_parallel, PARALLEL_MAX);
    const struct plog_file_how how = {
        .write = (o->flags & DFC_PLOG_WRITE) != 0,
        .truncate = (o->flags & DFC_PLOG_TRUNCATE) != 0,
        .open = {.create = (o->flags & DFC_PLOG_CREATE) != 0,
                 .exclusive = (o->flags & DFC_PLOG_EXCLUSIVE) != 0,
                 .mode = o->mode & 07777,
                 .uid = o->uid,
                 .gid = o->gid},
        .segment_bytes = (size_t)o->segment_bytes,
        .clock_ms = bucket_store_clock,
    };
    struct dfc_plog *p = xcalloc(1, sizeof *p);
    struct error e = ERROR_INIT;
    pthread_mutex_init(&p->lock, NULL);
    p->bucket = xstrdup(bucket);
    p->store =
        (struct bucket_store){.client = client,
                              .bucket = p->bucket,
                              .parallel = o->index_parallel > 0 ? o->index_parallel : PARALLEL};
    const struct plog_store st = bucket_store_of(&p->store);
    const int code = plog_file_open(&st, name, &how, &p->file, &e);
    if (code != 0)
        plog_free(p);
    else
        *plog = p;
    return result_of(code, &e, err);
}

int dfc_plog_write(struct dfc_plog *p, const void *data, size_t size, uint64_t offset,
                   struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_write(p->file, data, size, offset, &e);
    pthread_mutex_unlock(&p->lock);
    return result_of(code, &e, err);
}

int dfc_plog_truncate(struct dfc_plog *p, uint64_t length, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_cut(p->file, length, &e);
    pthread_mutex_unlock(&p->lock);
    return result_of(code, &e, err);
}

int dfc_plog_sync(struct dfc_plog *p, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_sync(p->file, &e);
    pthread_mutex_unlock(&p->lock);
    return result_of(code, &e, err);
}

int dfc_plog_read(struct dfc_plog *p, void *to, size_t size, uint64_t offset, size_t *got,
                  struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    const int code = plog_file_read(p->file, to, size, offset, got, &e);
    pthread_mutex_unlock(&p->lock);
    return result_of(code, &e, err);
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
    return result_of(code, &e, err);
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
    return result_of(code, &e, err);
}

int dfc_plog_close(struct dfc_plog *p, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    const int code = plog_file_close(p->file, &e);
    if (code == 0)
        plog_free(p);
    return result_of(code, &e, err);
}

void dfc_plog_drop(struct dfc_plog *p)
{
    if (p == NULL)
        return;
    plog_file_drop(p->file);
    plog_free(p);
}

int dfc_plog_unlink(struct dfc_client *client, const char *bucket, const char *name,
                    struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct bucket_store b = {.client = client, .bucket = bucket, .parallel = PARALLEL};
    const struct plog_store st = bucket_store_of(&b);
    return result_of(plog_unlink(&st, name, &e), &e, err);
}

int dfc_plog_recover(struct dfc_client *client, const char *bucket, const char *name,
                     uint64_t lease_ms, bool *busy, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct bucket_store b = {.client = client, .bucket = bucket, .parallel = PARALLEL};
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
    return result_of(code, &e, err);
}
