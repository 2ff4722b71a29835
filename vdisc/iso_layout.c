#include "vdisc/iso_layout.h"

#include <stdlib.h>

#include "common/mem.h"
#include "vdisc/iso_records.h"

#define PATH_TABLES 2 /* of each view: little endian, big endian */
#define PARENT_MAX UINT16_MAX

static uint64_t blocks_of(uint64_t bytes)
{
    return bytes / ISO_BLOCK + (bytes % ISO_BLOCK != 0);
}

/* Records of a directory, filled into sectors. */
struct counted {
    uint64_t bytes;
};

static void count_record(void *context, const uint8_t *record, size_t len)
{
    struct counted *c = context;
    (void)record;
    if (c->bytes % ISO_BLOCK + len > ISO_BLOCK)
        c->bytes += ISO_BLOCK - c->bytes % ISO_BLOCK;
    c->bytes += len;
}

static int too_large(struct error *err)
{
    return error_set(err, E_IMAGE_TOO_LARGE,
                     "the image has more than 2^32 - 1 blocks of %u bytes (8 TiB): make several "
                     "images",
                     ISO_BLOCK);
}

static int place_directory(struct iso_layout *l, unsigned view, uint32_t place, uint64_t *lba,
                           struct error *err)
{
    struct iso_place *p = &l->views[view].places[place];
    struct susp_area area = {0};
    struct counted c = {0};
    iso_records_each(l, view, place, &area, count_record, &c);
    if (blocks_of(c.bytes) * ISO_BLOCK > UINT32_MAX) {
        _cleanup_free_ char *path = iso_tree_path(l->tree, p->node);
        return error_set(err, E_IMAGE_TOO_LARGE,
                         "directory '%.200s' has records of 4 GiB or more: make several "
                         "directories of it",
                         path);
    }
    p->lba = (uint32_t)*lba;
    p->blocks = (uint32_t)blocks_of(c.bytes);
    p->more_blocks = (uint32_t)blocks_of(area.used);
    *lba += (uint64_t)p->blocks + p->more_blocks;
    return *lba <= UINT32_MAX ? 0 : too_large(err);
}

static void place_path_tables(struct iso_view *v, uint64_t *lba)
{
    v->l_lba = (uint32_t)*lba;
    v->m_lba = (uint32_t)(*lba + blocks_of(v->path_bytes));
    *lba += PATH_TABLES * blocks_of(v->path_bytes);
}

static int place_header(struct iso_layout *l, struct error *err)
{
    uint64_t lba = ISO_SYSTEM_BLOCKS + l->view_count + 1;
    int rc = 0;
    for (unsigned i = 0; i < l->view_count; i++)
        place_path_tables(&l->views[i], &lba);
    if (lba > UINT32_MAX)
        return too_large(err);
    for (unsigned view = 0; view < l->view_count; view++) {
        for (uint32_t i = 0; rc == 0 && i < l->views[view].count; i++)
            rc = place_directory(l, view, i, &lba, err);
    }
    l->header_blocks = (uint32_t)lba;
    return rc;
}

static int place_extent(struct iso_layout *l, uint32_t extent, uint64_t size, uint64_t *lba,
                        struct error *err)
{
    struct iso_extent *e = &l->extents[extent];
    const uint64_t blocks = size > 0 ? blocks_of(size) : 1;
    if (e->used)
        return 0;
    if (blocks > UINT32_MAX - *lba)
        return too_large(err);
    *e = (struct iso_extent){
        .used = true, .size = size, .lba = (uint32_t)*lba, .blocks = (uint32_t)blocks};
    l->extent_order[l->extent_count++] = extent;
    *lba += blocks;
    return 0;
}

static int place_contents(struct iso_layout *l, const struct iso_stored *s, struct error *err)
{
    const struct iso_tree *t = l->tree;
    uint64_t lba = l->header_blocks;
    for (uint32_t i = 0; i < t->file_count; i++) {
        const struct iso_node *n = &t->nodes[t->files[i]];
        struct iso_content *c = &l->contents[n->content];
        l->many_sections += n->size / ISO_SECTION_MAX >= ISO_SECTIONS_LINUX;
        if (c->used)
            continue;
        const struct iso_part part =
            s->parts != NULL ? s->parts[n->content] : (struct iso_part){.extent = n->content};
        int rc = place_extent(l, part.extent, s->parts != NULL ? s->sizes[part.extent] : n->size,
                              &lba, err);
        if (rc != 0)
            return rc;
        *c = (struct iso_content){
            .used = true, .size = n->size, .lba = l->extents[part.extent].lba + part.block};
        l->content_bytes += n->size;
    }
    l->blocks = (uint32_t)lba;
    return 0;
}

static void count_far_parents(struct iso_layout *l)
{
    for (uint32_t i = 0; i < l->views[0].count; i++)
        l->far_parents += l->views[0].places[i].parent >= PARENT_MAX;
}

int iso_layout_new(const struct iso_tree *t, const struct iso_stored *stored, bool joliet,
                   struct iso_layout **layout, struct error *err)
{
    _cleanup_(iso_layout_freep)
    struct iso_layout *l = xcalloc(1, sizeof *l);
    l->tree = t;
    const uint32_t extents = stored->parts != NULL ? stored->extents : stored->contents;
    l->contents = xcalloc((size_t)stored->contents + 1, sizeof *l->contents);
    l->extents = xcalloc((size_t)extents + 1, sizeof *l->extents);
    l->extent_order = xcalloc((size_t)extents + 1, sizeof *l->extent_order);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < (joliet ? 2u : 1u); i++) {
        l->view_count++;
        rc = iso_view_init(&l->views[i], t, i > 0, err);
    }
    if (rc == 0)
        rc = place_header(l, err);
    if (rc == 0)
        rc = place_contents(l, stored, err);
    if (rc != 0)
        return rc;
    count_far_parents(l);
    *layout = steal(l);
    return 0;
}

void iso_layout_free(struct iso_layout *l)
{
    if (l == NULL)
        return;
    for (unsigned i = 0; i < l->view_count; i++)
        iso_view_done(&l->views[i]);
    free(l->contents);
    free(l->extents);
    free(l->extent_order);
    free(l);
}
