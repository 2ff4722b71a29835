#include "plog/client/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"
#include "plog/client/sender.h"
#include "plog/ends.h"
#include "plog/head.h"
#include "plog/merge.h"
#include "plog/type.h"

enum {
    THREADS_MAX = 64,
    ENDS_MAX = 256, /* in memory at once */
};

int bucket_store_error(const struct dfc_error *e, struct error *err)
{
    static const struct {
        int result, code;
    } rows[] = {{DFC_PRECONDITION, E_PRECONDITION},    {DFC_CORRUPT, E_CORRUPT},
                {DFC_DENIED, E_ACCESS_DENIED},         {DFC_TIMED_OUT, E_TIMEOUT},
                {DFC_UNREACHABLE, E_NODE_UNREACHABLE}, {DFC_CANCELLED, E_CANCELLED}};
    const int named = error_from_name(e->code);
    int code = named != 0 ? named : E_NET;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].result == e->result)
            code = rows[i].code;
    }
    if (named == E_OBJECT_NOT_FOUND)
        code = E_NOT_FOUND;
    else if (named == E_QUOTA_EXCEEDED)
        code = named;
    return error_set(err, code, "%s", e->message);
}

static int keep_etag(struct dfc_object_info *info, char etag[static PLOG_ETAG_MAX],
                     struct error *err)
{
    const bool fits = strlen(info->etag) < PLOG_ETAG_MAX && info->etag[0] != '\0';
    if (fits)
        snprintf(etag, PLOG_ETAG_MAX, "%s", info->etag);
    dfc_object_info_free(info);
    return fits ? 0 : error_set(err, E_NET, "the reply has no ETag, or too long a one");
}

static int store_list(void *ctx, const char *prefix, const char *after, struct plog_names *out,
                      struct error *err)
{
    const struct bucket_store *b = ctx;
    const struct dfc_list_options options = {.prefix = prefix, .start_after = after};
    const struct dfc_entry *entry;
    struct dfc_list *list;
    struct dfc_error e;
    int rc = dfc_list_open(b->client, b->bucket, &options, &list, &e);
    if (rc != DFC_OK)
        return bucket_store_error(&e, err);
    while ((rc = dfc_list_next(list, &entry, &e)) > 0)
        plog_names_add(out, entry->name);
    dfc_list_close(list);
    return rc == 0 ? 0 : bucket_store_error(&e, err);
}

/* Of a container.  Another one is a head, or no object of a plog. */
static bool is_inner(const char *name)
{
    return strncmp(name, PLOG_ROOT, strlen(PLOG_ROOT)) == 0;
}

/* Of a name outside of containers, which is a head or any other object. */
struct small {
    char etag[PLOG_ETAG_MAX];
    bool is_large;
};

static int begin_small(void *ctx, const struct dfc_object_info *info)
{
    struct small *s = ctx;
    snprintf(s->etag, sizeof s->etag, "%s", info->etag);
    s->is_large = info->size > PLOG_HEAD_BYTES_MAX;
    return s->is_large ? -1 : 0;
}

/* An object that is too large for a head is not read. */
static int store_get(void *ctx, const char *name, struct buf *body, char etag[static PLOG_ETAG_MAX],
                     struct error *err)
{
    const struct bucket_store *b = ctx;
    struct small small = {.is_large = false};
    const struct dfc_get_options options = {.memory_limit = PLOG_MERGED_MAX,
                                            .begin = is_inner(name) ? NULL : begin_small,
                                            .begin_context = &small};
    struct dfc_object_info *info;
    struct dfc_error e;
    void *data;
    size_t size;
    const int rc = dfc_get_memory(b->client, b->bucket, name, &options, &data, &size, &info, &e);
    if (rc != DFC_OK && small.is_large) {
        memcpy(etag, small.etag, sizeof small.etag);
        return error_set(err, E_INVALID, "the object is no plog: it is larger than a head");
    }
    if (rc != DFC_OK)
        return bucket_store_error(&e, err);
    buf_append(body, data, size);
    dfc_free(data);
    return keep_etag(info, etag, err);
}

static int store_read(void *ctx, const char *name, void *out, size_t len, uint64_t offset,
                      struct error *err)
{
    const struct bucket_store *b = ctx;
    const struct dfc_get_options options = {
        .offset = (int64_t)offset, .length = len, .memory_limit = len + 1};
    struct dfc_error e;
    void *data;
    size_t size;
    if (dfc_get_memory(b->client, b->bucket, name, &options, &data, &size, NULL, &e) != DFC_OK)
        return bucket_store_error(&e, err);
    const bool is_whole = size == len;
    if (is_whole)
        memcpy(out, data, len);
    dfc_free(data);
    return is_whole ? 0 : error_set(err, E_CORRUPT, "'%s' is too short", name);
}

static int store_put(void *ctx, const char *name, const void *body, size_t len,
                     const char *if_match, char etag[static PLOG_ETAG_MAX], struct error *err)
{
    const struct bucket_store *b = ctx;
    const bool is_absent = if_match != NULL && strcmp(if_match, PLOG_ABSENT) == 0;
    const bool has_type = !is_inner(name) && !b->untyped_heads;
    const struct dfc_put_options options = {.content_type = has_type ? PLOG_TYPE : NULL,
                                            .if_absent = is_absent,
                                            .if_match = is_absent ? NULL : if_match};
    struct dfc_object_info *info;
    struct dfc_error e;
    if (dfc_put_memory(b->client, b->bucket, name, body, len, &options, &info, &e) != DFC_OK)
        return bucket_store_error(&e, err);
    return keep_etag(info, etag, err);
}

static int store_send(void *ctx, const char *name, struct buf *body, struct error *err)
{
    return sender_send(((const struct bucket_store *)ctx)->sender, name, body, err);
}

static int store_flush(void *ctx, struct error *err)
{
    return sender_flush(((const struct bucket_store *)ctx)->sender, err);
}

static int store_remove(void *ctx, const char *name, const char *if_match, struct error *err)
{
    const struct bucket_store *b = ctx;
    struct dfc_error e;
    if (dfc_delete_match(b->client, b->bucket, name, if_match, &e) != DFC_OK)
        return bucket_store_error(&e, err);
    return 0;
}

/* --- ends of segments ------------------------------------------------------------------------- */

struct gathered { /* of one segment */
    struct plog_end end;
    int code;
    struct error err;
};

struct gathering {
    struct bucket_store *store;
    const struct plog_names *names;
    struct gathered *ends;
    atomic_size_t next;
};

static int get_tail(void *ctx, const char *name, uint64_t len, struct buf *out, struct error *err)
{
    const struct bucket_store *b = ctx;
    const struct dfc_get_options options = {.offset = -(int64_t)len, .memory_limit = len + 1};
    struct dfc_error e;
    void *data;
    size_t size;
    if (dfc_get_memory(b->client, b->bucket, name, &options, &data, &size, NULL, &e) != DFC_OK)
        return bucket_store_error(&e, err);
    buf_append(out, data, size);
    dfc_free(data);
    return 0;
}

static void *gather(void *ctx)
{
    struct gathering *g = ctx;
    while (true) {
        const size_t i = atomic_fetch_add(&g->next, 1);
        if (i >= g->names->count)
            return NULL;
        struct gathered *e = &g->ends[i];
        e->code = plog_end_read(get_tail, NULL, g->store, g->names->items[i], &e->end, &e->err);
    }
}

static void gather_all(struct gathering *g)
{
    pthread_t threads[THREADS_MAX];
    unsigned started = 0;
    while (started + 1 < g->store->parallel && started < THREADS_MAX &&
           started + 1 < g->names->count && pthread_create(&threads[started], NULL, gather, g) == 0)
        started++;
    gather(g); /* also where no thread could be started */
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static int add_end(struct plog_map *map, const char *name, const struct gathered *e,
                   struct error *err)
{
    if (e->code == 0)
        return plog_end_add(&e->end, name, map, err);
    if (err != NULL)
        *err = e->err;
    return e->code;
}

static int add_part(struct bucket_store *b, const struct plog_names *segments, struct plog_map *map,
                    struct error *err)
{
    struct gathering g = {
        .store = b, .names = segments, .ends = xcalloc(segments->count, sizeof *g.ends)};
    int code = 0;
    gather_all(&g);
    for (size_t i = 0; i < segments->count; i++) {
        if (code == 0)
            code = add_end(map, segments->items[i], &g.ends[i], err);
        plog_end_done(&g.ends[i].end);
    }
    free(g.ends);
    return code;
}

static int store_ends(void *ctx, const struct plog_names *segments, struct plog_map *map,
                      struct error *err)
{
    int code = 0;
    for (size_t at = 0; at < segments->count && code == 0; at += ENDS_MAX) {
        const size_t left = segments->count - at;
        const struct plog_names part = {.items = segments->items + at,
                                        .count = left < ENDS_MAX ? left : ENDS_MAX};
        code = add_part(ctx, &part, map, err);
    }
    return code;
}

/* --- the rest --------------------------------------------------------------------------------- */

static uint64_t store_now(void *ctx)
{
    (void)ctx;
    return (uint64_t)clock_wall_ms();
}

static uint64_t store_random(void *ctx)
{
    uint64_t value;
    (void)ctx;
    random_bytes(&value, sizeof value);
    return value;
}

uint64_t bucket_store_clock(void *ctx)
{
    (void)ctx;
    return clock_boot_ms();
}

struct plog_store bucket_store_of(struct bucket_store *b)
{
    return (struct plog_store){.ctx = b,
                               .whole_max = PLOG_MERGED_MAX,
                               .list = store_list,
                               .get = store_get,
                               .read = store_read,
                               .data = b->data,
                               .put = store_put,
                               .send = b->sender != NULL ? store_send : NULL,
                               .flush = b->sender != NULL ? store_flush : NULL,
                               .remove = store_remove,
                               .ends = store_ends,
                               .now_ms = store_now,
                               .random = store_random};
}
