#include "sort/shard/untar.h"

#include <string.h>

#include "sort/shard/tar.h"
#include "sort/shard/tar_pax.h"

void untar_init(struct untar *u, const struct untar_events *events, void *ctx)
{
    *u = (struct untar){.events = events, .ctx = ctx};
}

void untar_done(struct untar *u)
{
    buf_done(&u->pax);
    buf_done(&u->name);
    buf_done(&u->link);
}

bool untar_between(const struct untar *u)
{
    return u->used == 0 && u->left == 0 && u->padding == 0 && u->meta == 0 && !u->in_member &&
           !u->has_pax && !u->has_name && !u->has_link;
}

static int malformed(const char *why, struct error *err)
{
    return error_set(err, E_CORRUPT, "records of a tar: %s", why);
}

static struct buf *meta_buf(struct untar *u, char type)
{
    return type == 'x' || type == 'X' ? &u->pax : type == 'L' ? &u->name : &u->link;
}

static int meta_begin(struct untar *u, const struct tar_header *h, struct error *err)
{
    if (h->size > TAR_META_MAX)
        return malformed("an extended header is too long", err);
    u->meta = h->type;
    u->left = h->size;
    u->padding = tar_padded(h->size) - h->size;
    buf_clear(meta_buf(u, h->type));
    return 0;
}

static void meta_end(struct untar *u)
{
    u->has_pax |= u->meta == 'x' || u->meta == 'X';
    u->has_name |= u->meta == 'L';
    u->has_link |= u->meta == 'K';
    u->meta = 0;
}

/* "-12.75" is before -12: rounded down, -13.  What is no such number ("1e-05") does not count. */
static bool pax_time(const struct pax_record *r, int64_t *out)
{
    bool minus = r->value_len > 0 && r->value[0] == '-';
    int64_t whole = 0;
    bool fraction = false;
    size_t i = minus;
    for (; i < r->value_len && r->value[i] >= '0' && r->value[i] <= '9'; i++) {
        if (whole > INT64_MAX / 100)
            return false;
        whole = whole * 10 + (r->value[i] - '0');
    }
    if (i == (size_t)minus || (i < r->value_len && r->value[i] != '.'))
        return false;
    for (i++; i < r->value_len; i++)
        fraction |= r->value[i] != '0';
    *out = minus ? -whole - fraction : whole;
    return true;
}

static int pax_apply(const struct pax_record *r, struct untar_member *m, struct error *err)
{
    if (pax_key_is(r, "path")) {
        m->path = r->value;
        m->path_len = r->value_len;
    } else if (pax_key_is(r, "linkpath")) {
        m->link = r->value;
        m->link_len = r->value_len;
    } else if (r->value_len > 0 && pax_key_is(r, "size")) {
        return pax_number(r, &m->size) != 0 ? malformed("a size is not a number", err) : 0;
    } else if (r->value_len > 0 && pax_key_is(r, "mtime")) {
        (void)pax_time(r, &m->mtime);
    }
    return 0;
}

static int pax_apply_all(struct untar *u, struct untar_member *m, struct error *err)
{
    const char *at = buf_str(&u->pax);
    size_t left = u->has_pax ? u->pax.len : 0;
    struct pax_record r;
    int rc;
    while ((rc = pax_next(&at, &left, &r)) > 0) {
        rc = pax_apply(&r, m, err);
        if (rc != 0)
            return rc;
    }
    return rc < 0 ? malformed("an extended header is malformed", err) : 0;
}

static bool type_is_empty(char type)
{
    return type >= '1' && type <= '6';
}

static int member_begin(struct untar *u, const struct tar_header *h, struct error *err)
{
    struct untar_member m = {
        .path = u->has_name ? buf_str(&u->name) : h->name,
        .path_len = u->has_name ? strnlen(u->name.data, u->name.len) : h->name_len,
        .link = u->has_link ? buf_str(&u->link) : h->link,
        .link_len = u->has_link ? strnlen(u->link.data, u->link.len) : h->link_len,
        .type = h->type,
        .mode = tar_header_mode(u->block),
        .mtime = tar_header_mtime(u->block),
        .size = h->size,
    };
    int rc = pax_apply_all(u, &m, err);
    if (rc != 0)
        return rc;
    if (m.path_len == 0 || m.size > INT64_MAX || (type_is_empty(m.type) && m.size > 0))
        return malformed("a member that makes no sense", err);
    u->left = m.size;
    u->padding = tar_padded(m.size) - m.size;
    u->in_member = true;
    rc = u->events->begin(u->ctx, &m, err);
    u->has_pax = u->has_name = u->has_link = false;
    return rc;
}

static int header(struct untar *u, struct error *err)
{
    struct tar_header h;
    const char *why = tar_header_parse(u->block, &h);
    u->used = 0;
    if (why != NULL)
        return malformed(why, err);
    bool is_meta = h.type == 'x' || h.type == 'X' || h.type == 'L' || h.type == 'K';
    return is_meta ? meta_begin(u, &h, err) : member_begin(u, &h, err);
}

static int contents(struct untar *u, const unsigned char *data, size_t len, struct error *err)
{
    u->left -= len;
    if (u->meta == 0)
        return u->events->data(u->ctx, data, len, err);
    buf_append(meta_buf(u, u->meta), data, len);
    return 0;
}

/* Contents and padding are through: what they belonged to ends. */
static int settle(struct untar *u, struct error *err)
{
    if (u->left > 0 || u->padding > 0)
        return 0;
    if (u->meta != 0)
        meta_end(u);
    if (!u->in_member)
        return 0;
    u->in_member = false;
    return u->events->end(u->ctx, err);
}

uint64_t untar_skip(struct untar *u, uint64_t max)
{
    uint64_t n = u->left + u->padding;
    if (!u->in_member || u->meta != 0 || n == 0 || n > max)
        return 0;
    u->left = u->padding = 0;
    u->in_member = false;
    return n;
}

static size_t least(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

int untar_write(struct untar *u, const void *tar, size_t len, struct error *err)
{
    const unsigned char *at = tar;
    while (len > 0) {
        size_t n;
        int rc = 0;
        if (u->left > 0) {
            n = least(u->left, len);
            rc = contents(u, at, n, err);
        } else if (u->padding > 0) {
            n = least(u->padding, len);
            u->padding -= n;
        } else {
            n = least(TAR_BLOCK - u->used, len);
            memcpy(u->block + u->used, at, n);
            u->used += n;
            if (u->used < TAR_BLOCK)
                return 0;
            rc = header(u, err);
        }
        if (rc == 0)
            rc = settle(u, err);
        if (rc != 0)
            return rc;
        at += n;
        len -= n;
    }
    return 0;
}
