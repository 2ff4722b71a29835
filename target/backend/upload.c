#include "target/backend/upload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "target/backend/meta.h"
#include "target/backend/upload_session.h"

enum { READ_BYTES = 256 << 10, STEPS_MAX = 10000 };

/* --- pure ------------------------------------------------------------------------------------- */

uint64_t upload_part_bytes(uint64_t size, uint64_t wanted)
{
    uint64_t least = size / UPLOAD_PARTS_MAX + (size % UPLOAD_PARTS_MAX != 0);
    return wanted > least ? wanted : least;
}

void upload_parts_etag(const struct backend_part *parts, size_t count,
                       char etag[static BACKEND_ETAG_MAX])
{
    struct checksum_value sum;
    char hex[2 * CHECKSUM_MAX + 1];
    struct checksum *all = checksum_new(CHECKSUM_MD5);
    for (size_t i = 0; i < count; i++)
        checksum_update(all, parts[i].md5.bytes, checksum_size(CHECKSUM_MD5));
    checksum_final(all, &sum);
    checksum_free(all);
    checksum_hex(&sum, hex);
    snprintf(etag, BACKEND_ETAG_MAX, "\"%s-%zu\"", hex, count);
}

/* 404: the upload is no longer known, which is no answer to somebody who asks for the object. */
static int upload_is_gone(int code, struct error *err)
{
    return code == E_OBJECT_NOT_FOUND ? error_recode(err, E_BACKEND, "upload") : code;
}

/* --- pieces ----------------------------------------------------------------------------------- */

static int md5_of(const struct exchange_file *file, struct checksum_value *out, struct error *err)
{
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_MD5);
    _cleanup_free_ char *piece = xmalloc(READ_BYTES);
    for (uint64_t at = 0; at < file->length;) {
        uint64_t left = file->length - at;
        size_t len = left < READ_BYTES ? (size_t)left : READ_BYTES;
        ssize_t got = pread(file->fd, piece, len, (off_t)(file->offset + at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return error_errno(err, got < 0 ? errno : EIO, "read the object's bytes");
        checksum_update(sum, piece, (size_t)got);
        at += (uint64_t)got;
    }
    checksum_final(sum, out);
    return 0;
}

static int put_whole(const struct exchange_env *env, const struct upload *u,
                     char etag[static BACKEND_ETAG_MAX], struct error *err)
{
    const struct exchange_file file = {.fd = u->fd, .length = u->size};
    struct backend_write write = {
        .content_type = u->content_type, .meta = u->meta, .meta_len = u->meta_len};
    const struct backend_ask ask = {.verb = BACKEND_PUT, .name = u->name, .write = &write};
    struct exchange_reply reply;
    int code = md5_of(&file, &write.md5, err);
    if (code != 0)
        return code;
    code = exchange_send(env, u->backend_url, &ask, &file, &reply, err);
    memcpy(etag, reply.facts.etag, BACKEND_ETAG_MAX);
    buf_done(&reply.body);
    return code;
}

/* --- copies ----------------------------------------------------------------------------------- */

static int ask_copy(const struct exchange_env *env, const struct backend_ops *ops,
                    const struct upload *u, const struct backend_ask *ask, struct buf *out,
                    struct error *err)
{
    struct exchange_reply reply;
    int code = exchange_send(env, u->backend_url, ask, NULL, &reply, err);
    if (code == 0)
        code = ops->copied(buf_str(&reply.body), reply.body.len, out, err);
    buf_done(&reply.body);
    return code;
}

static int copy_whole(const struct exchange_env *env, const struct backend_ops *ops,
                      const struct upload *u, struct error *err)
{
    struct backend_write write = {.from = u->from, .from_etag = u->from_etag};
    const struct backend_ask ask = {.verb = BACKEND_COPY, .name = u->name, .write = &write};
    _cleanup_buf_ struct buf tag = BUF_INIT;
    return ask_copy(env, ops, u, &ask, &tag, err);
}

static int copy_in_steps(const struct exchange_env *env, const struct backend_ops *ops,
                         const struct upload *u, struct error *err)
{
    _cleanup_free_ char *token = NULL;
    struct backend_write write = {.from = u->from, .from_etag = u->from_etag};
    const struct backend_ask ask = {.verb = BACKEND_REWRITE, .name = u->name, .write = &write};
    for (unsigned steps = 0; steps < STEPS_MAX; steps++) {
        struct buf next = BUF_INIT;
        int code = ask_copy(env, ops, u, &ask, &next, err);
        bool over = code != 0 || next.len == 0;
        free(token);
        write.token = token = buf_steal(&next);
        if (over)
            return code;
    }
    return error_set(err, E_BACKEND, "the backend has not copied it in %d steps", STEPS_MAX);
}

/* --- in parts --------------------------------------------------------------------------------- */

struct parts {
    const struct exchange_env *env;
    const struct upload *u;
    const struct backend_ops *ops;
    char *upload_id;
    uint64_t part_bytes;
    size_t count;
    struct backend_part *parts;
};

static int parts_begin(struct parts *p, struct error *err)
{
    const struct backend_write write = {
        .content_type = p->u->content_type, .meta = p->u->meta, .meta_len = p->u->meta_len};
    const struct backend_ask ask = {
        .verb = BACKEND_PARTS_BEGIN, .name = p->u->name, .write = &write};
    struct exchange_reply reply;
    struct buf id = BUF_INIT;
    int code = exchange_send(p->env, p->u->backend_url, &ask, NULL, &reply, err);
    if (code == 0)
        code = p->ops->upload_id(buf_str(&reply.body), reply.body.len, &id, err);
    buf_done(&reply.body);
    p->upload_id = buf_steal(&id);
    return upload_is_gone(code, err);
}

static int send_part(void *ctx, size_t i, struct error *err)
{
    struct parts *p = ctx;
    uint64_t at = i * p->part_bytes, left = p->u->size - at;
    const struct exchange_file file = {
        .fd = p->u->fd, .offset = at, .length = left < p->part_bytes ? left : p->part_bytes};
    struct backend_write write = {.upload_id = p->upload_id, .part = (unsigned)i + 1};
    const struct backend_ask ask = {.verb = BACKEND_PART, .name = p->u->name, .write = &write};
    struct exchange_reply reply;
    int code = md5_of(&file, &write.md5, err);
    if (code != 0)
        return code;
    code = exchange_send(p->env, p->u->backend_url, &ask, &file, &reply, err);
    p->parts[i].md5 = write.md5;
    memcpy(p->parts[i].etag, reply.facts.etag, BACKEND_ETAG_MAX);
    buf_done(&reply.body);
    if (code == 0 && *p->parts[i].etag == '\0')
        code = error_set(err, E_BACKEND, "the backend gave part %zu no entity tag", i + 1);
    return upload_is_gone(code, err);
}

/* Of what is copied the service says no MD5: a lost answer to the end of it is an error. */
static int copy_part(void *ctx, size_t i, struct error *err)
{
    struct parts *p = ctx;
    uint64_t at = i * p->part_bytes, left = p->u->size - at;
    uint64_t end = at + (left < p->part_bytes ? left : p->part_bytes);
    char range[64];
    snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)at,
             (unsigned long long)end - 1);
    struct backend_write write = {.upload_id = p->upload_id,
                                  .part = (unsigned)i + 1,
                                  .from = p->u->from,
                                  .from_etag = p->u->from_etag,
                                  .from_range = range};
    const struct backend_ask ask = {.verb = BACKEND_PART_COPY, .name = p->u->name, .write = &write};
    _cleanup_buf_ struct buf tag = BUF_INIT;
    int code = ask_copy(p->env, p->ops, p->u, &ask, &tag, err);
    if (code == 0 && (tag.len == 0 || tag.len >= BACKEND_ETAG_MAX))
        code = error_set(err, E_BACKEND, "the backend gave part %zu no entity tag", i + 1);
    if (code == 0)
        memcpy(p->parts[i].etag, buf_str(&tag), tag.len + 1);
    return code;
}

/* Is it ours that is there?  Then `etag` is its entity tag, else "". */
static bool is_there(const struct parts *p, char etag[static BACKEND_ETAG_MAX])
{
    struct backend_facts facts;
    struct bpipe *none;
    struct error err = ERROR_INIT;
    const struct backend_ask ask = {.method = HTTP_HEAD, .name = p->u->name};
    upload_parts_etag(p->parts, p->count, etag);
    bool is_ours = exchange_begin(p->env, p->u->backend_url, &ask, 0, &facts, &none, &err) == 0 &&
                   strcmp(facts.etag, etag) == 0;
    if (!is_ours)
        *etag = '\0';
    return is_ours;
}

/* Not found: the end may have been said more than once (also by curl alone, on a connection that
 * was kept), and the first time been heard.  No entity tag: Ceph's answer (release 16) has none. */
static int parts_end(struct parts *p, char etag[static BACKEND_ETAG_MAX], struct error *err)
{
    const struct backend_write write = {
        .upload_id = p->upload_id, .parts = p->parts, .part_count = p->count};
    const struct backend_ask ask = {.verb = BACKEND_PARTS_END, .name = p->u->name, .write = &write};
    struct exchange_reply reply;
    _cleanup_buf_ struct buf tag = BUF_INIT;
    int code = exchange_send(p->env, p->u->backend_url, &ask, NULL, &reply, err);
    if (code == 0)
        code = p->ops->end_etag(buf_str(&reply.body), reply.body.len, &tag, err);
    buf_done(&reply.body);
    if (tag.len > 0)
        snprintf(etag, BACKEND_ETAG_MAX, "%s", tag.len < BACKEND_ETAG_MAX ? buf_str(&tag) : "");
    else if ((code == 0 || code == E_OBJECT_NOT_FOUND) && is_there(p, etag))
        code = 0;
    return upload_is_gone(code, err);
}

/* What is not aborted stays at the backend, and may cost, until its own rules remove it. */
static void parts_abort(const struct parts *p)
{
    const struct backend_write write = {.upload_id = p->upload_id};
    const struct backend_ask ask = {
        .verb = BACKEND_PARTS_ABORT, .name = p->u->name, .write = &write};
    struct exchange_reply reply;
    struct error err = ERROR_INIT;
    int code = exchange_send(p->env, p->u->backend_url, &ask, NULL, &reply, &err);
    buf_done(&reply.body);
    if (code != 0 && code != E_OBJECT_NOT_FOUND)
        log_warn("upload not aborted: its parts stay at the backend", lstr("name", p->u->name),
                 lerr(&err));
}

static int put_parts(const struct exchange_env *env, const struct backend_ops *ops,
                     const struct upload *u, char etag[static BACKEND_ETAG_MAX], struct error *err)
{
    struct parts p = {
        .env = env, .u = u, .ops = ops, .part_bytes = upload_part_bytes(u->size, u->part_bytes)};
    p.count = (size_t)(u->size / p.part_bytes + (u->size % p.part_bytes != 0));
    p.parts = xcalloc(p.count, sizeof p.parts[0]);
    int code = parts_begin(&p, err);
    if (code == 0) {
        code = parallel_for("part", u->parallel, p.count, u->from != NULL ? copy_part : send_part,
                            &p, err);
        if (code == 0)
            code = parts_end(&p, etag, err);
        if (code != 0)
            parts_abort(&p);
    }
    free(p.parts);
    free(p.upload_id);
    return code;
}

/* --- in a session ----------------------------------------------------------------------------- */

static int put_session(const struct exchange_env *env, const struct upload *u,
                       char etag[static BACKEND_ETAG_MAX], struct error *err)
{
    const struct exchange_file file = {.fd = u->fd, .length = u->size};
    struct checksum_value md5;
    int code = md5_of(&file, &md5, err);
    return code != 0 ? code : upload_is_gone(upload_session(env, u, &md5, etag, err), err);
}

/* --- the whole -------------------------------------------------------------------------------- */

int upload_object(const struct exchange_env *env, const struct upload *u,
                  char etag[static BACKEND_ETAG_MAX], struct error *err)
{
    struct backend_spec spec;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    *etag = '\0';
    int code = backend_parse(u->backend_url, a, &spec, err);
    if (code != 0)
        return code;
    const struct backend_ops *ops = backend_ops_of(spec.provider);
    if (u->size > u->part_bytes && backend_can(ops, BACKEND_PARTS_BEGIN))
        return put_parts(env, ops, u, etag, err);
    if (backend_can(ops, BACKEND_SESSION_BEGIN))
        return put_session(env, u, etag, err);
    return put_whole(env, u, etag, err);
}

/* Parts become a new object, which has to be told what it is. */
static int copy_in_parts(const struct exchange_env *env, const struct backend_ops *ops,
                         const struct upload *u, struct error *err)
{
    struct backend_facts facts;
    struct bpipe *none;
    char etag[BACKEND_ETAG_MAX];
    const struct backend_ask ask = {.method = HTTP_HEAD, .name = u->from, .if_match = u->from_etag};
    int code = exchange_begin(env, u->backend_url, &ask, 0, &facts, &none, err);
    if (code != 0)
        return code;
    if (facts.meta_lost)
        return error_set(err, E_UNSUPPORTED,
                         "object '%s' has more user metadata than this release can copy", u->from);
    _cleanup_buf_ struct buf meta = BUF_INIT;
    backend_meta_carry(&facts, &meta);
    struct upload told = *u;
    told.content_type = *facts.content_type != '\0' ? facts.content_type : NULL;
    told.meta = meta.data;
    told.meta_len = meta.len;
    return put_parts(env, ops, &told, etag, err);
}

int upload_copy(const struct exchange_env *env, const struct upload *u, struct error *err)
{
    struct backend_spec spec;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    int code = backend_parse(u->backend_url, a, &spec, err);
    if (code != 0)
        return code;
    const struct backend_ops *ops = backend_ops_of(spec.provider);
    if (backend_can(ops, BACKEND_REWRITE))
        return copy_in_steps(env, ops, u, err);
    if (u->size > u->part_bytes)
        return copy_in_parts(env, ops, u, err);
    return copy_whole(env, ops, u, err);
}

int upload_delete(const struct exchange_env *env, const char *backend_url, const char *name,
                  struct error *err)
{
    const struct backend_ask ask = {.verb = BACKEND_DELETE, .name = name};
    struct exchange_reply reply;
    struct error why = ERROR_INIT;
    int code = exchange_send(env, backend_url, &ask, NULL, &reply, &why);
    buf_done(&reply.body);
    if (code != 0 && code != E_OBJECT_NOT_FOUND)
        return error_set(err, code, "%s", why.message);
    return 0;
}
