#include "vdisc/table.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "vdisc/capnp.h"
#include "vdisc/gzip.h"
#include "vdisc/iso.h"
#include "vdisc/trie.h"

#define FS_TYPE "iso9660"

static void put_uris(struct capnp_writer *w, const struct capnp_place *v1, const struct trie *trie)
{
    struct capnp_place list = capnp_put_list(w, v1, 1, trie->count, 1, 1);
    for (uint32_t i = 0; i < trie->count; i++) {
        struct capnp_place node = capnp_item(&list, i);
        capnp_put_u32(w, &node, 0, trie->nodes[i].parent);
        capnp_put_text(w, &node, 0, trie->nodes[i].text, trie->nodes[i].len);
    }
}

static void put_extents(struct capnp_writer *w, const struct capnp_place *v1,
                        const struct vdisc_table *t, const struct trie *trie)
{
    struct capnp_place list = capnp_put_list(w, v1, 2, t->count, 2, 1);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct vdisc_extent *e = &t->extents[i];
        const char *rest = e->address + trie->leaves[i].rest;
        struct capnp_place item = capnp_item(&list, i);
        capnp_put_u32(w, &item, 0, trie->leaves[i].node);
        capnp_put_u32(w, &item, 4, e->blocks);
        capnp_put_u16(w, &item, 8, e->padding);
        capnp_put_text(w, &item, 0, rest, strlen(rest));
    }
}

static void put_v1(struct capnp_writer *w, const struct capnp_place *root,
                   const struct vdisc_table *t)
{
    struct capnp_place v1 = capnp_put_struct(w, root, 0, 1, 3);
    struct trie trie;
    const char **addresses = xcalloc((size_t)t->count + 1, sizeof *addresses);
    for (uint32_t i = 0; i < t->count; i++)
        addresses[i] = t->extents[i].address;
    trie_init(&trie, addresses, t->count);
    capnp_put_u16(w, &v1, 0, ISO_BLOCK);
    capnp_put_text(w, &v1, 0, FS_TYPE, strlen(FS_TYPE));
    put_uris(w, &v1, &trie);
    put_extents(w, &v1, t, &trie);
    trie_done(&trie);
    free(addresses);
}

static void put_members(struct capnp_writer *w, const struct capnp_place *v2,
                        const struct vdisc_table *t)
{
    struct capnp_place list = capnp_put_list(w, v2, 3, t->member_count, 1, 1);
    for (uint32_t i = 0; i < t->member_count; i++) {
        struct capnp_place item = capnp_item(&list, i);
        capnp_put_u32(w, &item, 0, t->members[i].lba);
        capnp_put_data(w, &item, 0, t->members[i].sha256, sizeof t->members[i].sha256);
    }
}

/* Images without packs have the bytes that earlier releases gave them: three pointers. */
static void put_v2(struct capnp_writer *w, const struct capnp_place *root,
                   const struct vdisc_table *t)
{
    struct capnp_place v2 = capnp_put_struct(w, root, 1, 0, t->member_count > 0 ? 4 : 3);
    struct capnp_place pins = capnp_put_list(w, &v2, 0, t->count, 0, 2);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct vdisc_extent *e = &t->extents[i];
        struct capnp_place pin = capnp_item(&pins, i);
        capnp_put_text(w, &pin, 0, e->etag, strlen(e->etag));
        capnp_put_text(w, &pin, 1, e->checksum, strlen(e->checksum));
    }
    capnp_put_data(w, &v2, 1, t->image_id, TABLE_ID);
    if (t->has_content_id)
        capnp_put_data(w, &v2, 2, t->content_id, TABLE_ID);
    if (t->member_count > 0)
        put_members(w, &v2, t);
}

int vdisc_table_write(const struct vdisc_table *t, uint64_t max, struct buf *out, struct error *err)
{
    const uint64_t most = max != 0 ? max : TABLE_MAX_DEFAULT;
    struct capnp_writer w;
    struct capnp_place root = capnp_begin(&w, 0, 2);
    put_v1(&w, &root, t);
    if (t->pinned)
        put_v2(&w, &root, t);
    int rc = capnp_end(&w, err);
    if (rc == 0 && w.words.len > most)
        rc = error_set(
            err, E_IMAGE_TOO_LARGE,
            "the table of the image has %zu bytes, more than %llu (vdisc_table_max): make "
            "several images",
            w.words.len, (unsigned long long)most);
    if (rc == 0)
        rc = gzip_pack(w.words.data, w.words.len, out, err);
    capnp_writer_done(&w);
    return rc;
}
