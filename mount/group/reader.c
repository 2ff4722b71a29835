#include "mount/group/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/rng.h"
#include "mount/group/members.h"
#include "mount/group/peers.h"
#include "net/auth/auth.h"

struct group_reader {
    struct data_store store;
    char *group, *bucket, *scope;
    struct auth *auth;
    struct group_members *members;
    struct group_peers *peers;
    metric_t *read, *passed;
};

/* ---- its life ---- */

static int reader_connect(struct group_reader *r, const struct group_reader_options *o,
                          struct error *err)
{
    char name[AUTH_NAME_MAX], boot[16];
    const struct auth_config auth = {.key_file = o->key_file, .node = name, .boot = boot};
    int rc;
    random_id("", boot);
    snprintf(name, sizeof name, "reader-%s", boot);
    if ((rc = auth_new(&auth, &r->auth, err)) != 0)
        return rc;
    const struct group_peers_options peers = {
        .auth = r->auth, .connect_ms = o->connect_ms, .wait_ms = o->wait_ms};
    const struct group_members_options members = {
        .client = o->client, .group = r->group, .interval_ms = o->refresh_ms};
    if ((rc = group_peers_new(&peers, &r->peers, err)) != 0)
        return rc;
    return group_members_open(&members, &r->members, err);
}

int group_reader_open(const struct group_reader_options *options, const struct data_store *store,
                      struct group_reader **out, struct error *err)
{
    _cleanup_(group_reader_closep)
    struct group_reader *r = xcalloc(1, sizeof *r);
    *r = (struct group_reader){
        .store = *store,
        .group = xstrdup(options->group),
        .bucket = xstrdup(options->bucket),
        .scope = xstrdup(options->scope),
        .read = metric_get(M_group_read_bytes_total, NULL),
        .passed = metric_get(M_group_passed_bytes_total, NULL),
    };
    int rc = reader_connect(r, options, err);
    if (rc == 0)
        *out = steal(r);
    return rc;
}

void group_reader_close(struct group_reader *r)
{
    if (r == NULL)
        return;
    group_members_close(r->members);
    group_peers_free(r->peers);
    auth_free(r->auth);
    free(r->group);
    free(r->bucket);
    free(r->scope);
    free(r);
}

/* ---- a span of one piece ---- */

static int ask_owner(struct group_reader *r, const struct group_request *q, struct buf *data)
{
    struct error err = ERROR_INIT;
    const struct piece_id piece = group_request_piece(q);
    struct group_map *map = group_members_map(r->members);
    const struct group_member *owner = group_map_owner(map, &piece);
    int rc = owner != NULL ? group_peers_ask(r->peers, owner, q, data, &err) : E_NOT_FOUND;
    group_map_unref(map);
    return rc;
}

/* Others that have its names could have other bytes. */
static bool is_of_group(const struct entity *e)
{
    return e->sums != NULL || entity_version(e->etag, e->checksum) != NULL;
}

/* Its sums tell a block of a volume, which has no tag, from all others.  malloc'ed. */
static char *checksum_of(const struct entity *e)
{
    return entity_version(e->etag, e->checksum) != NULL ? xstrdup(e->checksum)
                                                        : entity_sums_text(e);
}

static struct group_request request_of(const struct group_reader *r, const struct entity *e,
                                       const char *checksum, uint64_t offset, uint64_t length)
{
    return (struct group_request){
        .scope = r->scope,
        .bucket = r->bucket,
        .object = e->key,
        .etag = e->etag,
        .checksum = checksum,
        .size = e->size,
        .offset = offset,
        .length = length,
        .entity = e->sums != NULL ? e : NULL,
    };
}

static int fetch_span(struct group_reader *r, const struct entity *e, uint64_t offset,
                      uint64_t length, const struct dfc_sink *sink)
{
    _cleanup_(buf_done)
    struct buf data = BUF_INIT;
    _cleanup_free_ char *checksum = checksum_of(e);
    const struct group_request q = request_of(r, e, checksum, offset, length);
    if (ask_owner(r, &q, &data) == 0) {
        metric_add(r->read, length);
        return sink->write(sink->context, data.data, data.len) == 0 ? 0 : -errno;
    }
    metric_add(r->passed, length);
    return r->store.fetch(r->store.context, e, offset, length, sink);
}

static uint64_t piece_end(uint64_t offset, uint64_t end)
{
    uint64_t next = (offset / PIECE_BYTES + 1) * PIECE_BYTES;
    return next < end ? next : end;
}

int group_reader_fetch(void *reader, const struct entity *e, uint64_t offset, uint64_t length,
                       const struct dfc_sink *sink)
{
    struct group_reader *r = reader;
    const uint64_t end = offset + length;
    struct dfc_sink rest = *sink;
    if (!is_of_group(e) || length == 0)
        return r->store.fetch(r->store.context, e, offset, length, sink);
    for (uint64_t at = offset; at < end;) {
        uint64_t next = piece_end(at, end);
        if (at > offset)
            rest.rewind = NULL; /* what was given before cannot be taken back */
        int rc = fetch_span(r, e, at, next - at, &rest);
        if (rc != 0)
            return rc;
        at = next;
    }
    return 0;
}

/* ---- warming ---- */

static bool has_members(struct group_reader *r)
{
    static const struct piece_id any;
    struct group_map *map = group_members_map(r->members);
    const bool has = group_map_owner(map, &any) != NULL;
    group_map_unref(map);
    return has;
}

static bool owner_does(struct group_reader *r, struct group_request *q, enum group_how how)
{
    _cleanup_(buf_done)
    struct buf none = BUF_INIT;
    q->how = how;
    return ask_owner(r, q, &none) == 0;
}

int group_reader_warm(struct group_reader *r, const struct entity *e, struct group_warm *w)
{
    int rc = 0;
    w->had_bytes = w->has_bytes = 0;
    if (!is_of_group(e))
        return -EOPNOTSUPP;
    if (w->fetch && !has_members(r))
        return -ENODEV;
    _cleanup_free_ char *checksum = checksum_of(e);
    const uint64_t rest = e->size > w->offset ? e->size - w->offset : 0;
    const uint64_t end = w->offset + (w->length < rest ? w->length : rest);
    for (uint64_t at = w->offset; at < end;) {
        uint64_t next = piece_end(at, end);
        struct group_request q = request_of(r, e, checksum, at, next - at);
        if (owner_does(r, &q, GROUP_CHECK)) {
            w->had_bytes += next - at;
            w->has_bytes += next - at;
        } else if (w->fetch && owner_does(r, &q, GROUP_WARM)) {
            w->has_bytes += next - at;
        } else if (w->fetch) {
            rc = -EIO;
        }
        at = next;
    }
    return rc;
}
