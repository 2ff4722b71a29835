/* A directory of this machine becomes rows.
 *
 *     walk → SHA-256 of each file that the base does not know → where each content is:
 *         an object of the base, an object of its own (.dfc-unique/), or a part of a pack
 *
 * Nothing is stored before the plan is whole: burn_send() is called for the objects that it names
 * and the store does not have. */
#include <stdlib.h>
#include <string.h>

#include "api/failure.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "common/parse.h"
#include "vdisc/client/burn_parts.h"
#include "vdisc/client/each.h"
#include "vdisc/packs.h"

#define PIECE (256u << 10)
#define PACK_LIVE 2 /* a pack of the base is used if at least one of so many bytes is wanted */

struct packing {
    struct burn *b;
    struct local_files *tree;
    struct plan_part *parts; /* of each file; without a key it has no place yet */
    uint32_t *order;         /* files without a place, by content, then by number */
    size_t count;
};

/* --- contents --------------------------------------------------------------------------------- */

/* The base has a file of this path, size and time. */
static void know_by_base(const struct burn *b, struct local_file *f)
{
    const struct older_entry *e = b->base != NULL ? older_find(b->base, f->name) : NULL;
    if (e == NULL || e->row.entry.kind != ISO_FILE || e->row.entry.size != f->size ||
        e->row.entry.mtime_s != f->mtime_s || e->row.checksum.type != CHECKSUM_SHA256)
        return;
    memcpy(f->sha256, e->row.checksum.bytes, sizeof f->sha256);
    f->known = true;
}

static int digest_one(void *context, uint32_t number, struct dfc_error *err)
{
    struct burn *b = context;
    struct local_file *f = &b->sendings.tree.files[number];
    if (f->kind != ISO_FILE)
        return DFC_OK;
    know_by_base(b, f);
    return f->known ? DFC_OK : local_digest(f, err);
}

static int compare_files(const struct local_file *a, const struct local_file *b)
{
    int order = memcmp(a->sha256, b->sha256, sizeof a->sha256);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static int by_content(const void *a, const void *b, void *context)
{
    const struct local_file *files = context;
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
static void list_contents(struct packing *p)
{
    size_t all = 0, count = 0;
    for (uint32_t i = 0; i < p->tree->count; i++) {
        if (p->tree->files[i].kind == ISO_FILE && p->parts[i].key == NULL)
            p->order[all++] = i;
    }
    qsort_r(p->order, all, sizeof *p->order, by_content, p->tree->files);
    for (size_t i = 0; i < all; i++) {
        if (count == 0 ||
            compare_files(&p->tree->files[p->order[count - 1]], &p->tree->files[p->order[i]]) != 0)
            p->order[count++] = p->order[i];
    }
    if (count > 0)
        qsort(p->order, count, sizeof *p->order, by_number);
    p->count = count;
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

static const struct older_entry *in_base(const struct packing *p, uint32_t file)
{
    const struct local_file *f = &p->tree->files[file];
    return older_find_content(p->b->base, f->size, f->sha256);
}

/* One entry for each pack; returns their number. */
static size_t unite_uses(struct pack_use *uses, size_t count)
{
    size_t to = 0;
    if (count > 0)
        qsort(uses, count, sizeof *uses, by_object);
    for (size_t i = 0; i < count; i++) {
        if (to > 0 && by_object(&uses[to - 1], &uses[i]) == 0)
            uses[to - 1].wanted += uses[i].wanted;
        else
            uses[to++] = uses[i];
    }
    return to;
}

static size_t count_uses(const struct packing *p, struct pack_use *uses)
{
    size_t count = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct older_entry *e = in_base(p, p->order[i]);
        if (e != NULL && !is_whole(e))
            uses[count++] =
                (struct pack_use){.pack = &e->part, .wanted = packs_room(e->row.entry.size)};
    }
    return unite_uses(uses, count);
}

/* A pack is in an image whole: one of which little is wanted is not used. */
static void take_from_base(struct packing *p)
{
    if (p->b->base == NULL)
        return;
    struct pack_use *uses = xcalloc(p->count + 1, sizeof *uses);
    const size_t count = count_uses(p, uses);
    for (uint32_t i = 0; i < p->tree->count; i++) {
        const struct older_entry *e = p->tree->files[i].kind == ISO_FILE ? in_base(p, i) : NULL;
        if (e == NULL)
            continue;
        const struct pack_use key = {.pack = &e->part};
        const struct pack_use *use =
            is_whole(e) ? NULL : bsearch(&key, uses, count, sizeof *uses, by_object);
        if (is_whole(e) || (use != NULL && use->wanted * PACK_LIVE >= e->part.object_size))
            p->parts[i] = e->part;
    }
    free(uses);
}

/* --- objects ---------------------------------------------------------------------------------- */

static bool is_small(const struct packing *p, uint32_t file)
{
    return p->b->options->pack && p->tree->files[file].size <= PACKS_FILE_MAX;
}

static struct sending *add_sending(struct sendings *s, const struct local_file **files,
                                   size_t count, bool padded)
{
    struct sending *to = &s->list[s->count++];
    struct local_body body;
    local_body_init(&body, files, count, padded);
    *to = (struct sending){
        .size = local_body_size(&body), .files = files, .count = count, .padded = padded};
    return to;
}

static char *name_content(const char *folder, const uint8_t sha256[static 32])
{
    char hex[65];
    format_hex(sha256, 32, hex);
    return xprintf("%s/%.2s/%s", folder, hex, hex);
}

static int digest_pack(const struct sending *s, struct checksum_value *out, struct dfc_error *err)
{
    struct local_body body;
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_SHA256);
    _cleanup_free_ char *piece = xmalloc(PIECE);
    ptrdiff_t n;
    local_body_init(&body, s->files, s->count, s->padded);
    while ((n = local_body_read(&body, piece, PIECE)) > 0)
        checksum_update(sum, piece, (size_t)n);
    local_body_done(&body);
    checksum_final(sum, out);
    if (n < 0 && err != NULL)
        *err = body.failure;
    return n < 0 ? body.failure.result : DFC_OK;
}

static void place_alone(struct packing *p, uint32_t file, const struct local_file **slot)
{
    const struct local_file *f = &p->tree->files[file];
    *slot = f;
    struct sending *s = add_sending(&p->b->sendings, slot, 1, false);
    s->key = name_content(BURN_UNIQUE, f->sha256);
    p->parts[file] =
        (struct plan_part){.bucket = p->b->options->bucket, .key = s->key, .object_size = f->size};
}

/* The contents first … end - 1 of `small` are one pack. */
static int place_pack(struct packing *p, const uint32_t *small, const struct packs_item *items,
                      size_t count, const struct local_file **slots, struct dfc_error *err)
{
    struct checksum_value sum;
    for (size_t i = 0; i < count; i++)
        slots[i] = &p->tree->files[small[i]];
    struct sending *s = add_sending(&p->b->sendings, slots, count, true);
    int rc = digest_pack(s, &sum, err);
    if (rc != DFC_OK)
        return rc;
    s->key = name_content(BURN_PACKS, sum.bytes);
    for (size_t i = 0; i < count; i++)
        p->parts[small[i]] = (struct plan_part){.bucket = p->b->options->bucket,
                                                .key = s->key,
                                                .object_size = s->size,
                                                .offset = items[i].offset,
                                                .object_checksum = sum};
    return DFC_OK;
}

static int place_small(struct packing *p, uint32_t *small, size_t count,
                       const struct local_file **slots, struct dfc_error *err)
{
    struct packs_item *items = xcalloc(count + 1, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        const struct local_file *f = &p->tree->files[small[i]];
        items[i].size = f->size;
        memcpy(items[i].sha256, f->sha256, sizeof f->sha256);
    }
    packs_plan(items, count);
    int rc = DFC_OK;
    for (size_t i = 0, end; rc == DFC_OK && i < count; i = end) {
        for (end = i + 1; end < count && items[end].pack == items[i].pack; end++) {
        }
        rc = place_pack(p, small + i, items + i, end - i, slots + i, err);
    }
    free(items);
    return rc;
}

static int place_new(struct packing *p, struct dfc_error *err)
{
    struct sendings *s = &p->b->sendings;
    size_t small = 0, used = 0;
    s->order = xcalloc(p->count + 1, sizeof *s->order);
    s->list = xcalloc(p->count + 1, sizeof *s->list);
    for (size_t i = 0; i < p->count; i++) {
        const uint32_t file = p->order[i];
        if (is_small(p, file))
            p->order[small++] = file;
        else
            place_alone(p, file, &s->order[used++]);
    }
    return place_small(p, p->order, small, s->order + used, err);
}

/* Files have the place of the first file with their content. */
static void share_places(struct packing *p)
{
    uint32_t *all = xcalloc(p->tree->count + 1, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < p->tree->count; i++) {
        if (p->tree->files[i].kind == ISO_FILE)
            all[count++] = i;
    }
    qsort_r(all, count, sizeof *all, by_content, p->tree->files);
    for (size_t i = 1; i < count; i++) {
        if (compare_files(&p->tree->files[all[i - 1]], &p->tree->files[all[i]]) == 0)
            p->parts[all[i]] = p->parts[all[i - 1]];
    }
    free(all);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct sending *)a)->key, ((const struct sending *)b)->key);
}

static void add_rows(const struct packing *p)
{
    for (size_t i = 0; i < p->tree->count; i++) {
        const struct local_file *f = &p->tree->files[i];
        struct burn_row row = {.entry = {.path = f->name,
                                         .kind = f->kind,
                                         .size = f->size,
                                         .target = f->target,
                                         .mtime_s = f->mtime_s,
                                         .mode = f->mode}};
        if (f->kind == ISO_FILE) {
            row.checksum.type = CHECKSUM_SHA256;
            memcpy(row.checksum.bytes, f->sha256, sizeof f->sha256);
        }
        plan_add(p->b->plan, PLAN_NEW, &row, f->kind == ISO_FILE ? &p->parts[i] : NULL);
    }
}

int burn_tree(struct burn *b, const char *directory, struct dfc_error *err)
{
    struct local_files *tree = &b->sendings.tree;
    int rc = local_walk(directory, tree, err);
    if (rc == DFC_OK && tree->count >= UINT32_MAX)
        rc = failure_set(err, DFC_INVALID, E_IMAGE_TOO_LARGE, "'%s' has 2^32 entries", directory);
    if (rc == DFC_OK)
        rc = each_number((uint32_t)tree->count, b->options->threads, digest_one, b, err);
    if (rc != DFC_OK)
        return rc;
    struct packing p = {.b = b, .tree = tree};
    p.parts = xcalloc(tree->count + 1, sizeof *p.parts);
    p.order = xcalloc(tree->count + 1, sizeof *p.order);
    list_contents(&p);
    take_from_base(&p);
    list_contents(&p);
    rc = place_new(&p, err);
    if (rc == DFC_OK) {
        share_places(&p);
        add_rows(&p);
        qsort(b->sendings.list, b->sendings.count, sizeof *b->sendings.list, by_key);
    }
    free(p.parts);
    free(p.order);
    return rc;
}

/* --- sending ---------------------------------------------------------------------------------- */

const struct sending *burn_sending(const struct burn *b, const struct plan_object *o)
{
    const struct sending wanted = {.key = (char *)o->key};
    if (b->sendings.count == 0 || strcmp(o->bucket, b->options->bucket) != 0)
        return NULL;
    return bsearch(&wanted, b->sendings.list, b->sendings.count, sizeof wanted, by_key);
}

int burn_send(struct burn *b, const struct sending *s, struct dfc_object_info **info,
              struct dfc_error *err)
{
    const struct dfc_put_options absent = {.if_absent = true};
    struct local_body body;
    const struct dfc_source source = {.read = local_body_read,
                                      .rewind = local_body_rewind,
                                      .context = &body,
                                      .size = (int64_t)s->size};
    local_body_init(&body, s->files, s->count, s->padded);
    int rc = dfc_put_source(b->client, b->options->bucket, s->key, &source, &absent, info, err);
    local_body_done(&body);
    if (rc != DFC_OK && body.failure.result != DFC_OK) {
        *err = body.failure;
        return err->result;
    }
    if (rc == DFC_PRECONDITION)
        return dfc_head(b->client, b->options->bucket, s->key, info, err);
    if (rc == DFC_OK) {
        atomic_fetch_add(&b->sent_objects, 1);
        atomic_fetch_add(&b->sent_bytes, s->size);
    }
    return rc;
}

void burn_sendings_done(struct sendings *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->list[i].key);
    free(s->list);
    free(s->order);
    local_files_done(&s->tree);
}
