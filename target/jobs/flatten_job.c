/* The job `flatten` (xaction/objects_spec.h): the bytes of plogs become the objects of their names.
 * The target that owns a head does it, by the protocol of any client (plog/flatten.h):
 *
 *     merge ─▶ mark in the head ─▶ no record ─▶ segments are read while the object is sent ─▶
 *       PUT, If-Match the marked head ─▶ the container is removed
 *
 * Until the PUT the plog is whole, whatever ends the job.  A writer that syncs meanwhile takes the
 * mark off, and the PUT is refused.  What is no plog is passed over, so that the job may begin
 * again.  `dfcctl plog gc` finds a container that a restart leaves behind, and that of a head that
 * has no content type: it may be the copy of a head that lives. */
#include <string.h>

#include "common/fault.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "plog/file.h"
#include "plog/flatten.h"
#include "plog/head.h"
#include "plog/type.h"
#include "target/copies/object_bytes.h"
#include "target/jobs/burn_ask.h"
#include "target/jobs/job_source.h"
#include "target/jobs/objects_walk.h"
#include "target/jobs/plog_calls.h"

enum { PIECE_BYTES = 256 << 10, MIB = 1 << 20 };

/* One plog. */
struct flattening {
    struct job_base *job;
    const char *name;
    struct plog_calls calls;
    struct plog_store store;
    bool is_typed; /* as a head; one that a backup has put back is not */
    bool is_plog;
    struct plog_file *file;
    uint64_t size;
    uint64_t counted;          /* of its bytes; a repeat counts none of them again */
    bool is_read;              /* all bytes, once: */
    struct checksum_value sum; /* XXH3 of them */
};

/* --- the bytes -------------------------------------------------------------------------------- */

static int feed_piece(struct flattening *f, uint64_t at, char *piece, size_t *got,
                      struct error *err)
{
    int code = job_base_check(f->job, err);
    if (code == 0)
        code = plog_file_read(f->file, piece, PIECE_BYTES, at, got, err);
    if (code == 0 && *got == 0)
        code = error_set(err, E_CORRUPT, "'%s' ends at byte %llu of %llu", f->name,
                         (unsigned long long)at, (unsigned long long)f->size);
    return code;
}

static void count_bytes(struct flattening *f, uint64_t end)
{
    if (end <= f->counted)
        return;
    job_tally_add(f->job->tally, 0, end - f->counted);
    f->counted = end;
}

/* From the beginning, at every try. */
static int feed(void *ctx, ec_take_fn *take, void *take_ctx, struct error *err)
{
    struct flattening *f = ctx;
    _cleanup_free_ char *piece = xmalloc(PIECE_BYTES);
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_XXH3);
    size_t got;
    for (uint64_t at = 0; at < f->size; at += got) {
        int code = feed_piece(f, at, piece, &got, err);
        if (code == 0)
            code = take(take_ctx, piece, got, err);
        if (code != 0)
            return code;
        checksum_update(sum, piece, got);
        count_bytes(f, at + got);
    }
    checksum_final(sum, &f->sum);
    f->is_read = true;
    return 0;
}

/* A PUT whose reply was lost may have stored it, as this version. */
static bool is_stored(const struct flattening *f, char etag[static BURN_ETAG_MAX])
{
    const struct burn_ask ask = {
        .bucket = f->calls.bucket, .object = f->name, .digest = checksum_name(CHECKSUM_XXH3)};
    struct burn_answer a;
    struct error err = ERROR_INIT;
    char hex[2 * CHECKSUM_MAX + 1];
    if (!f->is_read || burn_ask(f->job, &ask, &a, &err) != 0)
        return false;
    checksum_hex(&f->sum, hex);
    memcpy(etag, a.etag, BURN_ETAG_MAX);
    return a.found.size == f->size && strcmp(a.checksum, hex) == 0;
}

/* What a lost reply has left is there, and not durable where its target was killed before it had
 * synced the name: it is stored once more, before the container goes. */
static int put(struct flattening *f, const char *if_match, struct error *err)
{
    char stored[BURN_ETAG_MAX], again[BURN_ETAG_MAX];
    for (unsigned failures = 1;; failures++) {
        *err = ERROR_INIT;
        int code = plog_calls_stream(&f->calls, f->name, f->size, if_match, feed, f, err);
        if (code == E_PRECONDITION && failures > 1 && is_stored(f, stored) &&
            strcmp(stored, if_match) != 0) {
            memcpy(again, stored, sizeof again);
            if_match = again;
            continue;
        }
        if (!plog_calls_again(&f->calls, code, err, failures))
            return code;
    }
}

static int put_file(struct flattening *f, struct plog_look *look, const char *if_match,
                    struct error *err)
{
    const uint64_t cache = f->job->target->params.plog_cache;
    const struct plog_file_how how = {
        .cached = (size_t)(cache / MIB), .clock_ms = plog_calls_clock, .check = plog_calls_check};
    struct plog_file_stat stat;
    f->file = plog_file_of_look(&f->store, f->name, &how, look);
    int code = plog_file_stat(f->file, &stat, err);
    f->size = stat.size;
    if (code == 0)
        code = put(f, if_match, err);
    plog_file_drop(f->file);
    return code != 0 ? plog_flatten_failed(&f->store, f->name, if_match, code, err) : 0;
}

/* --- a plog ----------------------------------------------------------------------------------- */

static int fail_if_asked(const struct flattening *f, const char *point, struct error *err)
{
    const int e = fault_errno_at(point, f->name);
    return e != 0 ? error_errno(err, e, "%s", f->name) : 0;
}

/* Ends the look. */
static int replace(struct flattening *f, struct plog_look *look, struct error *err)
{
    char if_match[PLOG_ETAG_MAX];
    memcpy(if_match, look->etag, sizeof if_match);
    job_tally_detail(f->job->tally, "plog", json_string_escaped(f->name));
    int code = fail_if_asked(f, "plog.flatten", err);
    if (code != 0)
        plog_look_done(look);
    else
        code = put_file(f, look, if_match, err);
    return code == 0 ? fail_if_asked(f, "plog.flat", err) : code;
}

static int flatten_plog(struct flattening *f, struct error *err)
{
    char id[PLOG_ID_CHARS + 1];
    struct plog_look look;
    int code = plog_flatten_begin(&f->store, f->name, f->is_typed, &look, err);
    f->is_plog = code != E_INVALID || f->is_typed;
    if (code != 0)
        return f->is_plog ? code : error_forgive(err, code, E_INVALID);
    memcpy(id, look.head.id, sizeof id);
    code = replace(f, &look, err);
    if (code != 0 || !f->is_typed)
        return code;
    code = plog_flatten_end(&f->store, id, err);
    if (code != 0)
        error_wrap(err, "it is flat, and 'dfcctl plog gc' removes what is left of it");
    return code;
}

/* Damage of what is in the plog is not that of the head's file, which job_source_work() would have
 * mended and wait for: the result is 0, and err tells count(). */
static int flatten(void *ctx, const struct object *o, struct error *err)
{
    struct flattening *f = ctx;
    struct attr shown;
    int code = object_bytes_attr(o, &shown, err);
    const char *type = o->attr.content_type;
    f->is_typed = type != NULL && strcmp(type, PLOG_TYPE) == 0;
    f->calls.untyped_heads = !f->is_typed;
    f->is_plog = false;
    if (code != 0 || (!f->is_typed && shown.size > PLOG_HEAD_BYTES_MAX))
        return code;
    _cleanup_state_ const struct cluster_state *s = state_current(f->job->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, f->calls.bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    _cleanup_free_ char *bucket = xstrdup(b->name);
    f->calls.bucket = bucket;
    f->store = plog_calls_store(&f->calls);
    code = flatten_plog(f, err);
    return code == E_CORRUPT ? 0 : code;
}

static void count(const struct flattening *f, const struct error *err)
{
    struct job_tally *t = f->job->tally;
    switch (err->code) {
    case 0:
        if (f->is_plog)
            job_tally_done(t, 0); /* its bytes have been counted */
        else
            job_tally_skipped(t);
        break;
    case E_ABORTED:
        break;
    case E_NOT_FOUND:
    case E_OBJECT_NOT_FOUND:
        job_tally_missed(t, f->name, "it does not exist");
        break;
    default:
        job_tally_fail(t, f->name, err);
    }
}

static void flatten_one(void *ctx, const char *name)
{
    struct job_base *j = ctx;
    struct error err = ERROR_INIT;
    struct flattening f = {.job = j,
                           .name = name,
                           .calls = {.job = j,
                                     .bucket_id = j->plan.input_bucket_id,
                                     .index_max = j->target->params.plog_index_max}};
    (void)job_source_work(j, name, flatten, &f, &err); /* what it said is in err */
    count(&f, &err);
}

/* One at a time: each may fill the cache. */
static int flatten_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    return objects_walk_batch(ctx, 1, names, n, flatten_one, ctx, err);
}

static int run(void *self, struct error *err)
{
    return objects_walk(self, flatten_batch, self, err);
}

const struct xaction_ops flatten_xaction =
    JOB_WORK("flatten", .size = sizeof(struct job_base), .done_word = "flattened",
             .over_objects = true, .sends = true, .run = run);
