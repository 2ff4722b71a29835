#include "plog/client/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"

enum {
    GUESS = 64 << 10, /* of a segment's end, which is read in one call */
    WHOLE_MAX = 1 << 30,
    THREADS_MAX = 64,
    ENDS_MAX = 256, /* in memory at once */
};

/* What libdfc said, as an error of the engine. */
static int error_of(const struct dfc_error *e, struct error *err)
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
        return error_of(&e, err);
    while ((rc = dfc_list_next(list, &entry, &e)) > 0)
        plog_names_add(out, entry->name);
    dfc_list_close(list);
    return rc == 0 ? 0 : error_of(&e, err);
}

static int store_get(void *ctx, const char *name, struct buf *body, char etag[static PLOG_ETAG_MAX],
                     struct error *err)
{
    const struct bucket_store *b = ctx;
    const struct dfc_get_options options = {.memory_limit = WHOLE_MAX};
    struct dfc_object_info *info;
    struct dfc_error e;
    void *data;
    size_t size;
    if (dfc_get_memory(b->client, b->bucket, name, &options, &data, &size, &info, &e) != DFC_OK)
        return error_of(&e, err);
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
        return error_of(&e, err);
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
    const struct dfc_put_options options = {.if_absent = is_absent,
                                            .if_match = is_absent ? NULL : if_match};
    struct dfc_object_info *info;
    struct dfc_error e;
    if (dfc_put_memory(b->client, b->bucket, name, body, len, &options, &info, &e) != DFC_OK)
        return error_of(&e, err);
    return keep_etag(info, etag, err);
}

static int store_remove(void *ctx, const char *name, const char *if_match, struct error *err)
{
    const struct bucket_store *b = ctx;
    struct dfc_error e;
    if (dfc_delete_match(b->client, b->bucket, name, if_match, &e) != DFC_OK)
        return error_of(&e, err);
    return 0;
}

/* --- ends of segments ------------------------------------------------------------------------- */

struct end { /* of one segment */
    struct plog_footer footer;
    char *bytes; /* index and footer are at its end */
    size_t size;
    int code;
    struct error err;
};

struct gathering {
    const struct bucket_store *store;
    const struct plog_names *names;
    struct end *ends;
    atomic_size_t next;
};

static int get_tail(const struct bucket_store *b, const char *name, uint64_t len, struct end *end)
{
    const struct dfc_get_options options = {.offset = -(int64_t)len, .memory_limit = len + 1};
    struct dfc_error e;
    void *data;
    dfc_free(end->bytes);
    end->bytes = NULL;
    if (dfc_get_memory(b->client, b->bucket, name, &options, &data, &end->size, NULL, &e) != DFC_OK)
        return error_of(&e, &end->err);
    end->bytes = data;
    if (end->size < PLOG_FOOTER)
        return error_set(&end->err, E_CORRUPT, "it is too short for a segment");
    const uint8_t *footer = (const uint8_t *)end->bytes + end->size - PLOG_FOOTER;
    return plog_footer_parse(footer, &end->footer, &end->err);
}

static int get_end(const struct bucket_store *b, const char *name, struct end *end)
{
    int code = get_tail(b, name, GUESS, end);
    const uint64_t want = (uint64_t)end->footer.index_bytes + PLOG_FOOTER;
    if (code == 0 && end->size < want)
        code = get_tail(b, name, want, end);
    if (code == 0 && end->size < want)
        code = error_set(&end->err, E_CORRUPT, "its index is cut short");
    if (code != 0)
        error_wrap(&end->err, "segment '%s'", name);
    return code;
}

static void *gather(void *ctx)
{
    struct gathering *g = ctx;
    while (true) {
        const size_t i = atomic_fetch_add(&g->next, 1);
        if (i >= g->names->count)
            return NULL;
        g->ends[i].code = get_end(g->store, g->names->items[i], &g->ends[i]);
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

static int add_end(struct plog_map *map, const char *name, struct end *end, struct error *err)
{
    struct plog_segment_name s;
    if (end->code != 0) {
        if (err != NULL)
            *err = end->err;
        return end->code;
    }
    if (!plog_name_parse_segment(name, &s) ||
        memcmp(&s.writer, &end->footer.name.writer, sizeof s.writer) != 0 ||
        s.epoch != end->footer.name.epoch || s.n != end->footer.name.n)
        return error_set(err, E_CORRUPT, "segment '%s' has another one's footer", name);
    const uint8_t *index =
        (const uint8_t *)end->bytes + end->size - PLOG_FOOTER - end->footer.index_bytes;
    const int code = plog_map_add(map, &end->footer, index, err);
    if (code != 0)
        error_wrap(err, "segment '%s'", name);
    return code;
}

static int add_part(const struct bucket_store *b, const struct plog_names *segments,
                    struct plog_map *map, struct error *err)
{
    struct gathering g = {
        .store = b, .names = segments, .ends = xcalloc(segments->count, sizeof *g.ends)};
    int code = 0;
    gather_all(&g);
    for (size_t i = 0; i < segments->count; i++) {
        if (code == 0)
            code = add_end(map, segments->items[i], &g.ends[i], err);
        dfc_free(g.ends[i].bytes);
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
                               .whole_max = WHOLE_MAX,
                               .list = store_list,
                               .get = store_get,
                               .read = store_read,
                               .put = store_put,
                               .remove = store_remove,
                               .ends = store_ends,
                               .now_ms = store_now,
                               .random = store_random};
}
