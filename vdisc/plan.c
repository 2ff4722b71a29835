#include "vdisc/plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "vdisc/plan_parts.h"
#include "vdisc/text_order.h"

/* --- rows ------------------------------------------------------------------------------------- */

struct plan *plan_new(void)
{
    struct plan *p = xcalloc(1, sizeof *p);
    p->texts = arena_new(PLAN_FIRST_BLOCK);
    return p;
}

void plan_free(struct plan *p)
{
    if (p == NULL)
        return;
    iso_layout_free(p->layout);
    iso_tree_free(p->tree);
    arena_free(p->texts);
    free(p->entries);
    free(p->layers);
    free(p->files);
    free(p->first);
    free(p->parts);
    free(p->objects);
    free(p->unknown);
    free(p->fresh);
    free(p);
}

static void *grown(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room * 2 + 64;
    return xrealloc(array, *room * size);
}

static const char *copy(struct plan *p, const char *text)
{
    return text != NULL ? arena_strdup(p->texts, text) : NULL;
}

static void add_file(struct plan *p, const struct burn_row *row, const struct plan_part *part,
                     bool older)
{
    p->files = grown(p->files, p->file_count, &p->file_room, sizeof *p->files);
    struct named *f = &p->files[p->file_count++];
    *f = (struct named){.part = *part,
                        .entry = (uint32_t)p->count,
                        .line = row->line,
                        .checksum = row->checksum,
                        .older = older};
    f->part.bucket = copy(p, part->bucket);
    f->part.key = copy(p, part->key);
    f->part.etag = copy(p, part->etag);
}

void plan_add(struct plan *p, enum plan_layer layer, const struct burn_row *row,
              const struct plan_part *part)
{
    p->entries = grown(p->entries, p->count, &p->room, sizeof *p->entries);
    p->layers = grown(p->layers, p->count, &p->layer_room, sizeof *p->layers);
    struct iso_entry *e = &p->entries[p->count];
    *e = row->entry;
    e->path = copy(p, row->entry.path);
    e->target = copy(p, row->entry.target);
    p->layers[p->count] =
        (struct layer_entry){.layer = (uint8_t)layer, .directory = e->kind == ISO_DIRECTORY};
    if (e->kind == ISO_FILE)
        add_file(p, row, part, layer == PLAN_OLDER);
    p->count++;
}

void plan_remove(struct plan *p, const char *path)
{
    const struct burn_row row = {.entry = {.path = path, .kind = ISO_LINK, .target = ""}};
    plan_add(p, PLAN_REMOVED, &row, NULL);
    p->layers[p->count - 1].removal = true;
    p->removals++;
}

uint64_t plan_rows(const struct plan *p)
{
    return p->count - p->removals;
}

/* --- layers ----------------------------------------------------------------------------------- */

static bool has_layers(const struct plan *p)
{
    for (size_t i = 1; i < p->count; i++) {
        if (p->layers[i].layer != p->layers[0].layer)
            return true;
    }
    return p->removals > 0;
}

/* What is not kept leaves; the files' numbers of entries follow. */
static void drop_entries(struct plan *p, const bool *keep)
{
    size_t to = 0, file_to = 0;
    uint32_t *number = xcalloc(p->count + 1, sizeof *number);
    for (size_t i = 0; i < p->count; i++) {
        number[i] = (uint32_t)to;
        if (keep[i])
            p->entries[to++] = p->entries[i];
    }
    for (size_t i = 0; i < p->file_count; i++) {
        struct named f = p->files[i];
        if (!keep[f.entry])
            continue;
        f.entry = number[f.entry];
        p->files[file_to++] = f;
    }
    p->count = to;
    p->file_count = file_to;
    p->removals = 0;
    free(number);
}

static int apply_layers(struct plan *p, enum iso_names names, struct error *err)
{
    int rc = 0;
    if (!has_layers(p))
        return 0;
    bool *keep = xcalloc(p->count + 1, sizeof *keep);
    for (size_t i = 0; rc == 0 && i < p->count; i++) {
        const struct iso_entry *e = &p->entries[i];
        rc = iso_path_clean(e->path, p->layers[i].removal ? ISO_NAMES_ANY : names, p->texts,
                            &p->layers[i].path, err);
        if (rc != 0 && e->line > 0)
            error_wrap(err, "line %llu", (unsigned long long)e->line);
    }
    const size_t idle = rc == 0 ? layers_apply(p->layers, p->count, keep) : SIZE_MAX;
    if (idle != SIZE_MAX)
        rc = error_set(err, E_NOT_FOUND, "remove '%.200s': the older image has no such path",
                       p->entries[idle].path);
    if (rc == 0)
        drop_entries(p, keep);
    free(keep);
    return rc;
}

/* --- equal contents --------------------------------------------------------------------------- */

static int compare_objects(const struct plan_part *a, const struct plan_part *b)
{
    int order = strcmp(a->bucket, b->bucket);
    return order != 0 ? order : strcmp(a->key, b->key);
}

static int compare_parts(const struct named *a, const struct named *b)
{
    int order = compare_objects(&a->part, &b->part);
    return order != 0 ? order
                      : (a->part.offset > b->part.offset) - (a->part.offset < b->part.offset);
}

static int compare_files(const void *files, uint32_t a, uint32_t b)
{
    const struct named *fa = (const struct named *)files + a, *fb = (const struct named *)files + b;
    int order = compare_parts(fa, fb);
    return order != 0 ? order : (fa->line > fb->line) - (fa->line < fb->line);
}

static const char *key_of(const void *files, uint32_t i)
{
    return ((const struct named *)files)[i].part.key;
}

static bool have_one_bucket(const struct plan *p)
{
    for (size_t i = 1; i < p->file_count; i++) {
        if (strcmp(p->files[i].part.bucket, p->files[0].part.bucket) != 0)
            return false;
    }
    return true;
}

static int contradict(const struct named *a, const struct named *b, const char *what,
                      struct error *err)
{
    return error_set(
        err, E_INVALID,
        "lines %llu and %llu give object '%s/%s' different %s (line 0: an older image)",
        (unsigned long long)a->line, (unsigned long long)b->line, a->part.bucket, a->part.key,
        what);
}

/* Rows that name one object agree, and each knows what one of them knows. */
static int agree(struct named *a, struct named *b, struct error *err)
{
    if (a->part.object_size != b->part.object_size)
        return contradict(a, b, "sizes", err);
    if (b->part.etag == NULL)
        b->part.etag = a->part.etag;
    if (b->part.object_checksum.type == CHECKSUM_NONE)
        b->part.object_checksum = a->part.object_checksum;
    if (a->part.etag != NULL && strcmp(a->part.etag, b->part.etag) != 0)
        return contradict(a, b, "tags", err);
    return 0;
}

/* Those of one part of it, too. */
static int agree_part(const struct plan *p, struct named *a, struct named *b, struct error *err)
{
    if (p->entries[a->entry].size != p->entries[b->entry].size)
        return contradict(a, b, "sizes", err);
    if (b->checksum.type == CHECKSUM_NONE)
        b->checksum = a->checksum;
    if (a->checksum.type == b->checksum.type && !checksum_equal(&a->checksum, &b->checksum))
        return contradict(a, b, "checksums", err);
    return 0;
}

/* The files of one object are neighbours now; what the last of them knows, the first ones get. */
static int unite_rows(struct plan *p, struct error *err)
{
    int rc = 0;
    for (size_t i = 1; rc == 0 && i < p->file_count; i++) {
        struct named *a = &p->files[i - 1], *b = &p->files[i];
        if (compare_objects(&a->part, &b->part) == 0)
            rc = agree(a, b, err);
        if (rc == 0 && compare_parts(a, b) == 0)
            rc = agree_part(p, a, b, err);
    }
    for (size_t i = p->file_count; rc == 0 && i-- > 1;) {
        struct named *a = &p->files[i - 1];
        const struct named *b = &p->files[i];
        if (compare_objects(&a->part, &b->part) != 0)
            continue;
        a->part.etag = b->part.etag;
        a->part.object_checksum = b->part.object_checksum;
        if (compare_parts(a, b) == 0)
            a->checksum = b->checksum;
    }
    return rc;
}

/* Neighbours in this order are equal or not: empty files first, then by SHA-256 and size, then by
 * name. */
static int compare_contents(const void *context, uint32_t a, uint32_t b)
{
    const struct plan *p = context;
    const struct named *fa = &p->files[a], *fb = &p->files[b];
    const uint64_t sa = p->entries[fa->entry].size, sb = p->entries[fb->entry].size;
    const bool ka = fa->checksum.type == CHECKSUM_SHA256, kb = fb->checksum.type == CHECKSUM_SHA256;
    if ((sa == 0) != (sb == 0))
        return sa == 0 ? -1 : 1;
    if (sa != 0 && ka != kb)
        return ka ? -1 : 1;
    int order = sa != 0 && ka ? memcmp(fa->checksum.bytes, fb->checksum.bytes, CHECKSUM_MAX) : 0;
    if (order == 0 && sa != sb)
        order = sa < sb ? -1 : 1;
    if (order == 0)
        order = compare_parts(fa, fb);
    return order != 0 ? order : (fa->line > fb->line) - (fa->line < fb->line);
}

static bool same_content(const struct plan *p, const struct named *a, const struct named *b)
{
    const uint64_t size = p->entries[a->entry].size;
    if (size != p->entries[b->entry].size)
        return false;
    return size == 0 || compare_parts(a, b) == 0 ||
           (a->checksum.type == CHECKSUM_SHA256 && b->checksum.type == CHECKSUM_SHA256 &&
            checksum_equal(&a->checksum, &b->checksum));
}

/* Gives each file its content number; first[n]: the file that stands for content n. */
static void number_contents(struct plan *p)
{
    const struct text_order by_content = {.compare = compare_contents, .context = p};
    uint32_t *order = text_order_make(&by_content, (uint32_t)p->file_count);
    p->first = xcalloc(p->file_count + 1, sizeof *p->first);
    for (size_t i = 0; i < p->file_count; i++) {
        const struct named *f = &p->files[order[i]];
        if (i == 0 || !same_content(p, &p->files[p->first[p->content_count - 1]], f))
            p->first[p->content_count++] = order[i];
        p->entries[f->entry].content = p->content_count - 1;
    }
    free(order);
}

const struct named *plan_stands_for(const struct plan *p, uint32_t content)
{
    return &p->files[p->first[content]];
}

bool plan_is_whole(const struct plan *p, const struct named *f)
{
    return f->part.offset == 0 && f->part.object_size == p->entries[f->entry].size;
}

/* Files are in the order of their objects, so are extents.  sizes, owner: of each extent, its
 * object's size and a file of it. */
static uint32_t number_extents(struct plan *p, uint64_t *sizes, uint32_t *owner)
{
    uint32_t count = 0;
    uint32_t *content_of = xcalloc(p->file_count + 1, sizeof *content_of);
    p->parts = xcalloc((size_t)p->content_count + 1, sizeof *p->parts);
    for (uint32_t c = 0; c < p->content_count; c++)
        content_of[p->first[c]] = c + 1;
    for (uint32_t i = 0; i < p->file_count; i++) {
        const struct plan_part *part = &p->files[i].part;
        if (content_of[i] == 0)
            continue;
        if (count == 0 || compare_objects(&p->files[owner[count - 1]].part, part) != 0) {
            sizes[count] = part->object_size;
            owner[count++] = i;
        }
        p->parts[content_of[i] - 1] =
            (struct iso_part){.extent = count - 1, .block = (uint32_t)(part->offset / ISO_BLOCK)};
    }
    free(content_of);
    return count;
}

static void list_objects(struct plan *p, const uint32_t *owner)
{
    const struct iso_layout *l = p->layout;
    p->object_count = l->extent_count;
    p->objects = xcalloc((size_t)p->object_count + 1, sizeof *p->objects);
    for (uint32_t i = 0; i < p->object_count; i++) {
        const struct named *f = &p->files[owner[l->extent_order[i]]];
        p->objects[i] = (struct plan_object){
            .bucket = f->part.bucket,
            .key = f->part.key,
            .size = f->part.object_size,
            .checksum = plan_is_whole(p, f) ? f->checksum : f->part.object_checksum,
            .wanted_etag = f->part.etag,
            .line = f->line};
    }
}

static int lay_out(struct plan *p, const struct plan_options *o, struct error *err)
{
    const struct iso_tree_options tree = {
        .names = o->names, .date_s = o->date_s, .entries_max = o->entries_max};
    uint64_t *sizes = xcalloc(p->file_count + 1, sizeof *sizes);
    uint32_t *owner = xcalloc(p->file_count + 1, sizeof *owner);
    const uint32_t extents = number_extents(p, sizes, owner);
    const struct iso_stored stored = {
        .contents = p->content_count, .parts = p->parts, .extents = extents, .sizes = sizes};
    int rc = iso_tree_new(p->entries, p->count, &tree, &p->tree, err);
    if (rc == 0)
        rc = iso_layout_new(p->tree, &stored, o->joliet, &p->layout, err);
    if (rc == 0)
        list_objects(p, owner);
    free(sizes);
    free(owner);
    return rc;
}

/* Place i gets the file of place order[i], without a second array.  `order` is used up. */
static void move_files(struct named *files, uint32_t *order, size_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (order[i] == i)
            continue;
        const struct named first = files[i];
        uint32_t to = i;
        for (uint32_t from; (from = order[to]) != i; to = from) {
            files[to] = files[from];
            order[to] = to;
        }
        files[to] = first;
        order[to] = to;
    }
}

int plan_sort_files(struct plan *p, struct error *err)
{
    const struct text_order by_object = {
        .text = have_one_bucket(p) ? key_of : NULL, .compare = compare_files, .context = p->files};
    uint32_t *order = text_order_make(&by_object, (uint32_t)p->file_count);
    move_files(p->files, order, p->file_count);
    free(order);
    return unite_rows(p, err);
}

int plan_put_in_order(struct plan *p, const struct plan_options *o, struct error *err)
{
    if (p->ordered)
        return 0;
    p->ordered = true;
    if (p->count >= UINT32_MAX)
        return error_set(err, E_IMAGE_TOO_LARGE, "the list has more than 2^32 rows");
    int rc = apply_layers(p, o->names, err);
    return rc == 0 ? plan_sort_files(p, err) : rc;
}

static bool is_unknown(const struct plan *p, const struct named *f)
{
    return plan_is_whole(p, f) && f->checksum.type != CHECKSUM_SHA256;
}

int plan_unknown(struct plan *p, const struct plan_options *o, struct plan_object **objects,
                 uint32_t *count, struct error *err)
{
    int rc = plan_put_in_order(p, o, err);
    if (rc != 0)
        return rc;
    free(p->unknown);
    p->unknown = xcalloc(p->file_count + 1, sizeof *p->unknown);
    p->unknown_count = 0;
    for (size_t i = 0; i < p->file_count; i++) {
        const struct named *f = &p->files[i];
        const bool again = i > 0 && compare_parts(&p->files[i - 1], f) == 0;
        if (!again && is_unknown(p, f))
            p->unknown[p->unknown_count++] = (struct plan_object){.bucket = f->part.bucket,
                                                                  .key = f->part.key,
                                                                  .size = f->part.object_size,
                                                                  .checksum = f->checksum,
                                                                  .wanted_etag = f->part.etag,
                                                                  .line = f->line};
    }
    *objects = p->unknown;
    *count = p->unknown_count;
    return 0;
}

/* Both are in the order of objects. */
void plan_take_known(struct plan *p)
{
    size_t i = 0;
    for (uint32_t n = 0; n < p->unknown_count; n++) {
        const struct plan_object *o = &p->unknown[n];
        const struct plan_part key = {.bucket = o->bucket, .key = o->key};
        const char *etag = copy(p, o->etag);
        while (compare_objects(&p->files[i].part, &key) < 0)
            i++;
        for (; i < p->file_count && compare_objects(&p->files[i].part, &key) == 0; i++) {
            struct named *f = &p->files[i];
            f->part.etag = etag != NULL ? etag : f->part.etag;
            f->checksum = plan_is_whole(p, f) ? o->checksum : f->checksum;
        }
    }
    p->unknown_count = 0;
}

int plan_close(struct plan *p, const struct plan_options *o, struct error *err)
{
    p->table_max = o->table_max;
    int rc = plan_put_in_order(p, o, err);
    if (rc != 0)
        return rc;
    plan_take_known(p);
    number_contents(p);
    return lay_out(p, o, err);
}

const struct iso_layout *plan_layout(const struct plan *p)
{
    return p->layout;
}

struct plan_object *plan_objects(struct plan *p, uint32_t *count)
{
    *count = p->object_count;
    return p->objects;
}
