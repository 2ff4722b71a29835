#include "target/copies/fetch_copy.h"

#include <string.h>
#include <strings.h>

#include "cluster/documents/bucket_refuse.h"
#include "cluster/members/location.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "io/bpipe.h"
#include "target/format/ec_manifest.h"
#include "target/node/reply.h"
#include "target/node/target.h"

enum { PIPE_BYTES = 1 << 20, PIECE = 256 << 10 };

struct fetching {
    const struct fetch_copy *spec;
    struct bpipe *pipe;
    char *url;
    sem_t begun; /* the head is here, or there will be none */
    sem_t ended;
    bool has_head;
    /* of the head */
    int64_t length;
    char version[VERSION_TEXT_MAX];
    char *content_type;
    char *slices;
    struct buf meta;
    bool has_checksum;
    struct checksum_value checksum;
    struct error err; /* of the call */
};

/* --- the call, in the data loop's thread ------------------------------------------------------ */

static void take_meta(void *ctx, const char *name, const char *value)
{
    struct fetching *g = ctx;
    size_t prefix = strlen(OBJECT_META_PREFIX);
    if (strncasecmp(name, OBJECT_META_PREFIX, prefix) != 0)
        return;
    for (const char *at = name + prefix; *at != '\0'; at++)
        buf_putc(&g->meta, *at >= 'A' && *at <= 'Z' ? (char)(*at + ('a' - 'A')) : *at);
    buf_putc(&g->meta, '\0');
    buf_append(&g->meta, value, strlen(value) + 1);
}

static void on_head(void *arg, const struct http_head *head)
{
    struct fetching *g = arg;
    const char *version = head->header(head, "Dfc-Version");
    const char *type = head->header(head, "Dfc-Checksum-Type");
    const char *value = head->header(head, "Dfc-Checksum-Value");
    const char *content = head->header(head, "Content-Type");
    enum checksum_type kind;
    g->has_head = head->status == 200;
    g->length = head->content_length;
    snprintf(g->version, sizeof g->version, "%s", version != NULL ? version : "");
    const char *slices = head->header(head, EC_MANIFEST_HEADER);
    g->slices = slices != NULL ? xstrdup(slices) : NULL;
    g->content_type = xstrdup(content);
    if (type != NULL && value != NULL && checksum_from_name(type, &kind, NULL) == 0 &&
        kind != CHECKSUM_NONE)
        g->has_checksum = checksum_parse(kind, value, &g->checksum, NULL) == 0;
    head->each_header(head, take_meta, g);
    if (g->has_head)
        sem_post(&g->begun);
}

static void call_ended(void *arg, struct http_result *r)
{
    struct fetching *g = arg;
    http_result_error(r, g->url, &g->err);
    sem_post(&g->begun);
    sem_post(&g->ended);
}

/* --- into the store --------------------------------------------------------------------------- */

static int store_bytes(struct fetching *g, struct object_put *put, struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    ssize_t n;
    while ((n = bpipe_read(g->pipe, piece, PIECE, err)) > 0) {
        int code = object_put_write(put, piece, (size_t)n, err);
        if (code != 0) {
            bpipe_cancel(g->pipe, err);
            return code;
        }
    }
    return (int)n;
}

static int store(struct fetching *g, const struct object_moved *moved, struct error *err)
{
    const struct fetch_copy *p = g->spec;
    struct object_put *put = NULL;
    const struct object_put_spec spec = {.bucket_id = p->bucket->id,
                                         .name = p->name,
                                         .size = moved->tombstone ? 0 : (uint64_t)g->length,
                                         .durability = bucket_durability(p->bucket),
                                         .checksum =
                                             g->has_checksum ? g->checksum.type : CHECKSUM_NONE,
                                         .expect = g->has_checksum ? &g->checksum : NULL,
                                         .content_type = g->content_type,
                                         .meta = g->meta.data,
                                         .meta_len = g->meta.len,
                                         .slices = g->slices,
                                         .frees = bucket_makes_room(p->bucket),
                                         .moved = moved};
    int code = object_put_begin(p->target->store, &spec, &put, err);
    if (code == 0 && g->pipe != NULL && (code = store_bytes(g, put, err)) != 0)
        object_put_abort(put);
    else if (code == 0)
        code = object_put_commit_wait(put, err);
    if (code == E_CHECKSUM)
        return error_recode(err, E_CORRUPT, "target '%s'", p->from->id);
    return error_forgive(err, code, E_NOT_MODIFIED);
}

/* --- the whole -------------------------------------------------------------------------------- */

static int check_head(const struct fetching *g, struct error *err)
{
    struct version v;
    const struct fetch_copy *p = g->spec;
    if (!g->has_head && g->err.code == E_CORRUPT)
        return error_set(err, E_CORRUPT, "%s", g->err.message);
    if (!g->has_head)
        return error_set(err, E_NODE_UNREACHABLE, "target '%s' does not give '%s': %s", p->from->id,
                         p->name, g->err.message);
    if (g->length < 0 || version_parse(g->version, &v, NULL) != 0 ||
        version_compare(&v, &p->held->version) != 0)
        return error_set(err, E_NOT_READY, "target '%s' has another version of '%s' by now",
                         p->from->id, p->name);
    return 0;
}

static void start(struct fetching *g)
{
    const struct fetch_copy *p = g->spec;
    g->url = location_of_copy(p->from, p->state, p->bucket, p->name);
    const struct http_call call = {.method = HTTP_GET,
                                   .url = g->url,
                                   .node = p->from->id,
                                   .download = g->pipe,
                                   .on_head = on_head};
    http_call_start(p->target->data_client, &call, call_ended, g);
}

static int fetch_bytes(const struct fetch_copy *p, const struct object_moved *moved,
                       struct error *err)
{
    struct fetching g = {.spec = p, .pipe = bpipe_new(PIPE_BYTES), .meta = BUF_INIT};
    sem_init(&g.begun, 0, 0);
    sem_init(&g.ended, 0, 0);
    start(&g);
    semaphore_wait(&g.begun);
    int code = check_head(&g, err);
    if (code == 0)
        code = store(&g, moved, err);
    if (code != 0)
        bpipe_cancel(g.pipe, err);
    semaphore_wait(&g.ended);
    sem_destroy(&g.begun);
    sem_destroy(&g.ended);
    bpipe_unref(g.pipe);
    buf_done(&g.meta);
    free(g.content_type);
    free(g.slices);
    free(g.url);
    return code;
}

int fetch_copy(const struct fetch_copy *p, struct error *err)
{
    const struct object_moved moved = {.version = p->held->version,
                                       .modified_ms = p->held->modified_ms,
                                       .tombstone = !p->held->visible,
                                       .ranks = p->bucket->props.backend == NULL};
    struct fetching nothing = {.spec = p, .meta = BUF_INIT};
    return moved.tombstone ? store(&nothing, &moved, err) : fetch_bytes(p, &moved, err);
}
