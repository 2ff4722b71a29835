/* A directory of this machine becomes rows.
 *
 *     walk → SHA-256 of each file that the base does not know → where each content is:
 *         an object of the base, an object of its own, or a part of a pack (vdisc/placing.h)
 *
 * Nothing is stored before the plan is whole: burn_send() is called for the objects that it names
 * and the store does not have. */
#include <stdlib.h>
#include <string.h>

#include "api/failure.h"
#include "common/checksum.h"
#include "common/mem.h"
#include "vdisc/client/burn_parts.h"
#include "vdisc/client/each.h"

#define PIECE (256u << 10)

/* --- files ------------------------------------------------------------------------------------ */

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

/* Of the regular files of the tree, in its order; *count of them. */
static struct placing_file *files_of(const struct local_files *tree, size_t *count)
{
    struct placing_file *files = xcalloc(tree->count + 1, sizeof *files);
    *count = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct local_file *f = &tree->files[i];
        if (f->kind != ISO_FILE)
            continue;
        files[*count].size = f->size;
        memcpy(files[(*count)++].sha256, f->sha256, sizeof f->sha256);
    }
    return files;
}

/* --- objects ---------------------------------------------------------------------------------- */

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

/* The local files of each object. */
static void list_sendings(struct sendings *s)
{
    size_t used = 0, number = 0;
    const struct local_file **regular = xcalloc(s->tree.count + 1, sizeof *regular);
    struct placing_object *objects = placing_objects(s->contents, &s->count);
    for (size_t i = 0; i < s->tree.count; i++) {
        if (s->tree.files[i].kind == ISO_FILE)
            regular[number++] = &s->tree.files[i];
    }
    s->order = xcalloc(number + 1, sizeof *s->order);
    s->list = xcalloc(s->count + 1, sizeof *s->list);
    for (size_t i = 0; i < s->count; i++) {
        const struct placing_object *o = &objects[i];
        s->list[i] = (struct sending){
            .size = o->size, .files = &s->order[used], .count = o->count, .padded = o->pack};
        for (size_t k = 0; k < o->count; k++)
            s->order[used++] = regular[o->files[k]];
    }
    free(regular);
}

static int name_objects(struct sendings *s, struct dfc_error *err)
{
    size_t count;
    struct placing_object *objects = placing_objects(s->contents, &count);
    for (size_t i = 0; i < count; i++) {
        struct checksum_value sum;
        int rc = objects[i].pack ? digest_pack(&s->list[i], &sum, err) : DFC_OK;
        if (rc != DFC_OK)
            return rc;
        if (objects[i].pack)
            placing_name_pack(&objects[i], &sum);
        s->list[i].key = objects[i].key;
    }
    return DFC_OK;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct sending *)a)->key, ((const struct sending *)b)->key);
}

static void add_rows(struct burn *b, const struct placing_file *file)
{
    const struct local_files *tree = &b->sendings.tree;
    for (size_t i = 0; i < tree->count; i++) {
        const struct local_file *f = &tree->files[i];
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
        plan_add(b->plan, PLAN_NEW, &row, f->kind == ISO_FILE ? &file++->part : NULL);
    }
}

int burn_tree(struct burn *b, const char *directory, struct dfc_error *err)
{
    struct sendings *s = &b->sendings;
    const struct placing_options options = {
        .bucket = b->options->bucket, .base = b->base, .pack = b->options->pack};
    size_t count;
    int rc = local_walk(directory, &s->tree, err);
    if (rc == DFC_OK && s->tree.count >= UINT32_MAX)
        rc = failure_set(err, DFC_INVALID, E_IMAGE_TOO_LARGE, "'%s' has 2^32 entries", directory);
    if (rc == DFC_OK)
        rc = each_number((uint32_t)s->tree.count, b->options->threads, digest_one, b, err);
    if (rc != DFC_OK)
        return rc;
    struct placing_file *files = files_of(&s->tree, &count);
    s->contents = placing_new(files, count, &options);
    list_sendings(s);
    rc = name_objects(s, err);
    if (rc == DFC_OK) {
        placing_end(s->contents);
        add_rows(b, files);
        qsort(s->list, s->count, sizeof *s->list, by_key);
    }
    free(files);
    return rc;
}

/* --- sending ---------------------------------------------------------------------------------- */

const struct sending *burn_sending(const struct burn *b, const struct plan_object *o)
{
    const struct sending wanted = {.key = o->key};
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
    free(s->list);
    placing_free(s->contents);
    free(s->order);
    local_files_done(&s->tree);
}
