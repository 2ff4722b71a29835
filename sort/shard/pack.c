#include "sort/shard/pack.h"

#include <string.h>

#include "common/mem.h"
#include "sort/base/blob.h"
#include "sort/shard/record.h"
#include "sort/shard/tar.h"
#include "sort/shard/untar.h"

#define BODY_MEMORY (256 * 1024) /* of a record; what is beyond goes to a work file */
#define PIECE 65536

/* --- reading ---------------------------------------------------------------------------------- */

void pack_member_done(struct pack_member *m)
{
    buf_done(&m->key);
    buf_done(&m->field);
    buf_done(&m->path);
    buf_done(&m->headers);
}

int pack_get_text(struct inflow *f, uint64_t len, struct buf *out, struct error *err)
{
    buf_clear(out);
    if (len > TAR_PATH_MAX)
        return inflow_unsupported(f, "a key exceeds 65535 bytes", err);
    buf_reserve(out, (size_t)len);
    int rc = inflow_get(f, out->data, (size_t)len, err);
    if (rc != 0)
        return rc;
    out->len = (size_t)len;
    out->data[len] = '\0';
    return memchr(out->data, '\0', (size_t)len) == NULL
               ? 0
               : inflow_corrupt(f, "a NUL in the key that ends here", err);
}

static int put_headers(struct pack_member *m, const struct inflow *f, uint64_t size,
                       struct sink tar, struct error *err)
{
    buf_clear(&m->path);
    buf_clear(&m->headers);
    buf_append(&m->path, m->key.data, m->key.len);
    if (m->field.len > 0) {
        buf_putc(&m->path, '.');
        buf_append(&m->path, m->field.data, m->field.len);
    }
    bool names_file = m->path.len > 0 && m->path.data[m->path.len - 1] != '/';
    if (!names_file || m->path.len > TAR_PATH_MAX)
        return inflow_unsupported(f, "a key and a field that make no path", err);
    tar_make_headers(&m->headers, &(struct tar_made){.path = m->path.data,
                                                     .path_len = m->path.len,
                                                     .type = '0',
                                                     .size = size,
                                                     .mode = PACK_MODE});
    return tar.write(tar.ctx, m->headers.data, m->headers.len, err);
}

int pack_put_member(struct pack_member *m, struct inflow *f, uint64_t size, struct sink tar,
                    struct error *err)
{
    int rc = put_headers(m, f, size, tar, err);
    if (rc == 0)
        rc = inflow_copy(f, size, tar, err);
    return rc != 0 ? rc : tar_put_padding(tar, size, err);
}

int pack_put_text(struct pack_member *m, const struct inflow *f, const char *text, size_t len,
                  struct sink tar, struct error *err)
{
    int rc = put_headers(m, f, len, tar, err);
    if (rc == 0 && len > 0)
        rc = tar.write(tar.ctx, text, len, err);
    return rc != 0 ? rc : tar_put_padding(tar, len, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

struct pack {
    struct sink sink;
    const struct pack_ops *ops;
    enum sort_key_rule rule;
    struct untar untar;
    struct buf key;
    struct buf head; /* of the present member */
    uint64_t members;
    bool open; /* there is a record */
    struct blob *body;
};

static int unsupported(const struct pack *p, const struct untar_member *m, const char *why,
                       struct error *err)
{
    return error_set(err, E_SHARD_UNSUPPORTED, "member '%.*s' cannot be in %s: %s",
                     (int)(m->path_len < 256 ? m->path_len : 256), m->path, p->ops->name, why);
}

/* What distinguishes the member within its record; false where there is no such field. */
static bool field_of(const struct pack *p, const struct untar_member *m, const char **field,
                     size_t *len)
{
    size_t key = record_key_len(m->path, m->path_len, p->rule);
    *field = m->path + key;
    *len = m->path_len - key;
    if (*len == 0)
        return true;
    *field += 1; /* the dot */
    *len -= 1;
    return *len > 0 && !(*len == strlen(PACK_KEY) && memcmp(*field, PACK_KEY, *len) == 0);
}

static bool is_file(char type)
{
    return type < '1' || type > '6';
}

static int on_begin(void *ctx, const struct untar_member *m, struct error *err)
{
    struct pack *p = ctx;
    const char *field;
    size_t len;
    if (!is_file(m->type))
        return unsupported(p, m, "it is not a regular file", err);
    if (!field_of(p, m, &field, &len))
        return unsupported(p, m, "its name leaves no name for a field", err);
    if (p->members == 0) {
        buf_clear(&p->key);
        buf_append(&p->key, m->path, record_key_len(m->path, m->path_len, p->rule));
    }
    p->members++;
    buf_clear(&p->head);
    int rc = p->ops->member(&p->head, field, len, m->size, err);
    if (rc != 0)
        return error_wrap(err, "member '%.*s'", (int)(m->path_len < 256 ? m->path_len : 256),
                          m->path);
    return blob_append(p->body, p->head.data, p->head.len, err);
}

static int on_data(void *ctx, const void *data, size_t len, struct error *err)
{
    struct pack *p = ctx;
    return blob_append(p->body, data, len, err);
}

static int on_end(void *ctx, struct error *err)
{
    (void)ctx;
    (void)err;
    return 0;
}

static const struct untar_events events = {.begin = on_begin, .data = on_data, .end = on_end};

struct pack *pack_new(const struct format_output *out, const struct pack_ops *ops)
{
    struct pack *p = xcalloc(1, sizeof *p);
    p->sink = out->sink;
    p->ops = ops;
    p->rule = out->rule;
    p->body = blob_new(out->env, BODY_MEMORY);
    untar_init(&p->untar, &events, p);
    return p;
}

void pack_free(void *encoder)
{
    struct pack *p = encoder;
    untar_done(&p->untar);
    buf_done(&p->key);
    buf_done(&p->head);
    blob_free(p->body);
    free(p);
}

uint64_t pack_size(const struct pack_record *r)
{
    return blob_size(r->body);
}

int pack_body(const struct pack_record *r, struct sink out, struct error *err)
{
    _cleanup_free_ unsigned char *piece = xmalloc(PIECE);
    uint64_t end = blob_size(r->body);
    int rc = 0;
    for (uint64_t at = 0; rc == 0 && at < end;) {
        size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;
        rc = blob_read(r->body, at, piece, n, err);
        if (rc == 0)
            rc = out.write(out.ctx, piece, n, err);
        at += n;
    }
    return rc;
}

static int record_end(struct pack *p, struct error *err)
{
    if (!p->open)
        return 0;
    if (!untar_between(&p->untar))
        return error_set(err, E_CORRUPT, "a record ends within a member");
    const struct pack_record r = {
        .key = buf_str(&p->key), .key_len = p->key.len, .members = p->members, .body = p->body};
    p->open = false;
    return p->ops->record(&r, p->sink, err);
}

int pack_record(void *encoder, struct error *err)
{
    struct pack *p = encoder;
    int rc = record_end(p, err);
    p->open = true;
    p->members = 0;
    blob_reset(p->body);
    return rc;
}

int pack_write(void *encoder, const void *tar, size_t len, struct error *err)
{
    struct pack *p = encoder;
    return untar_write(&p->untar, tar, len, err);
}

int pack_finish(void *encoder, struct error *err)
{
    return record_end(encoder, err);
}
