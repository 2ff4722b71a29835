#include "vdisc/older.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/mem.h"

#define FIRST_BLOCK 65536
#define FEW_BYTES (1u << 20) /* of paths: as much as a few long ones need */

struct object {
    char *bucket, *key;
};

struct older {
    struct older_image image;
    uint64_t *starts; /* block of each extent, and the end */
    struct arena *texts;
    uint64_t text_bytes;
    struct object *objects; /* of each extent, asked for once */
    struct older_entry *entries;
    size_t count, room;
    uint32_t *by_path, *by_content; /* numbers of entries */
    size_t content_count;
};

/* --- entries ---------------------------------------------------------------------------------- */

static int object_of(struct older *o, uint32_t extent, struct error *err)
{
    struct object *to = &o->objects[extent];
    return to->key != NULL ? 0 : o->image.object(o->image.ctx, extent, &to->bucket, &to->key, err);
}

static void set_checksum(const struct older *o, uint32_t extent, const struct iso_found *f,
                         struct older_entry *e)
{
    const struct vdisc_table *t = o->image.table;
    const struct vdisc_member *m = vdisc_table_member(t, f->lba);
    const char *pin = t->extents[extent].checksum;
    struct checksum_value whole = {.type = CHECKSUM_NONE};
    if (strncmp(pin, "sha256:", 7) == 0 &&
        checksum_parse(CHECKSUM_SHA256, pin + 7, &whole, NULL) != 0)
        whole.type = CHECKSUM_NONE;
    if (e->part.offset == 0 && e->part.object_size == f->size) {
        e->row.checksum = whole;
        return;
    }
    e->part.object_checksum = whole;
    if (m == NULL)
        return;
    e->row.checksum.type = CHECKSUM_SHA256;
    memcpy(e->row.checksum.bytes, m->sha256, sizeof m->sha256);
}

static int set_part(struct older *o, const char *path, const struct iso_found *f,
                    struct older_entry *e, struct error *err)
{
    const struct vdisc_table *t = o->image.table;
    const uint32_t extent = vdisc_table_extent(t, o->starts, f->lba);
    if (extent == UINT32_MAX)
        return error_set(err, E_IMAGE_DAMAGED,
                         "the image is damaged: file '%.200s' is behind its end", path);
    int rc = object_of(o, extent, err);
    if (rc != 0)
        return rc;
    const struct vdisc_extent *x = &t->extents[extent];
    e->part = (struct plan_part){
        .bucket = o->objects[extent].bucket,
        .key = o->objects[extent].key,
        .object_size = vdisc_extent_size(x),
        .offset = (uint64_t)(f->lba - o->starts[extent]) * ISO_BLOCK,
        .etag = x->etag[0] != '\0' ? x->etag : NULL,
    };
    if (f->size > 0 &&
        (e->part.offset > e->part.object_size || f->size > e->part.object_size - e->part.offset))
        return error_set(err, E_UNSUPPORTED, "file '%.200s' is in more than one object", path);
    set_checksum(o, extent, f, e);
    return 0;
}

static int check_room(struct older *o, const char *path, const struct iso_found *f,
                      struct error *err)
{
    const uint64_t max = o->image.entries_max;
    o->text_bytes += strlen(path) + strlen(f->target);
    if (max > 0 && o->count >= max)
        return error_set(err, E_IMAGE_TOO_LARGE,
                         "the image has more than %llu entries (vdisc_entries_max)",
                         (unsigned long long)max);
    if (max > 0 && o->text_bytes > max * OLDER_PATH_BYTES + FEW_BYTES)
        return error_set(err, E_IMAGE_TOO_LARGE,
                         "the paths of the image have more than %llu bytes: %u for each of "
                         "%llu entries (vdisc_entries_max)",
                         (unsigned long long)(max * OLDER_PATH_BYTES + FEW_BYTES), OLDER_PATH_BYTES,
                         (unsigned long long)max);
    return o->image.check != NULL ? o->image.check(o->image.ctx, err) : 0;
}

static int add(void *context, const char *path, const struct iso_found *f, struct error *err)
{
    struct older *o = context;
    int rc = check_room(o, path, f, err);
    if (rc != 0)
        return rc;
    if (o->count == o->room) {
        o->room = o->room * 2 + 64;
        o->entries = xrealloc(o->entries, o->room * sizeof *o->entries);
    }
    struct older_entry *e = &o->entries[o->count];
    *e = (struct older_entry){.row = {.entry = {.path = arena_strdup(o->texts, path),
                                                .kind = f->kind,
                                                .size = f->kind == ISO_FILE ? f->size : 0,
                                                .mtime_s = f->mtime_s,
                                                .mode = f->mode,
                                                .uid = f->uid,
                                                .gid = f->gid}}};
    if (f->kind == ISO_LINK)
        e->row.entry.target = arena_strdup(o->texts, f->target);
    o->count++;
    return f->kind == ISO_FILE ? set_part(o, path, f, e, err) : 0;
}

/* --- finding ---------------------------------------------------------------------------------- */

static int compare_contents(const struct older_entry *a, const struct older_entry *b)
{
    const uint64_t sa = a->row.entry.size, sb = b->row.entry.size;
    int order = memcmp(a->row.checksum.bytes, b->row.checksum.bytes, 32);
    return order != 0 ? order : (sa > sb) - (sa < sb);
}

static int by_path(const void *a, const void *b, void *context)
{
    const struct older_entry *e = context;
    return strcmp(e[*(const uint32_t *)a].row.entry.path, e[*(const uint32_t *)b].row.entry.path);
}

/* The first of equal ones is the first of the walk, whatever the sort does. */
static int by_content(const void *a, const void *b, void *context)
{
    const struct older_entry *e = context;
    const uint32_t na = *(const uint32_t *)a, nb = *(const uint32_t *)b;
    int order = compare_contents(&e[na], &e[nb]);
    return order != 0 ? order : (na > nb) - (na < nb);
}

static void index_entries(struct older *o)
{
    o->by_path = xcalloc(o->count + 1, sizeof *o->by_path);
    o->by_content = xcalloc(o->count + 1, sizeof *o->by_content);
    for (size_t i = 0; i < o->count; i++) {
        o->by_path[i] = (uint32_t)i;
        if (o->entries[i].row.checksum.type == CHECKSUM_SHA256)
            o->by_content[o->content_count++] = (uint32_t)i;
    }
    qsort_r(o->by_path, o->count, sizeof *o->by_path, by_path, o->entries);
    qsort_r(o->by_content, o->content_count, sizeof *o->by_content, by_content, o->entries);
}

const struct older_entry *older_find(const struct older *o, const char *path)
{
    size_t low = 0, high = o->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct older_entry *e = &o->entries[o->by_path[middle]];
        const int order = strcmp(path, e->row.entry.path);
        if (order == 0)
            return e;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct older_entry *older_find_content(const struct older *o, uint64_t size,
                                             const uint8_t sha256[static 32])
{
    size_t low = 0, high = o->content_count;
    struct older_entry wanted = {.row.entry.size = size};
    memcpy(wanted.row.checksum.bytes, sha256, 32);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_contents(&o->entries[o->by_content[middle]], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct older_entry *e = low < o->content_count ? &o->entries[o->by_content[low]] : NULL;
    return e != NULL && compare_contents(e, &wanted) == 0 ? e : NULL;
}

/* --- the whole -------------------------------------------------------------------------------- */

int older_load(const struct older_image *image, struct older **out, struct error *err)
{
    _cleanup_(older_freep)
    struct older *o = xcalloc(1, sizeof *o);
    struct iso_found root;
    o->image = *image;
    o->texts = arena_new(FIRST_BLOCK);
    o->objects = xcalloc((size_t)image->table->count + 1, sizeof *o->objects);
    o->starts = vdisc_table_starts(image->table);
    iso_reader_root(image->reader, &root);
    const int rc = iso_reader_walk(image->reader, &root, add, o, err);
    if (rc != 0)
        return rc;
    index_entries(o);
    *out = steal(o);
    return 0;
}

void older_add(const struct older *o, struct plan *p)
{
    struct iso_found root;
    iso_reader_root(o->image.reader, &root);
    const struct burn_row top = {.entry = {.path = "/",
                                           .kind = ISO_DIRECTORY,
                                           .mtime_s = ISO_NO_TIME,
                                           .mode = root.mode,
                                           .uid = root.uid,
                                           .gid = root.gid}};
    plan_add(p, PLAN_OLDER, &top, NULL);
    for (size_t i = 0; i < o->count; i++) {
        const struct older_entry *e = &o->entries[i];
        struct burn_row row = e->row;
        if (row.entry.kind != ISO_FILE && row.entry.mtime_s == root.mtime_s)
            row.entry.mtime_s = ISO_NO_TIME;
        plan_add(p, PLAN_OLDER, &row, row.entry.kind == ISO_FILE ? &e->part : NULL);
    }
}

size_t older_count(const struct older *o)
{
    return o->count;
}

const struct older_entry *older_entry(const struct older *o, size_t i)
{
    return &o->entries[i];
}

void older_free(struct older *o)
{
    if (o == NULL)
        return;
    for (uint32_t i = 0; i < o->image.table->count; i++) {
        free(o->objects[i].bucket);
        free(o->objects[i].key);
    }
    arena_free(o->texts);
    free(o->starts);
    free(o->objects);
    free(o->entries);
    free(o->by_path);
    free(o->by_content);
    free(o);
}
