#include "vdisc/placing.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"

#define PACK_LIVE 2 /* a pack of the base is used if at least one of so many bytes is wanted */

struct placing {
    struct placing_file *files;
    size_t file_count;
    struct placing_options options;
    uint32_t *order; /* of each content the first file; those of one object side by side */
    size_t count;
    struct placing_object *objects;
    size_t object_count;
};

/* --- equal files ------------------------------------------------------------------------------ */

static int compare_files(const struct placing_file *a, const struct placing_file *b)
{
    int order = memcmp(a->sha256, b->sha256, sizeof a->sha256);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static int by_content(const void *a, const void *b, void *context)
{
    const struct placing_file *files = context;
    const uint32_t na = *(const uint32_t *)a, nb = *(const uint32_t *)b;
    int order = compare_files(&files[na], &files[nb]);
    return order != 0 ? order : (na > nb) - (na < nb);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t na = *(const uint32_t *)a, nb = *(const uint32_t *)b;
    return (na > nb) - (na < nb);
}

/* Of each content without a place the first file, in path order. */
static void list_contents(struct placing *c)
{
    size_t all = 0, count = 0;
    for (size_t i = 0; i < c->file_count; i++) {
        if (c->files[i].part.key == NULL)
            c->order[all++] = (uint32_t)i;
    }
    qsort_r(c->order, all, sizeof *c->order, by_content, c->files);
    for (size_t i = 0; i < all; i++) {
        if (count == 0 ||
            compare_files(&c->files[c->order[count - 1]], &c->files[c->order[i]]) != 0)
            c->order[count++] = c->order[i];
    }
    qsort(c->order, count, sizeof *c->order, by_number);
    c->count = count;
}

/* --- the base --------------------------------------------------------------------------------- */

static bool is_whole(const struct older_entry *e)
{
    return e->part.offset == 0 && e->part.object_size == e->row.entry.size;
}

/* An object of the base that has several contents, and how much of it is wanted. */
struct pack_use {
    const struct plan_part *pack;
    uint64_t wanted;
};

static int by_object(const void *a, const void *b)
{
    const struct plan_part *pa = ((const struct pack_use *)a)->pack;
    const struct plan_part *pb = ((const struct pack_use *)b)->pack;
    int order = strcmp(pa->bucket, pb->bucket);
    return order != 0 ? order : strcmp(pa->key, pb->key);
}

static const struct older_entry *in_base(const struct placing *c, size_t file)
{
    const struct placing_file *f = &c->files[file];
    return older_find_content(c->options.base, f->size, f->sha256);
}

/* One entry for each pack; returns their number. */
static size_t unite_uses(struct pack_use *uses, size_t count)
{
    size_t to = 0;
    qsort(uses, count, sizeof *uses, by_object);
    for (size_t i = 0; i < count; i++) {
        if (to > 0 && by_object(&uses[to - 1], &uses[i]) == 0)
            uses[to - 1].wanted += uses[i].wanted;
        else
            uses[to++] = uses[i];
    }
    return to;
}

static size_t count_uses(const struct placing *c, struct pack_use *uses)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct older_entry *e = in_base(c, c->order[i]);
        if (e != NULL && !is_whole(e))
            uses[count++] =
                (struct pack_use){.pack = &e->part, .wanted = packs_room(e->row.entry.size)};
    }
    return unite_uses(uses, count);
}

/* A pack is in an image whole: one of which little is wanted is not used. */
static void take_from_base(struct placing *c)
{
    if (c->options.base == NULL)
        return;
    struct pack_use *uses = xcalloc(c->count + 1, sizeof *uses);
    const size_t count = count_uses(c, uses);
    for (size_t i = 0; i < c->file_count; i++) {
        const struct older_entry *e = in_base(c, i);
        if (e == NULL)
            continue;
        const struct pack_use key = {.pack = &e->part};
        const struct pack_use *use =
            is_whole(e) ? NULL : bsearch(&key, uses, count, sizeof *uses, by_object);
        if (is_whole(e) || (use != NULL && use->wanted * PACK_LIVE >= e->part.object_size))
            c->files[i].part = e->part;
    }
    free(uses);
}

/* --- objects ---------------------------------------------------------------------------------- */

static char *name_content(const char *folder, const uint8_t sha256[static 32])
{
    char hex[65];
    format_hex(sha256, 32, hex);
    return xprintf("%s/%.2s/%s", folder, hex, hex);
}

static void add_alone(struct placing *c, const uint32_t *number)
{
    const struct placing_file *f = &c->files[*number];
    struct placing_object *o = &c->objects[c->object_count++];
    *o = (struct placing_object){.key = name_content(BURN_UNIQUE, f->sha256),
                                 .size = f->size,
                                 .files = number,
                                 .count = 1,
                                 .checksum = {.type = CHECKSUM_SHA256}};
    memcpy(o->checksum.bytes, f->sha256, sizeof f->sha256);
}

static void add_packs(struct placing *c, const uint32_t *small, size_t count)
{
    struct packs_item *items = xcalloc(count + 1, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        const struct placing_file *f = &c->files[small[i]];
        items[i].size = f->size;
        memcpy(items[i].sha256, f->sha256, sizeof f->sha256);
    }
    packs_plan(items, count);
    for (size_t i = 0; i < count; i++) {
        struct plan_part *part = &c->files[small[i]].part;
        if (i == 0 || items[i].pack != items[i - 1].pack)
            c->objects[c->object_count++] =
                (struct placing_object){.files = &small[i], .pack = true};
        struct placing_object *o = &c->objects[c->object_count - 1];
        o->count++;
        o->size += packs_room(items[i].size);
        part->offset = items[i].offset;
    }
    free(items);
}

static void list_objects(struct placing *c)
{
    uint32_t *small = xcalloc(c->count + 1, sizeof *small);
    size_t count = 0, alone = 0;
    c->objects = xcalloc(c->count + 1, sizeof *c->objects);
    for (size_t i = 0; i < c->count; i++) {
        const uint32_t file = c->order[i];
        if (c->options.pack && c->files[file].size <= PACKS_FILE_MAX)
            small[count++] = file;
        else
            c->order[alone++] = file;
    }
    memcpy(c->order + alone, small, count * sizeof *small);
    free(small);
    for (size_t i = 0; i < alone; i++)
        add_alone(c, &c->order[i]);
    add_packs(c, c->order + alone, count);
}

/* --- the whole -------------------------------------------------------------------------------- */

struct placing *placing_new(struct placing_file *files, size_t count,
                            const struct placing_options *options)
{
    struct placing *c = xcalloc(1, sizeof *c);
    c->files = files;
    c->file_count = count;
    c->options = *options;
    c->order = xcalloc(count + 1, sizeof *c->order);
    list_contents(c);
    take_from_base(c);
    list_contents(c);
    list_objects(c);
    return c;
}

void placing_free(struct placing *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->object_count; i++)
        free(c->objects[i].key);
    free(c->objects);
    free(c->order);
    free(c);
}

struct placing_object *placing_objects(struct placing *c, size_t *count)
{
    *count = c->object_count;
    return c->objects;
}

void placing_name_pack(struct placing_object *o, const struct checksum_value *sha256)
{
    o->checksum = *sha256;
    o->key = name_content(BURN_PACKS, sha256->bytes);
}

/* Files have the place of the first file with their content. */
static void share_places(const struct placing *c)
{
    uint32_t *all = xcalloc(c->file_count + 1, sizeof *all);
    for (size_t i = 0; i < c->file_count; i++)
        all[i] = (uint32_t)i;
    qsort_r(all, c->file_count, sizeof *all, by_content, c->files);
    for (size_t i = 1; i < c->file_count; i++) {
        if (compare_files(&c->files[all[i - 1]], &c->files[all[i]]) == 0)
            c->files[all[i]].part = c->files[all[i - 1]].part;
    }
    free(all);
}

void placing_end(struct placing *c)
{
    for (size_t i = 0; i < c->object_count; i++) {
        const struct placing_object *o = &c->objects[i];
        for (size_t k = 0; k < o->count; k++) {
            struct plan_part *part = &c->files[o->files[k]].part;
            *part = (struct plan_part){.bucket = c->options.bucket,
                                       .key = o->key,
                                       .object_size = o->size,
                                       .offset = part->offset};
            if (o->pack)
                part->object_checksum = o->checksum;
        }
    }
    share_places(c);
}
