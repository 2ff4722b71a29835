/* fsck: do a volume's metadata agree with each other, and with the bucket?  Nothing is changed
 * without --repair.
 *
 * Two looks at the metadata, and a list of the objects between them: on a mounted volume only what
 * both looks find is damage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mount/bucket/tree.h"
#include "mount/data/sums.h"
#include "mount/program/tool.h"
#include "mount/volfs/fsck.h"
#include "mount/volfs/objects.h"
#include "mount/volume/check/repair.h"
#include "mount/volume/walk.h"

struct run {
    struct tool tool;
    struct fsck blocks;
    struct check first, second;
    uint64_t left; /* findings that are not put right */
};

static int list_objects(struct run *r)
{
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_entry *e;
    _cleanup_free_ char *prefix = xprintf("%s/b/", r->tool.format.name);
    const struct dfc_list_options options = {.prefix = prefix};
    int rc = dfc_list_open(r->tool.client, r->tool.bucket, &options, &list, &err);
    if (rc != DFC_OK)
        return tool_fail(&err);
    r->blocks.format = r->tool.format;
    while ((rc = dfc_list_next(list, &e, &err)) > 0)
        fsck_object(&r->blocks, e->name, e->size);
    dfc_list_close(list);
    return rc == 0 ? PROGRAM_OK : tool_fail(&err);
}

static int look(struct run *r, struct check *c)
{
    struct error err = ERROR_INIT;
    return check_run(c, r->tool.meta, &r->tool.format, &err) == 0
               ? PROGRAM_OK
               : program_fail(client_exit_of_code(err.code), "%s", err.message);
}

static void tell_block(void *context, uint64_t ino, const char *key)
{
    (void)context;
    printf("inode %llu: a block is missing, or has another size: %s\n", (unsigned long long)ino,
           key);
}

/* ---- bytes ---- */

struct reading {
    struct run *run;
    struct sums store;
    struct objects objects;
    struct arena *arena;
};

static void read_entry(struct reading *r, uint64_t ino, const struct slice_entry *e)
{
    const struct volume_format *format = &r->run->tool.format;
    for (uint64_t block = 0; block * format->block_bytes < e->size; block++) {
        struct entity *entity = objects_entity(&r->objects, format, e, block);
        int rc =
            entity == NULL ? -EIO : sums_fetch(&r->store, entity, 0, entity->size, &data_nothing);
        if (rc == -ESTALE) /* missing blocks are told already */
            rc = 0;
        if (rc != 0) {
            printf(
                "inode %llu: the bytes of a block cannot be read, or differ from their sum: %s\n",
                (unsigned long long)ino, entity != NULL ? entity->key : "it has no sums");
            r->run->left++;
        }
        entity_unref(entity);
    }
}

static int read_chunk(void *context, const struct meta_row *row, struct error *err)
{
    struct reading *r = context;
    struct slice_list list;
    struct error told = ERROR_INIT;
    (void)err;
    arena_reset(r->arena);
    if (slices_decode(row->value.data, row->value.size, r->run->tool.format.chunk_bytes, r->arena,
                      &list, &told) != 0)
        return 0; /* the check has told it */
    for (size_t i = 0; i < list.count; i++) {
        if (list.entries[i].slice != 0)
            read_entry(r, row->key.id, &list.entries[i]);
    }
    return 0;
}

static int read_inode(void *context, const struct meta_row *row, struct error *err)
{
    struct reading *r = context;
    const struct walk chunks = {.m = r->run->tool.meta, .visit = read_chunk, .context = r};
    return walk_children(&chunks, META_CHUNK, &row->key.id, 1, err);
}

static int read_all(struct run *r)
{
    struct tree tree;
    struct dfc_error told;
    struct error err = ERROR_INIT;
    struct reading reading = {.run = r, .arena = arena_new(4096)};
    const struct walk inodes = {.m = r->tool.meta, .visit = read_inode, .context = &reading};
    if (tree_open(&tree, r->tool.client, r->tool.bucket, "", &told) != DFC_OK) {
        arena_free(reading.arena);
        return tool_fail(&told);
    }
    reading.store.from = (struct data_store){.context = &tree, .fetch = tree_fetch};
    objects_init(&reading.objects);
    int rc = walk_points(&inodes, META_ATTR, &err);
    objects_done(&reading.objects);
    arena_free(reading.arena);
    tree_close(&tree);
    return rc == 0 ? PROGRAM_OK : program_fail(client_exit_of_code(err.code), "%s", err.message);
}

/* ---- findings ---- */

static int tell_findings(struct run *r, bool repairs)
{
    int code = repairs && r->first.count > 0 ? tool_open_volume(&r->tool) : PROGRAM_OK;
    for (size_t i = 0; i < r->first.count && code == PROGRAM_OK; i++) {
        _cleanup_free_ char *text = check_text(&r->first.findings[i]);
        int rc = repairs ? repair_finding(r->tool.volume, &r->first.findings[i]) : -EINPROGRESS;
        const char *what = rc == 0              ? "repaired: "
                           : rc == -EINPROGRESS ? ""
                           : rc == -ENOTSUP     ? "cannot be repaired: "
                                                : "not repaired, run fsck again: ";
        printf("%s%s\n", what, text);
        r->left += rc != 0;
    }
    return code;
}

static int check(const struct options *o, struct run *r)
{
    int code = look(r, &r->first);
    if (code == PROGRAM_OK)
        code = list_objects(r);
    if (code == PROGRAM_OK)
        code = look(r, &r->second);
    if (code != PROGRAM_OK)
        return code;
    check_keep_common(&r->first, &r->second);
    r->left += fsck_compare(&r->blocks, &r->first, &r->second, tell_block, NULL);
    if (o->read_all)
        code = read_all(r);
    int told = tell_findings(r, o->repair);
    code = code != PROGRAM_OK ? code : told;
    printf("%llu inodes, %zu entries of slices, %zu objects: %llu findings are left\n",
           (unsigned long long)r->first.inodes, r->first.slice_count, r->blocks.count,
           (unsigned long long)r->left);
    return code == PROGRAM_OK && r->left > 0 ? PROGRAM_PARTLY : code;
}

int program_fsck(const struct options *o)
{
    struct run r = {0};
    int code = tool_open(o, &r.tool);
    if (code == PROGRAM_OK)
        code = check(o, &r);
    check_done(&r.first);
    check_done(&r.second);
    fsck_done(&r.blocks);
    tool_close(&r.tool);
    return code;
}
