/* The job `burn` stores contents: each one is read from the owner of its object, compared with its
 * SHA-256, and becomes an object of its own or a part of a pack (vdisc/placing.h).
 *
 * The bytes are gathered in a temporary file of this target, since the name of a pack is known
 * only when its bytes are.  An object that has the name is left as it is. */
#include <string.h>

#include "common/mem.h"
#include "io/pool.h"
#include "target/archive/batch_fetch.h"
#include "target/archive/batch_spec.h"
#include "target/jobs/burn_ask.h"
#include "target/jobs/burn_parts.h"
#include "target/jobs/job_send.h"
#include "vdisc/burn_rules.h"
#include "vdisc/placing.h"
#include "xaction/burn_spec.h"

enum { PIECE_BYTES = 64 << 10, OBJECTS_AT_ONCE = 8 };

struct storing {
    struct burning *burning;
    struct plan_file *files;
    struct placing_object *objects;
};

/* Bytes on their way into an object. */
struct gathering {
    struct storing *storing;
    struct object_put *put;
    struct checksum *all; /* of the object */
};

/* --- a content -------------------------------------------------------------------------------- */

static int fail_changed(const struct plan_file *f, struct error *err)
{
    const struct plan_object o = {.bucket = f->part.bucket, .key = f->part.key, .line = f->line};
    return burn_rules_changed(&o, f->part.etag != NULL ? BURN_REPLACED : BURN_OTHER_CHECKSUM, err);
}

static int take(const struct gathering *g, const void *bytes, size_t len, struct error *err)
{
    checksum_update(g->all, bytes, len);
    return object_put_write(g->put, bytes, len, err);
}

static int take_content(const struct gathering *g, const struct plan_file *f,
                        struct batch_fetch *fetch, struct error *err)
{
    struct job_base *j = &g->storing->burning->job->base;
    const struct plan_object o = {
        .bucket = f->part.bucket, .key = f->part.key, .size = f->size, .line = f->line};
    char piece[PIECE_BYTES];
    uint64_t size = 0;
    int64_t modified_s;
    struct checksum_value sum;
    int code = batch_fetch_head(fetch, &j->stop, &size, &modified_s, err);
    if (code == 0)
        code = burn_rules_size(&o, size, err);
    if (code != 0)
        return code;
    _cleanup_(checksum_freep)
    struct checksum *running = checksum_new(CHECKSUM_SHA256);
    for (ssize_t n; code == 0 && size > 0; size -= (uint64_t)n) {
        n = batch_fetch_read(fetch, &j->stop, piece, size < sizeof piece ? size : sizeof piece,
                             err);
        if (n < 0)
            return (int)n;
        checksum_update(running, piece, (size_t)n);
        code = take(g, piece, (size_t)n, err);
    }
    checksum_final(running, &sum);
    return code == 0 && !checksum_equal(&sum, &f->checksum) ? fail_changed(f, err) : code;
}

static int gather_content(const struct gathering *g, const struct plan_file *f, struct error *err)
{
    struct job_base *j = &g->storing->burning->job->base;
    const struct plan_object o = {.bucket = f->part.bucket, .key = f->part.key, .line = f->line};
    const struct batch_entry entry = {.bucket = f->part.bucket, .object = f->part.key};
    struct error why = ERROR_INIT;
    int code = job_base_check(j, err);
    if (code != 0)
        return code;
    struct batch_fetch *fetch = batch_fetch_begin(j->target, &entry, BATCH_READ, NULL);
    code = take_content(g, f, fetch, &why);
    batch_fetch_end(fetch);
    if (code == E_OBJECT_NOT_FOUND)
        return burn_rules_missing(&o, why.message, err);
    if (code != 0)
        *err = why;
    else
        job_tally_done(j->tally, f->size);
    return code;
}

static int pad(const struct gathering *g, uint64_t size, struct error *err)
{
    static const char zeros[ISO_BLOCK];
    return take(g, zeros, (size_t)(packs_room(size) - size), err);
}

/* --- an object -------------------------------------------------------------------------------- */

static int gather(const struct gathering *g, const struct placing_object *o, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < o->count; i++) {
        const struct plan_file *f = &g->storing->files[o->files[i]];
        code = gather_content(g, f, err);
        if (code == 0 && o->pack)
            code = pad(g, f->size, err);
    }
    return code;
}

static int put_object(struct storing *s, struct placing_object *o, struct error *err)
{
    struct burning *b = s->burning;
    struct gathering g = {.storing = s};
    struct checksum_value sum;
    _cleanup_(checksum_freep)
    struct checksum *all = checksum_new(CHECKSUM_SHA256);
    g.all = all;
    int code = job_send_begin(&b->job->base, b->job->base.plan.output_bucket_id,
                              o->pack ? BURN_PACKS : o->key, o->size, &g.put, err);
    if (code != 0)
        return code;
    code = gather(&g, o, err);
    checksum_final(all, &sum);
    if (code == 0 && o->pack)
        placing_name_pack(o, &sum);
    if (code == 0)
        code = burn_put(b, steal(g.put), o->key, err);
    object_put_abort(g.put);
    return code;
}

/* An object of its own has a name before its bytes are read. */
static int is_there(const struct burning *b, const struct placing_object *o, bool *there,
                    struct error *err)
{
    struct burn_answer answer;
    const struct burn_ask ask = {.bucket = b->to, .object = o->key};
    int code = o->pack ? E_OBJECT_NOT_FOUND : burn_ask(&b->job->base, &ask, &answer, err);
    *there = code == 0;
    return error_forgive(err, code, E_OBJECT_NOT_FOUND);
}

static int store_object(void *ctx, size_t i, struct error *err)
{
    struct storing *s = ctx;
    struct burning *b = s->burning;
    struct placing_object *o = &s->objects[i];
    bool there = false;
    int code = is_there(b, o, &there, err);
    if (code == 0 && there)
        job_tally_skipped(b->job->base.tally);
    if (code != 0 || there)
        return code;
    code = put_object(s, o, err);
    if (code == 0) {
        atomic_fetch_add(&b->stored_objects, 1);
        atomic_fetch_add(&b->stored_bytes, o->size);
    }
    return error_forgive(err, error_forgive(err, code, E_NOT_MODIFIED), E_PRECONDITION);
}

/* --- all -------------------------------------------------------------------------------------- */

static struct placing_file *contents_of(const struct plan_file *files, size_t count)
{
    struct placing_file *to = xcalloc(count + 1, sizeof *to);
    for (size_t i = 0; i < count; i++) {
        to[i].size = files[i].size;
        memcpy(to[i].sha256, files[i].checksum.bytes, sizeof to[i].sha256);
    }
    return to;
}

static void expect(struct burning *b, const struct placing_object *objects, size_t count)
{
    uint64_t files = 0;
    for (size_t i = 0; i < count; i++)
        files += objects[i].count;
    job_tally_expect(b->job->base.tally, files);
}

static int store_all(struct burning *b, struct plan_file *files, size_t count,
                     struct placing_file *contents, struct error *err)
{
    const struct placing_options options = {.bucket = b->to,
                                            .base = b->base != NULL ? burn_image_entries(b->base)
                                                                    : NULL,
                                            .pack = b->job->spec->packs};
    size_t objects;
    _cleanup_(placing_freep)
    struct placing *c = placing_new(contents, count, &options);
    struct storing s = {.burning = b, .files = files};
    s.objects = placing_objects(c, &objects);
    expect(b, s.objects, objects);
    int code = parallel_for("burn", OBJECTS_AT_ONCE, objects, store_object, &s, err);
    if (code != 0)
        return code;
    placing_end(c);
    for (size_t i = 0; i < count; i++)
        files[i].part = contents[i].part;
    return plan_move(b->plan, err);
}

int burn_store(struct burning *b, struct error *err)
{
    const char *base = b->job->spec->base;
    struct plan_file *files;
    size_t count = 0;
    int code = base != NULL ? burn_image_open(b, base, &b->base, err) : 0;
    if (code == 0)
        code = plan_files(b->plan, &b->options, &files, &count, err);
    if (code != 0)
        return code;
    _cleanup_free_ struct placing_file *contents = contents_of(files, count);
    return store_all(b, files, count, contents, err);
}
