#include "vdisc/table.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "vdisc/capnp.h"
#include "vdisc/gzip.h"
#include "vdisc/iso.h"

#define ADDRESS_MAX 8192 /* bytes: a name of 1024 bytes, each percent-encoded, and more */
#define NODES_MAX 4096   /* of one address */
#define FIRST_BLOCK 65536

struct reading {
    struct capnp_reader capnp;
    struct vdisc_table *table;
    struct capnp_list uris;
    char address[ADDRESS_MAX + 1]; /* filled from its end */
};

static int damaged(struct error *err, const char *what)
{
    return error_set(err, E_IMAGE_DAMAGED, "the table of the image is damaged: %s", what);
}

/* In front of what the address has already. */
static int prepend(struct reading *r, size_t *begin, const char *text, size_t len,
                   struct error *err)
{
    if (len > *begin)
        return damaged(err, "an address has more than 8192 bytes");
    *begin -= len;
    memcpy(r->address + *begin, text, len);
    return 0;
}

/* Nodes are visited once for each of their addresses, so that they are not counted. */
static int read_address(struct reading *r, const struct capnp_struct *extent, const char **out,
                        struct error *err)
{
    const char *text;
    size_t len, begin = ADDRESS_MAX;
    int rc = capnp_get_text(&r->capnp, extent, 0, &text, &len, err);
    if (rc == 0)
        rc = prepend(r, &begin, text, len, err);
    uint32_t node = capnp_u32(extent, 0);
    for (unsigned i = 0; rc == 0; i++) {
        if (node >= r->uris.count || i == NODES_MAX)
            return damaged(err, "an address has no begin");
        const struct capnp_struct n = capnp_get_item(&r->uris, node);
        const uint64_t left = r->capnp.left;
        rc = capnp_get_text(&r->capnp, &n, 0, &text, &len, err);
        r->capnp.left = left;
        if (rc == 0)
            rc = prepend(r, &begin, text, len, err);
        if (capnp_u32(&n, 0) == node)
            break;
        node = capnp_u32(&n, 0);
    }
    if (rc == 0 && !utf8_valid(r->address + begin, ADDRESS_MAX - begin))
        return damaged(err, "an address is no text");
    *out = arena_strndup(r->table->texts, r->address + begin, ADDRESS_MAX - begin);
    return rc;
}

static int read_extents(struct reading *r, const struct capnp_struct *v1, struct error *err)
{
    struct capnp_list list;
    int rc = capnp_get_list(&r->capnp, v1, 2, &list, err);
    if (rc != 0)
        return rc;
    struct vdisc_table *t = r->table;
    uint64_t blocks = 0;
    t->extents = calloc((size_t)list.count + 1, sizeof *t->extents);
    if (t->extents == NULL)
        return error_set(err, E_NOMEM, "no memory for %u extents", list.count);
    for (; rc == 0 && t->count < list.count; t->count++) {
        const struct capnp_struct item = capnp_get_item(&list, t->count);
        struct vdisc_extent *e = &t->extents[t->count];
        *e = (struct vdisc_extent){.blocks = capnp_u32(&item, 4), .padding = capnp_u16(&item, 8)};
        e->etag = e->checksum = "";
        blocks += e->blocks;
        if (e->padding > ISO_BLOCK || e->padding > (uint64_t)e->blocks * ISO_BLOCK ||
            blocks > UINT32_MAX)
            return damaged(err, "an extent has more padding or blocks than there can be");
        rc = read_address(r, &item, &e->address, err);
    }
    return rc;
}

static int copy_text(struct reading *r, const struct capnp_struct *in, uint32_t pointer,
                     const char **out, struct error *err)
{
    const char *text;
    size_t len;
    int rc = capnp_get_text(&r->capnp, in, pointer, &text, &len, err);
    if (rc == 0 && (len > ADDRESS_MAX || !utf8_valid(text, len)))
        return damaged(err, "a tag or checksum is no text");
    *out = rc == 0 && len > 0 ? arena_strndup(r->table->texts, text, len) : "";
    return rc;
}

static int copy_id(struct reading *r, const struct capnp_struct *in, uint32_t pointer,
                   uint8_t id[static TABLE_ID], bool *has, struct error *err)
{
    const uint8_t *bytes;
    size_t len;
    int rc = capnp_get_data(&r->capnp, in, pointer, &bytes, &len, err);
    if (rc == 0 && len != 0 && len != TABLE_ID)
        return damaged(err, "an id has not 32 bytes");
    *has = rc == 0 && len == TABLE_ID;
    if (*has)
        memcpy(id, bytes, TABLE_ID);
    return rc;
}

static int read_members(struct reading *r, const struct capnp_struct *v2, struct error *err)
{
    struct vdisc_table *t = r->table;
    struct capnp_list list;
    bool has = true;
    int rc = capnp_get_list(&r->capnp, v2, 3, &list, err);
    if (rc != 0 || list.count == 0)
        return rc;
    t->members = calloc(list.count, sizeof *t->members);
    if (t->members == NULL)
        return error_set(err, E_NOMEM, "no memory for %u members", list.count);
    for (; rc == 0 && t->member_count < list.count; t->member_count++) {
        const struct capnp_struct item = capnp_get_item(&list, t->member_count);
        struct vdisc_member *m = &t->members[t->member_count];
        m->lba = capnp_u32(&item, 0);
        if (t->member_count > 0 && m[-1].lba >= m->lba)
            return damaged(err, "its members do not ascend");
        rc = copy_id(r, &item, 0, m->sha256, &has, err);
        if (rc == 0 && !has)
            return damaged(err, "a member has no checksum");
    }
    return rc;
}

static int read_v2(struct reading *r, const struct capnp_struct *root, struct error *err)
{
    struct vdisc_table *t = r->table;
    struct capnp_struct v2;
    struct capnp_list pins;
    bool has;
    int rc = capnp_get_struct(&r->capnp, root, 1, &v2, err);
    if (rc != 0 || v2.data == NULL)
        return rc;
    rc = capnp_get_list(&r->capnp, &v2, 0, &pins, err);
    if (rc == 0 && pins.count != t->count)
        return damaged(err, "it has not a pin for each extent");
    for (uint32_t i = 0; rc == 0 && i < t->count; i++) {
        const struct capnp_struct pin = capnp_get_item(&pins, i);
        rc = copy_text(r, &pin, 0, &t->extents[i].etag, err);
        if (rc == 0)
            rc = copy_text(r, &pin, 1, &t->extents[i].checksum, err);
    }
    if (rc == 0)
        rc = copy_id(r, &v2, 1, t->image_id, &has, err);
    if (rc == 0)
        rc = copy_id(r, &v2, 2, t->content_id, &t->has_content_id, err);
    if (rc == 0)
        rc = read_members(r, &v2, err);
    t->pinned = true;
    return rc;
}

static int read_v1(struct reading *r, const struct capnp_struct *root, struct error *err)
{
    struct capnp_struct v1;
    int rc = capnp_get_struct(&r->capnp, root, 0, &v1, err);
    if (rc == 0 && v1.data == NULL)
        return damaged(err, "it has no version that is known");
    if (rc == 0 && capnp_u16(&v1, 0) != ISO_BLOCK)
        return error_set(err, E_UNSUPPORTED, "the image has blocks of %u bytes, not of %u",
                         capnp_u16(&v1, 0), ISO_BLOCK);
    if (rc == 0)
        rc = capnp_get_list(&r->capnp, &v1, 1, &r->uris, err);
    return rc == 0 ? read_extents(r, &v1, err) : rc;
}

static int read_message(const void *bytes, size_t len, struct vdisc_table **table,
                        struct error *err)
{
    struct capnp_struct root;
    struct reading *r = xcalloc(1, sizeof *r);
    struct vdisc_table *t = xcalloc(1, sizeof *t);
    t->texts = arena_new(FIRST_BLOCK);
    r->table = t;
    int rc = capnp_open(&r->capnp, bytes, len, err);
    if (rc == 0)
        rc = capnp_root(&r->capnp, &root, err);
    if (rc == 0)
        rc = read_v1(r, &root, err);
    if (rc == 0)
        rc = read_v2(r, &root, err);
    free(r);
    if (rc == 0)
        *table = t;
    else
        vdisc_table_free(t);
    return rc;
}

int vdisc_table_read(const void *bytes, size_t len, uint64_t max, struct vdisc_table **table,
                     struct error *err)
{
    _cleanup_buf_ struct buf message = BUF_INIT;
    const uint64_t most = max != 0 ? max : TABLE_MAX_DEFAULT;
    if (!gzip_is(bytes, len))
        return read_message(bytes, len, table, err);
    int rc = gzip_unpack(bytes, len, most, &message, err);
    return rc == 0 ? read_message(message.data, message.len, table, err) : rc;
}

void vdisc_table_free(struct vdisc_table *t)
{
    if (t == NULL)
        return;
    arena_free(t->texts);
    free(t->extents);
    free(t->members);
    free(t);
}

static int compare_lba(const void *key, const void *member)
{
    const uint32_t a = *(const uint32_t *)key, b = ((const struct vdisc_member *)member)->lba;
    return (a > b) - (a < b);
}

const struct vdisc_member *vdisc_table_member(const struct vdisc_table *t, uint32_t lba)
{
    return t->member_count > 0
               ? bsearch(&lba, t->members, t->member_count, sizeof *t->members, compare_lba)
               : NULL;
}

uint64_t vdisc_extent_size(const struct vdisc_extent *e)
{
    return (uint64_t)e->blocks * ISO_BLOCK - e->padding;
}

bool vdisc_extent_checksum(const struct vdisc_extent *e, struct checksum_value *out)
{
    const char *colon = strchr(e->checksum, ':');
    char name[16] = "";
    enum checksum_type type;
    if (colon == NULL || (size_t)(colon - e->checksum) >= sizeof name)
        return false;
    memcpy(name, e->checksum, (size_t)(colon - e->checksum));
    return checksum_from_name(name, &type, NULL) == 0 && type != CHECKSUM_NONE &&
           checksum_parse(type, colon + 1, out, NULL) == 0;
}

uint64_t vdisc_table_size(const struct vdisc_table *t)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < t->count; i++)
        size += (uint64_t)t->extents[i].blocks * ISO_BLOCK;
    return size;
}

uint64_t *vdisc_table_starts(const struct vdisc_table *t)
{
    uint64_t *starts = xcalloc((size_t)t->count + 1, sizeof *starts);
    for (uint32_t i = 0; i < t->count; i++)
        starts[i + 1] = starts[i] + t->extents[i].blocks;
    return starts;
}

uint32_t vdisc_table_extent(const struct vdisc_table *t, const uint64_t *starts, uint32_t lba)
{
    uint32_t low = 0, high = t->count;
    if (high == 0 || lba >= starts[high])
        return UINT32_MAX;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (starts[middle] <= lba)
            low = middle;
        else
            high = middle;
    }
    return low;
}
