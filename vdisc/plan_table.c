/* The table of a planned image. */
#include "vdisc/plan_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "vdisc/reference.h"

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void set_extent(struct vdisc_extent *e, const char *address, uint64_t size,
                       const struct plan_object *o)
{
    const uint64_t blocks = size > 0 ? (size + ISO_BLOCK - 1) / ISO_BLOCK : 1;
    *e = (struct vdisc_extent){.address = address,
                               .blocks = (uint32_t)blocks,
                               .padding = (uint16_t)(blocks * ISO_BLOCK - size),
                               .etag = or_empty(o->etag),
                               .checksum = or_empty(o->pin)};
}

#define DIGEST_PIECE (64u << 10) /* bytes that are collected before they are digested */

static void digest_when(struct checksum *c, struct buf *bytes, size_t least)
{
    if (bytes->len < least)
        return;
    checksum_update(c, bytes->data, bytes->len);
    buf_clear(bytes);
}

/* No address is in it: an image that moves keeps its id. */
static void set_image_id(struct vdisc_table *t, const uint8_t header_sha256[static TABLE_ID])
{
    struct checksum_value id;
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    _cleanup_(checksum_freep)
    struct checksum *c = checksum_new(CHECKSUM_SHA256);
    buf_append(&bytes, header_sha256, TABLE_ID);
    for (uint32_t i = 1; i < t->count; i++) {
        const struct vdisc_extent *e = &t->extents[i];
        uint8_t sizes[6];
        iso_put32(sizes, e->blocks);
        iso_put16(sizes + 4, e->padding);
        buf_append(&bytes, sizes, sizeof sizes);
        buf_append(&bytes, e->etag, strlen(e->etag) + 1);
        buf_append(&bytes, e->checksum, strlen(e->checksum) + 1);
        digest_when(c, &bytes, DIGEST_PIECE);
    }
    digest_when(c, &bytes, 1);
    checksum_final(c, &id);
    memcpy(t->image_id, id.bytes, TABLE_ID);
}

/* What is known of an object counts for a file that is all of it. */
struct digesting {
    const struct plan *p;
    const uint32_t *object_of; /* of each extent */
    char pin[2 * CHECKSUM_MAX + 16];
};

/* The file's SHA-256, or NULL; an empty file needs none. */
static const char *content_of(struct digesting *d, const struct iso_node *n)
{
    const struct plan *p = d->p;
    const struct named *f = plan_stands_for(p, n->content);
    const struct plan_object *o = &p->objects[d->object_of[p->parts[n->content].extent]];
    if (n->size == 0)
        return "";
    if (plan_is_whole(p, f))
        return o->pin != NULL && strncmp(o->pin, "sha256:", 7) == 0 ? o->pin : NULL;
    if (f->checksum.type != CHECKSUM_SHA256)
        return NULL;
    memcpy(d->pin, "sha256:", 7);
    checksum_hex(&f->checksum, d->pin + 7);
    return d->pin;
}

static bool digest_nodes(struct digesting *d, struct checksum *c)
{
    for (uint32_t i = 0; i < d->p->tree->count; i++) {
        const struct iso_node *n = &d->p->tree->nodes[i];
        const uint8_t kind = (uint8_t)n->kind;
        const char *content = n->kind == ISO_FILE ? content_of(d, n) : n->target;
        uint8_t numbers[12];
        if (n->kind == ISO_FILE && content == NULL)
            return false;
        iso_put32(numbers, n->parent);
        iso_put32(numbers + 4, (uint32_t)n->size);
        iso_put32(numbers + 8, (uint32_t)(n->size >> 32));
        checksum_update(c, &kind, 1);
        checksum_update(c, numbers, sizeof numbers);
        checksum_update(c, n->name, strlen(n->name) + 1);
        checksum_update(c, or_empty(content), strlen(or_empty(content)) + 1);
    }
    return true;
}

/* Paths, kinds, sizes and contents alone: the same however the contents are stored. */
static void set_content_id(const struct plan *p, struct vdisc_table *t)
{
    struct checksum_value id;
    _cleanup_(checksum_freep)
    struct checksum *c = checksum_new(CHECKSUM_SHA256);
    uint32_t *object_of = xcalloc((size_t)p->file_count + 1, sizeof *object_of);
    struct digesting d = {.p = p, .object_of = object_of};
    for (uint32_t i = 0; i < p->object_count; i++)
        object_of[p->layout->extent_order[i]] = i;
    t->has_content_id = digest_nodes(&d, c);
    checksum_final(c, &id);
    memcpy(t->content_id, id.bytes, TABLE_ID);
    free(object_of);
}

static int compare_members(const void *a, const void *b)
{
    const struct vdisc_member *ma = a, *mb = b;
    return (ma->lba > mb->lba) - (ma->lba < mb->lba);
}

/* Contents that share an object with others: its checksum says nothing of theirs. */
static void set_members(const struct plan *p, struct vdisc_table *t)
{
    t->members = xcalloc((size_t)p->content_count + 1, sizeof *t->members);
    for (uint32_t c = 0; c < p->content_count; c++) {
        const struct named *f = plan_stands_for(p, c);
        if (plan_is_whole(p, f) || f->checksum.type != CHECKSUM_SHA256)
            continue;
        struct vdisc_member *m = &t->members[t->member_count++];
        m->lba = p->layout->contents[c].lba;
        memcpy(m->sha256, f->checksum.bytes, sizeof m->sha256);
    }
    if (t->member_count > 0)
        qsort(t->members, t->member_count, sizeof *t->members, compare_members);
}

static const char *address_of(struct arena *a, const char *bucket, const char *key,
                              const char *to_bucket, const char *to_key)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    const struct reference to = {.bucket = (char *)to_bucket, .key = (char *)to_key};
    reference_put(&text, bucket, key, &to);
    return arena_strndup(a, text.data, text.len);
}

int plan_table(struct plan *p, const char *bucket, const char *key,
               const struct plan_object *header, const uint8_t header_sha256[static TABLE_ID],
               uint8_t image_id[static TABLE_ID], struct buf *out, struct error *err)
{
    _cleanup_arena_ struct arena *a = arena_new(PLAN_FIRST_BLOCK);
    struct vdisc_table t = {.pinned = true, .count = p->object_count + 1};
    t.extents = xcalloc(t.count, sizeof *t.extents);
    set_extent(&t.extents[0], address_of(a, bucket, key, bucket, header->key),
               (uint64_t)p->layout->header_blocks * ISO_BLOCK, header);
    for (uint32_t i = 0; i < p->object_count; i++) {
        const struct plan_object *o = &p->objects[i];
        set_extent(&t.extents[i + 1], address_of(a, bucket, key, o->bucket, o->key), o->size, o);
    }
    set_image_id(&t, header_sha256);
    set_content_id(p, &t);
    set_members(p, &t);
    memcpy(image_id, t.image_id, TABLE_ID);
    int rc = vdisc_table_write(&t, p->table_max, out, err);
    free(t.extents);
    free(t.members);
    return rc;
}
