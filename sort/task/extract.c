#include "sort/task/extract.h"

#include <pthread.h>
#include <stdarg.h>

#include "common/fault.h"
#include "common/mem.h"
#include "io/pool.h"
#include "sort/shard/content.h"
#include "sort/shard/format.h"
#include "sort/shard/group.h"
#include "sort/shard/tar.h"
#include "sort/task/extract_objects.h"

/* Input shards that are not there: the first is named, all are counted. */
struct missing {
    char *first;
    uint64_t count;
};

struct extract {
    struct sort_context *c;
    uint64_t shards; /* that this target should have */
    struct missing missing;
    unsigned since;
    struct catalog *catalog;
    struct contents *contents; /* or NULL */
    struct rowset *rows;
    pthread_mutex_t lock;  /* of rows */
    const uint32_t *fresh; /* numbers of the shards that are to be read */
};

static void note_missing(struct extract *x, const struct sort_shard_info *info)
{
    if (x->missing.count++ == 0)
        x->missing.first = xstrdup(info->name);
    progress_add(&x->c->progress.shards_missing, 1);
    if (x->c->spec->missing_shards == SORT_WARN)
        notes_add(&x->c->notes, "%s '%s' does not exist",
                  x->c->spec->plain_objects ? "object" : "shard", info->name);
}

static int check_missing(const struct extract *x, struct error *err)
{
    const struct sort_spec *spec = x->c->spec;
    if (spec->missing_shards != SORT_ABORT || x->missing.count == 0)
        return 0;
    return error_set(err, E_SHARD_MISSING,
                     "shard '%s/%s' does not exist (%llu of this target's %llu shards are missing)",
                     spec->input_bucket, x->missing.first, (unsigned long long)x->missing.count,
                     (unsigned long long)x->shards);
}

static int each_shard(void *arg, const struct sort_shard_info *info, struct error *err)
{
    struct extract *x = arg;
    int rc = links_check(x->c->links, err);
    x->shards++;
    if (rc != 0 || info->without < x->since)
        return rc;
    if (info->missing) {
        note_missing(x, info);
        return 0;
    }
    if (catalog_count(x->catalog) == SORT_SHARDS_MAX)
        return error_set(err, E_SPEC, "the request has more than %u input shards", SORT_SHARDS_MAX);
    if (x->c->spec->plain_objects)
        catalog_add_object(x->catalog, info);
    else
        catalog_add(x->catalog, info->name, info->place, info->size);
    return 0;
}

/* --- members ---------------------------------------------------------------------------------- */

/* One shard on its way from members to rows. */
struct scanning {
    struct extract *x;
    const char *shard;
    struct group *group;
};

static int shown(size_t len)
{
    return (int)(len < 256 ? len : 256);
}

static void note_replaced(void *ctx, const char *path, size_t len)
{
    struct scanning *s = ctx;
    struct sort_context *c = s->x->c;
    if (c->spec->duplicated_records == SORT_WARN)
        notes_add(&c->notes, "shard '%s': '%.*s' comes twice; the later one is kept", s->shard,
                  shown(len), path);
}

static int check_stopped(void *ctx, struct error *err)
{
    const struct scanning *s = ctx;
    return links_check(s->x->c->links, err);
}

static int add_member(struct scanning *s, const struct tar_member *m, struct error *err)
{
    if (m->type != '5')
        return group_add(s->group, m, err);
    notes_add(&s->x->c->notes, "shard '%s': directory '%.*s' is left out", s->shard,
              shown(m->path_len), m->path);
    return 0;
}

/* Where a shard's tar is. */
struct tar_place {
    int fd;
    uint64_t at, size;
};

static int scan_members(struct scanning *s, const struct tar_place *tar, struct error *err)
{
    _cleanup_(tar_scan_freep)
    struct tar_scan *scan = tar_scan_new(tar->fd, tar->size, s->shard);
    tar_scan_base(scan, tar->at);
    tar_scan_check(scan, check_stopped, s);
    struct tar_member m;
    int rc;
    while ((rc = tar_scan_next(scan, &m, err)) > 0) {
        rc = add_member(s, &m, err);
        if (rc == 0)
            rc = check_stopped(s, err);
        if (rc != 0)
            return rc;
    }
    return rc != 0 ? rc : group_finish(s->group, err);
}

/* --- records ---------------------------------------------------------------------------------- */

#define BATCH 1024 /* rows that are added under one lock */

/* A shard's records on their way into the catalog and the rows. */
struct drain {
    struct extract *x;
    uint32_t shard;
    const struct tar_place *tar;
    struct group *group;
    struct catalog_writer writer;
    uint32_t position; /* of the next record */
    uint64_t bytes;
    uint64_t records; /* that became rows */
    struct sort_row rows[BATCH];
    size_t names_at[BATCH];
    struct buf names;     /* of the rows */
    size_t count;         /* of rows */
    uint64_t keys[BATCH]; /* of a shuffle */
    struct content_key content;
    struct keymap_search *map; /* or NULL */
    struct error lack;         /* the first record without a key, where that ends the job */
    uint64_t lacking;          /* such records */
};

/* The whole shard is looked at, so that its user learns how many records lack their key. */
static void note_lacking(struct drain *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void note_lacking(struct drain *d, const char *fmt, ...)
{
    if (d->lacking++ > 0)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->lack.message, sizeof d->lack.message, fmt, ap);
    va_end(ap);
}

static int check_lacking(const struct drain *d, struct error *err)
{
    if (d->lacking == 0)
        return 0;
    return error_set(err, E_KEY_MISSING, "%s (%llu of the shard's %llu records)", d->lack.message,
                     (unsigned long long)d->lacking, (unsigned long long)group_count(d->group));
}

/* *left_out: the request puts up with a record that has no key, without the record. */
static int record_content(struct drain *d, const struct group_record *r, bool *left_out,
                          struct error *err)
{
    struct sort_context *c = d->x->c;
    int rc = content_read(c->spec, d->tar->fd, d->tar->at, r, &d->content, err);
    if (rc != 0 || d->content.state == CONTENT_FOUND)
        return rc;
    const char *shard = catalog_shard(d->x->catalog, d->shard)->name;
    bool missing = d->content.state == CONTENT_MISSING;
    const char *what = missing ? "has no member" : "has no key of the type in";
    *left_out = true;
    if (c->spec->missing_keys == SORT_ABORT)
        note_lacking(d, "shard '%s': record '%.*s' %s '%s'", shard, shown(r->name_len), r->name,
                     what, c->spec->content_extension);
    if (c->spec->missing_keys == SORT_WARN)
        notes_add(&c->notes, "shard '%s': record '%.*s' %s '%s' and is left out", shard,
                  shown(r->name_len), r->name, what, c->spec->content_extension);
    return 0;
}

/* The key that comes first in the order; a text goes into the names. */
static int record_key(struct drain *d, const struct group_record *r, uint64_t *key, bool *left_out,
                      struct error *err)
{
    const struct sort_order *o = &d->x->c->order;
    if (o->algorithm == SORT_MD5)
        *key = order_md5_key(r->name, r->name_len);
    if (o->algorithm != SORT_CONTENT)
        return 0;
    int rc = record_content(d, r, left_out, err);
    if (rc != 0 || *left_out)
        return rc;
    *key = d->content.number;
    if (o->text_keys)
        buf_append(&d->names, buf_str(&d->content.text), d->content.text.len + 1);
    return 0;
}

/* Where the external key map sends the record. */
static int record_group(struct drain *d, const struct group_record *r, uint32_t *group,
                        bool *left_out, struct error *err)
{
    struct sort_context *c = d->x->c;
    if (d->map == NULL)
        return 0;
    int rc = keymap_find(d->map, r->name, r->name_len, group, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    const char *shard = catalog_shard(d->x->catalog, d->shard)->name;
    *left_out = true;
    if (c->spec->ekm_missing_key == SORT_ABORT)
        note_lacking(d, "shard '%s': the external key map says nothing of record '%.*s'", shard,
                     shown(r->name_len), r->name);
    if (c->spec->ekm_missing_key == SORT_WARN)
        notes_add(&c->notes,
                  "shard '%s': the external key map says nothing of record '%.*s', which is left "
                  "out",
                  shard, shown(r->name_len), r->name);
    return 0;
}

static int drain_record(struct drain *d, uint64_t key, struct error *err)
{
    const struct sort_context *c = d->x->c;
    struct group_record r;
    bool left_out = false;
    size_t begin = d->names.len;
    uint32_t position = d->position++;
    uint32_t group_number = 0;
    int rc = group_next(d->group, &r, err);
    if (rc <= 0)
        return rc != 0 ? rc : error_set(err, E_INTERNAL, "fewer records than were counted");
    rc = catalog_writer_add(&d->writer, r.pieces, r.piece_count, r.inlines, err);
    if (rc == 0 && c->watch != NULL)
        rc = c->watch->read(c->watch->ctx, d->shard, position, &r, d->tar->fd, d->tar->at, err);
    if (rc == 0)
        rc = record_group(d, &r, &group_number, &left_out, err);
    if (rc == 0 && !left_out)
        rc = record_key(d, &r, &key, &left_out, err);
    if (rc != 0 || left_out)
        return rc;
    buf_append(&d->names, r.name, r.name_len);
    d->names_at[d->count] = begin;
    d->rows[d->count++] = (struct sort_row){
        .name_len = (uint32_t)(d->names.len - begin),
        .shard = d->shard,
        .position = position,
        .group = group_number,
        .size = r.size,
        .key = key,
    };
    d->bytes += r.size;
    d->records++;
    return 0;
}

/* Whatever takes time is done before the lock is taken. */
static int drain_batch(struct drain *d, size_t count, struct error *err)
{
    const struct sort_context *c = d->x->c;
    const char *name = catalog_shard(d->x->catalog, d->shard)->name;
    if (c->order.algorithm == SORT_SHUFFLE)
        order_shuffle_keys(c->spec->seed, name, d->position, d->keys, count);
    int rc = 0;
    d->count = 0;
    buf_clear(&d->names);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = drain_record(d, d->keys[i], err);
    pthread_mutex_lock(&d->x->lock);
    for (size_t i = 0; rc == 0 && i < d->count; i++) {
        d->rows[i].name = buf_str(&d->names) + d->names_at[i];
        rc = rowset_add(d->x->rows, &d->rows[i], err);
    }
    pthread_mutex_unlock(&d->x->lock);
    return rc != 0 ? rc : links_check(c->links, err);
}

static int drain_all(struct drain *d, struct error *err)
{
    int rc = 0;
    for (uint64_t left = group_count(d->group); rc == 0 && left > 0;) {
        size_t count = left < BATCH ? (size_t)left : BATCH;
        rc = drain_batch(d, count, err);
        left -= count;
    }
    if (rc == 0)
        rc = check_lacking(d, err);
    return rc != 0 ? rc : catalog_writer_finish(&d->writer, err);
}

static int add_records(struct extract *x, uint32_t shard, const struct tar_place *tar,
                       struct group *group, struct error *err)
{
    _cleanup_free_ struct drain *d = xcalloc(1, sizeof *d);
    d->x = x;
    d->shard = shard;
    d->tar = tar;
    d->group = group;
    if (x->c->map != NULL)
        d->map = keymap_search_new(x->c->map);
    catalog_writer_init(&d->writer, x->catalog, shard);
    int rc = drain_all(d, err);
    catalog_writer_done(&d->writer);
    buf_done(&d->names);
    buf_done(&d->content.text);
    keymap_search_free(d->map);
    progress_add(&x->c->progress.records, d->records);
    progress_add(&x->c->progress.record_bytes, d->bytes);
    sort_count("extract", d->records, d->bytes);
    return rc;
}

/* --- shards ----------------------------------------------------------------------------------- */

static int scan_tar(struct extract *x, uint32_t shard, const struct tar_place *tar,
                    struct error *err)
{
    struct sort_context *c = x->c;
    const struct catalog_shard *s = catalog_shard(x->catalog, shard);
    struct scanning scanning = {.x = x, .shard = s->name};
    const struct group_config config = {
        .env = c->env,
        .shard = s->name,
        .rule = c->spec->key_rule,
        .duplicates = c->spec->duplicated_records,
        .memory = c->memory.scanning,
        .record_memory = c->memory.one_record,
        .replaced = note_replaced,
        .check = check_stopped,
        .ctx = &scanning,
    };
    _cleanup_(group_freep)
    struct group *group = scanning.group = group_new(&config);
    int rc = scan_members(&scanning, tar, err);
    if (rc == 0)
        rc = add_records(x, shard, tar, group, err);
    progress_add(&c->progress.spilled_bytes, group_spilled(group));
    return rc;
}

/* The shard's file becomes a tar in the contents. */
static int decode(struct extract *x, struct contents_writer *w, uint32_t shard, int fd,
                  struct tar_place *tar, struct error *err)
{
    const struct catalog_shard *s = catalog_shard(x->catalog, shard);
    struct scanning scanning = {.x = x, .shard = s->name};
    const struct format_input in = {.fd = fd,
                                    .size = s->size,
                                    .shard = s->name,
                                    .window_max = x->c->window_max,
                                    .formats = x->c->formats,
                                    .check = check_stopped,
                                    .check_ctx = &scanning};
    int rc = format_decode(x->c->spec->input_shards, &in, contents_sink(w), err);
    if (rc == 0)
        rc = contents_end(w, &tar->fd, &tar->at, &tar->size, err);
    if (rc == 0)
        catalog_set_contents(x->catalog, shard, tar->fd, tar->at);
    return rc;
}

/* Where nothing will be built, nobody reads what was decoded again. */
static int scan_decoded(struct extract *x, uint32_t shard, int fd, struct error *err)
{
    const struct catalog_shard *s = catalog_shard(x->catalog, shard);
    struct contents_writer *w = contents_begin(x->contents, s->name, s->size);
    struct tar_place tar;
    int rc = decode(x, w, shard, fd, &tar, err);
    if (rc == 0)
        rc = scan_tar(x, shard, &tar, err);
    if (x->c->spec->dry_run)
        contents_forget(w);
    contents_release(w);
    return rc;
}

static int scan_file(struct extract *x, uint32_t shard, int fd, struct error *err)
{
    const struct tar_place tar = {.fd = fd, .size = catalog_shard(x->catalog, shard)->size};
    return x->contents != NULL ? scan_decoded(x, shard, fd, err) : scan_tar(x, shard, &tar, err);
}

/* Nothing of an unreadable shard has gone anywhere: it can be left out whole. */
static int judge(struct sort_context *c, int rc, const struct error *why, struct error *err)
{
    bool unreadable = rc == E_SHARD_CORRUPT || rc == E_SHARD_UNSUPPORTED;
    if (!unreadable || c->spec->unreadable_shards == SORT_ABORT)
        return rc != 0 ? error_set(err, rc, "%s", why->message) : 0;
    if (c->spec->unreadable_shards == SORT_WARN)
        notes_add(&c->notes, "%s; the shard is left out", why->message);
    return 0;
}

/* It is no damage, and yet what most copies leave that broke off. */
static void note_empty(struct sort_context *c, const struct catalog_shard *s)
{
    if (s->size == 0 && c->spec->unreadable_shards != SORT_IGNORE)
        notes_add(&c->notes, "shard '%s' has no bytes: it counts as one without records", s->name);
}

static int scan_shard(void *ctx, size_t i, struct error *err)
{
    struct extract *x = ctx;
    struct sort_context *c = x->c;
    uint32_t shard = x->fresh[i];
    const struct catalog_shard *s = catalog_shard(x->catalog, shard);
    int rc = links_check(c->links, err);
    int fault = fault_errno("sort.extract");
    if (rc == 0 && fault != 0)
        rc = error_errno(err, fault, "extract shard '%s'", s->name);
    int fd = -1;
    if (rc == 0)
        rc = fdcache_get(catalog_files(x->catalog), shard, &fd, err);
    if (rc != 0)
        return rc;
    struct error why = ERROR_INIT;
    rc = scan_file(x, shard, fd, &why);
    if (rc == 0)
        note_empty(c, s);
    rc = judge(c, rc, &why, err);
    fdcache_put(catalog_files(x->catalog), shard);
    if (rc == 0)
        progress_add(&c->progress.shards_done, 1);
    return rc;
}

/* New shards stand between those that were there before: all of them have new numbers. */
static int scan_fresh(struct extract *x, uint32_t known, bool again, struct error *err)
{
    struct sort_progress *p = &x->c->progress;
    uint32_t count = catalog_count(x->catalog);
    _cleanup_free_ uint32_t *map = xcalloc((size_t)count + 1, sizeof *map);
    catalog_sort(x->catalog, map);
    int rc = rowset_renumber(x->rows, map, err);
    if (rc != 0)
        return rc;
    x->fresh = map + known;
    progress_add(&p->redone_inputs, again ? count - known : 0);
    atomic_store(&p->shards_total, count);
    if (x->c->spec->plain_objects) {
        const struct extract_objects objects = {.c = x->c,
                                                .catalog = x->catalog,
                                                .rows = x->rows,
                                                .fresh = x->fresh,
                                                .count = count - known};
        return extract_objects(&objects, err);
    }
    return parallel_for("sort-extract", x->c->extract_threads, count - known, scan_shard, x, err);
}

int extract_run(struct sort_context *c, unsigned since, struct catalog *catalog,
                struct contents *contents, struct rowset *rows, struct error *err)
{
    struct extract x = {
        .c = c, .since = since, .catalog = catalog, .contents = contents, .rows = rows};
    pthread_mutex_init(&x.lock, NULL);
    struct sort_pinned pinned = {0};
    uint32_t known = catalog_count(catalog);
    uint64_t spilled = rowset_spilled(rows) + (contents != NULL ? contents_spilled(contents) : 0);
    int rc = c->env->pin_shards(c->env->ctx, c->spec, each_shard, &x, &pinned, err);
    if (rc == 0 && since > 0 && !pinned.again) /* what was extracted may be of other versions */
        rc = error_set(err, E_CANCELLED, "job '%s': the shards were pinned anew", c->job_id);
    if (rc == 0)
        rc = check_missing(&x, err);
    if (rc == 0) {
        c->inputs = pinned.stamp;
        rc = scan_fresh(&x, known, pinned.again, err);
    }
    progress_add(&c->progress.spilled_bytes,
                 rowset_spilled(rows) + (contents != NULL ? contents_spilled(contents) : 0) -
                     spilled);
    pthread_mutex_destroy(&x.lock);
    free(x.missing.first);
    return rc;
}
