/* dfc_plog_flatten(), dfc_plog_copy(): the bytes of a plog as an object, read window by window
 * while they are sent. */
#include "plog/flatten.h"

#include <string.h>

#include "api/failure.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "plog/client/dfc_plog_parts.h"
#include "plog/type.h"

enum {
    CACHED = 256, /* MiB: a window of a strided file has bytes of many segments */
};

struct stream {
    struct plog_file *file;
    uint64_t at;
    struct checksum *sum; /* of what was given since the beginning */
    struct error why;     /* of a read that failed */
};

static ptrdiff_t stream_read(void *ctx, void *to, size_t room)
{
    struct stream *s = ctx;
    size_t got;
    if (plog_file_read(s->file, to, room, s->at, &got, &s->why) != 0)
        return -1;
    checksum_update(s->sum, to, got);
    s->at += got;
    return (ptrdiff_t)got;
}

static int stream_rewind(void *ctx)
{
    struct stream *s = ctx;
    s->at = 0;
    checksum_free(s->sum);
    s->sum = checksum_new(CHECKSUM_XXH3);
    return 0;
}

/* A call whose reply was lost may have stored it. */
static bool is_stored(const struct bucket_store *b, const char *name, struct stream *s,
                      uint64_t size)
{
    struct dfc_object_info *info;
    struct checksum_value sent;
    char hex[2 * CHECKSUM_MAX + 1];
    if (s->at != size || dfc_head(b->client, b->bucket, name, &info, NULL) != DFC_OK)
        return false;
    checksum_final(s->sum, &sent);
    checksum_hex(&sent, hex);
    const bool is_equal = info->size == size && strcmp(info->checksum, hex) == 0 &&
                          strcmp(info->checksum_type, checksum_name(CHECKSUM_XXH3)) == 0;
    dfc_object_info_free(info);
    return is_equal;
}

/* The bytes of the file become the object of the other bucket.  if_match: an etag, or NULL. */
static int send_file(const struct bucket_store *to, const char *name, struct plog_file *f,
                     const char *if_match, struct dfc_error *err)
{
    struct stream s = {.file = f, .sum = checksum_new(CHECKSUM_XXH3), .why = ERROR_INIT};
    struct plog_file_stat stat;
    struct error e = ERROR_INIT;
    const int code = plog_file_stat(f, &stat, &e);
    const struct dfc_source source = {
        .read = stream_read, .rewind = stream_rewind, .context = &s, .size = (int64_t)stat.size};
    const struct dfc_put_options options = {.if_match = if_match};
    struct dfc_error why;
    int rc = code != 0
                 ? plog_result(code, &e, err)
                 : dfc_put_source(to->client, to->bucket, name, &source, &options, NULL, &why);
    if (code == 0 && rc != DFC_OK && is_stored(to, name, &s, stat.size))
        rc = DFC_OK;
    else if (s.why.code != 0)
        rc = plog_result(s.why.code, &s.why, err);
    else if (code == 0 && rc != DFC_OK && err != NULL)
        *err = why;
    checksum_free(s.sum);
    return rc;
}

static int flatten(struct bucket_store *b, const char *name, struct dfc_error *err)
{
    const struct plog_file_how how = {.cached = CACHED, .clock_ms = bucket_store_clock};
    const struct plog_store st = bucket_store_of(b);
    struct error e = ERROR_INIT;
    struct plog_look look;
    int code = plog_flatten_begin(&st, name, !b->untyped_heads, &look, &e);
    if (code != 0)
        return plog_result(code, &e, err);
    char etag[PLOG_ETAG_MAX], id[PLOG_ID_CHARS + 1];
    memcpy(etag, look.etag, sizeof etag);
    memcpy(id, look.head.id, sizeof id);
    struct plog_file *f = plog_file_of_look(&st, name, &how, &look);
    struct dfc_error why;
    const int rc = send_file(b, name, f, etag, &why);
    plog_file_drop(f);
    if (rc == DFC_PRECONDITION || rc == DFC_NOT_FOUND) {
        code = rc == DFC_NOT_FOUND ? E_NOT_FOUND : E_PRECONDITION;
        error_set(&e, code, "%s", why.message);
        return plog_result(plog_flatten_failed(&st, name, etag, code, &e), &e, err);
    }
    if (rc != DFC_OK && err != NULL)
        *err = why;
    if (rc != DFC_OK || b->untyped_heads)
        return rc;
    code = plog_flatten_end(&st, id, &e);
    if (code != 0)
        error_wrap(&e, "'%s' is flat", name);
    return plog_result(code, &e, err);
}

static int look_at_type(struct bucket_store *b, const char *name, struct dfc_error *err)
{
    struct dfc_object_info *info;
    const int rc = dfc_head(b->client, b->bucket, name, &info, err);
    if (rc != DFC_OK)
        return rc;
    b->untyped_heads = strcmp(info->content_type, PLOG_TYPE) != 0;
    dfc_object_info_free(info);
    return DFC_OK;
}

int dfc_plog_flatten(struct dfc_client *client, const char *bucket, const char *name,
                     struct dfc_error *err)
{
    struct bucket_store b = {.client = client, .bucket = bucket, .parallel = PLOG_PARALLEL};
    const int rc = look_at_type(&b, name, err);
    return rc == DFC_OK ? flatten(&b, name, err) : rc;
}

int dfc_plog_copy(struct dfc_client *client, const char *bucket, const char *name,
                  const char *to_bucket, const char *to_name, struct dfc_error *err)
{
    const struct plog_file_how how = {.cached = CACHED, .clock_ms = bucket_store_clock};
    struct bucket_store from = {.client = client, .bucket = bucket, .parallel = PLOG_PARALLEL};
    const struct bucket_store to = {.client = client, .bucket = to_bucket};
    const struct plog_store st = bucket_store_of(&from);
    struct error e = ERROR_INIT;
    struct plog_file *f;
    if (strcmp(bucket, to_bucket) == 0 && strcmp(name, to_name) == 0)
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "'%s' is source and destination: flatten it", name);
    const int code = plog_file_open(&st, name, &how, &f, &e);
    if (code != 0)
        return plog_result(code, &e, err);
    const int rc = send_file(&to, to_name, f, NULL, err);
    plog_file_drop(f);
    return rc;
}
