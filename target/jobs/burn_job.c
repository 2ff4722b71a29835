/* The job `burn` (xaction/burn_spec.h): objects become a dataset image, without a client.
 *
 *     older image, list or CSV ─▶ plan ─▶ the SHA-256 of each object (digest, store)
 *       ─▶ contents are copied (store) ─▶ layout ─▶ the head of each object ─▶ header
 *       ─▶ table, only where no object has its name
 *
 * One target does it; the owners of the objects answer its calls.  The rules are those of a
 * client's burn (vdisc/burn_rules.h), so that the image has the same bytes.  The table is the
 * commit: a job that begins again finds its header, and perhaps its table. */
#include <string.h>
#include <xxhash.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "io/pool.h"
#include "target/jobs/burn_ask.h"
#include "target/jobs/burn_parts.h"
#include "target/jobs/job_send.h"
#include "vdisc/iso_write.h"
#include "xaction/burn_spec.h"

enum { PARALLEL = 64 };

/* --- what is asked for ------------------------------------------------------------------------ */

static int set_identifiers(struct burning *b, struct error *err)
{
    const char *name;
    json_t *text;
    json_object_foreach(b->job->spec->identifiers, name, text)
    {
        unsigned i = 0;
        while (i < ISO_IDENTIFIERS && strcmp(name, iso_identifier_name(i)) != 0)
            i++;
        if (i == ISO_IDENTIFIERS)
            return error_set(err, E_SPEC, "field 'value.identifiers': '%.32s' is none", name);
        b->volume.identifiers[i] = json_string_value(text);
    }
    return iso_volume_check(&b->volume, err);
}

static int set_buckets(struct burning *b, struct error *err)
{
    const struct job_base *j = &b->job->base;
    _cleanup_state_ const struct cluster_state *s = state_current(j->target->state);
    const struct bucket *from = bmd_bucket_by_id(&s->bmd, j->plan.input_bucket_id);
    const struct bucket *to = bmd_bucket_by_id(&s->bmd, j->plan.output_bucket_id);
    if (from == NULL || to == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "a bucket was destroyed meanwhile");
    b->from = xstrdup(from->name);
    b->to = xstrdup(to->name);
    return 0;
}

static int burning_begin(struct burning *b, struct burn_job *j, struct error *err)
{
    const struct burn_spec *s = j->spec;
    *b = (struct burning){.job = j, .plan = plan_new()};
    b->options =
        (struct plan_options){.names = strcmp(s->names, "portable") == 0   ? ISO_NAMES_PORTABLE
                                       : strcmp(s->names, "extended") == 0 ? ISO_NAMES_EXTENDED
                                                                           : ISO_NAMES_ANY,
                              .joliet = s->joliet,
                              .date_s = s->dated ? s->date_s : ISO_NO_TIME,
                              .entries_max = param_live(j->base.target->params.vdisc_entries_max),
                              .table_max = j->base.target->params.vdisc_table_max};
    int code = set_identifiers(b, err);
    return code == 0 ? set_buckets(b, err) : code;
}

static void burning_end(struct burning *b)
{
    uint32_t count = 0;
    struct plan_object *objects = plan_objects(b->plan, &count);
    for (uint32_t i = 0; i < count; i++) {
        free((char *)objects[i].etag);
        free((char *)objects[i].pin);
    }
    for (uint32_t i = 0; i < b->learnt_count; i++)
        free((char *)b->learnt[i].etag);
    free((char *)b->header.etag);
    free((char *)b->header.pin);
    free(b->header_key);
    plan_free(b->plan);
    burn_image_free(b->older);
    burn_image_free(b->base);
    free(b->from);
    free(b->to);
}

static int fail_exists(const struct burning *b, struct error *err)
{
    return error_set(err, E_OBJECT_EXISTS,
                     "object '%s/%s' exists: an image is not overwritten; take another name, or "
                     "remove it first",
                     b->to, b->job->spec->image);
}

/* A job that begins again may have written it. */
static int check_name_is_free(const struct burning *b, struct error *err)
{
    struct burn_answer answer;
    const struct burn_ask ask = {.bucket = b->to, .object = b->job->spec->image};
    int code = burn_ask(&b->job->base, &ask, &answer, err);
    if (code == 0)
        return b->job->resumed ? 0 : fail_exists(b, err);
    return error_forgive(err, code, E_OBJECT_NOT_FOUND);
}

/* --- checksums that no row knows -------------------------------------------------------------- */

static int ask_sum(const struct burning *b, const struct plan_object *o, enum checksum_type type,
                   const char *etag, struct burn_answer *a, struct checksum_value *sum,
                   struct error *err)
{
    const struct burn_ask ask = {
        .bucket = o->bucket, .object = o->key, .digest = checksum_name(type), .etag = etag};
    struct error why = ERROR_INIT;
    int code = burn_ask(&b->job->base, &ask, a, &why);
    if (code == E_OBJECT_NOT_FOUND)
        return burn_rules_missing(o, why.message, err);
    if (code == E_PRECONDITION)
        return burn_rules_changed(o, BURN_REPLACED, err);
    if (code != 0)
        return error_set(err, code, "%s", why.message);
    return checksum_parse(type, a->checksum, sum, err);
}

static int learn(void *ctx, size_t i, struct error *err)
{
    struct burning *b = ctx;
    struct plan_object *o = &b->learnt[b->order[i]];
    struct checksum_value sum, listed;
    struct burn_answer a;
    int code = job_base_check(&b->job->base, err);
    if (code == 0)
        code = ask_sum(b, o, CHECKSUM_SHA256, o->wanted_etag, &a, &sum, err);
    if (code == 0)
        code = burn_rules_size(o, a.found.size, err);
    if (code != 0)
        return code;
    o->etag = xstrdup(a.etag);
    if (o->checksum.type != CHECKSUM_NONE) {
        code = ask_sum(b, o, o->checksum.type, o->etag, &a, &listed, err);
        if (code == 0 && !checksum_equal(&listed, &o->checksum))
            code = burn_rules_changed(o, BURN_OTHER_CHECKSUM, err);
    }
    o->checksum = sum;
    return code;
}

static int learn_all(struct burning *b, struct error *err)
{
    int code = plan_unknown(b->plan, &b->options, &b->learnt, &b->learnt_count, err);
    if (code != 0)
        return code;
    _cleanup_free_ uint32_t *order = burn_rules_order(b->learnt, b->learnt_count);
    b->order = order;
    return parallel_for("burn", PARALLEL, b->learnt_count, learn, b, err);
}

/* --- collections ------------------------------------------------------------------------------ */

struct looking {
    const char *bucket;
    int64_t since_ms;
};

static int refuse(void *ctx, const char *name, const struct burn_found *found, struct error *err)
{
    const struct looking *l = ctx;
    return found->modified_ms >= l->since_ms ? burn_rules_busy(l->bucket, name, "'vdisc gc'", err)
                                             : 0;
}

/* What is there already may be used, and must not be removed meanwhile.  A collection that begins
 * later finds this job. */
static int refuse_collections(const struct burning *b, struct error *err)
{
    const char *const buckets[] = {b->from, b->to};
    int code = 0;
    for (size_t i = 0; code == 0 && i < sizeof buckets / sizeof *buckets; i++) {
        struct looking l = {.bucket = buckets[i], .since_ms = clock_wall_ms() - BURN_COLLECTION_MS};
        code = burn_ask_list(&b->job->base, l.bucket, BURN_COLLECTIONS, refuse, &l, err);
    }
    return code;
}

/* --- the objects ------------------------------------------------------------------------------ */

static int check_object(void *ctx, size_t i, struct error *err)
{
    struct burning *b = ctx;
    struct job_base *j = &b->job->base;
    uint32_t count;
    struct plan_object *o = &plan_objects(b->plan, &count)[b->order[i]];
    const struct burn_ask ask = {.bucket = o->bucket, .object = o->key};
    struct burn_answer a;
    struct error why = ERROR_INIT;
    int code = job_base_check(j, err);
    if (code != 0)
        return code;
    if (b->job->spec->unchecked) {
        burn_rules_trust(o);
    } else if ((code = burn_ask(j, &ask, &a, &why)) == E_OBJECT_NOT_FOUND) {
        return burn_rules_missing(o, why.message, err);
    } else if (code != 0) {
        return error_set(err, code, "object '%s/%s': %s", o->bucket, o->key, why.message);
    } else if ((code = burn_rules_take(o, &a.found, err)) != 0) {
        return code;
    }
    job_tally_done(j->tally, 0);
    return 0;
}

static int check_objects(struct burning *b, struct error *err)
{
    uint32_t count = 0;
    const struct plan_object *objects = plan_objects(b->plan, &count);
    _cleanup_free_ uint32_t *order = burn_rules_order(objects, count);
    b->order = order;
    job_tally_expect(b->job->base.tally, count);
    return parallel_for("burn", PARALLEL, count, check_object, b, err);
}

/* --- header and table ------------------------------------------------------------------------- */

int burn_put(struct burning *b, struct object_put *put, const char *name, struct error *err)
{
    struct job_base *j = &b->job->base;
    /* Every object was put after version 0: so nothing is replaced. */
    const struct object_copy copy = {
        .bucket_id = j->plan.output_bucket_id, .name = name, .has_rule = true, .is_new = true};
    return job_send(j, put, &copy, err);
}

static int take_into_sum(void *ctx, const void *bytes, size_t len, struct error *err)
{
    (void)err;
    checksum_update(ctx, bytes, len);
    return 0;
}

static int take_into_put(void *ctx, const void *bytes, size_t len, struct error *err)
{
    return object_put_write(ctx, bytes, len, err);
}

/* It is made twice: its name has its checksum. */
static int put_header(struct burning *b, struct error *err)
{
    struct job_base *j = &b->job->base;
    const struct iso_layout *l = plan_layout(b->plan);
    struct checksum_value sum;
    struct object_put *put = NULL;
    _cleanup_(checksum_freep)
    struct checksum *running = checksum_new(CHECKSUM_SHA256);
    int code = iso_write(l, &b->volume, take_into_sum, running, err);
    if (code != 0)
        return code;
    checksum_final(running, &sum);
    memcpy(b->header_sha256, sum.bytes, TABLE_ID);
    b->header_key = burn_rules_header_name(b->job->spec->image, &sum);
    b->header.pin = burn_rules_pin(&sum);
    b->header.key = b->header_key;
    b->header.bucket = b->to;
    code = job_send_begin(j, j->plan.output_bucket_id, b->header_key,
                          (uint64_t)l->header_blocks * ISO_BLOCK, &put, err);
    if (code != 0)
        return code;
    code = iso_write(l, &b->volume, take_into_put, put, err);
    if (code == 0)
        code = burn_put(b, steal(put), b->header_key, err);
    object_put_abort(put);
    return error_forgive(err, error_forgive(err, code, E_NOT_MODIFIED), E_PRECONDITION);
}

/* As readers will find it. */
static int look_at_header(struct burning *b, struct error *err)
{
    const struct burn_ask ask = {
        .bucket = b->to, .object = b->header_key, .digest = checksum_name(CHECKSUM_SHA256)};
    struct burn_answer a;
    int code = burn_ask(&b->job->base, &ask, &a, err);
    if (code == 0)
        code = burn_rules_check_header(b->to, b->header_key, a.checksum, b->header_sha256, err);
    if (code == 0)
        b->header.etag = xstrdup(a.etag);
    return code;
}

static void describe(const struct burning *b, const uint8_t id[static TABLE_ID], size_t table)
{
    const struct iso_layout *l = plan_layout(b->plan);
    char hex[2 * TABLE_ID + 1];
    format_hex(id, TABLE_ID, hex);
    job_tally_detail(
        b->job->base.tally, "image",
        json_pack("{ss ss sI sI sI sI sI sI sI sI}", "name", b->job->spec->image, "image_id", hex,
                  "entries", (json_int_t)plan_rows(b->plan), "files",
                  (json_int_t)l->tree->file_count, "extents", (json_int_t)l->extent_count + 1,
                  "image_bytes", (json_int_t)l->blocks * ISO_BLOCK, "header_bytes",
                  (json_int_t)l->header_blocks * ISO_BLOCK, "table_bytes", (json_int_t)table,
                  "stored_objects", (json_int_t)atomic_load(&b->stored_objects), "stored_bytes",
                  (json_int_t)atomic_load(&b->stored_bytes)));
}

static int put_table(struct burning *b, struct error *err)
{
    struct job_base *j = &b->job->base;
    const char *name = b->job->spec->image;
    uint8_t id[TABLE_ID];
    struct object_put *put = NULL;
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    int code = plan_table(b->plan, b->to, name, &b->header, b->header_sha256, id, &bytes, err);
    if (code == 0)
        code = job_send_begin(j, j->plan.output_bucket_id, name, bytes.len, &put, err);
    if (code != 0)
        return code;
    code = object_put_write(put, bytes.data, bytes.len, err);
    if (code == 0)
        code = error_forgive(err, burn_put(b, steal(put), name, err), E_NOT_MODIFIED);
    object_put_abort(put);
    if (code == E_PRECONDITION || code == E_WRITE_ONCE)
        return fail_exists(b, err);
    if (code == 0)
        describe(b, id, bytes.len);
    return code;
}

/* --- the job ---------------------------------------------------------------------------------- */

static int burn(struct burning *b, struct error *err)
{
    const struct burn_spec *s = b->job->spec;
    int code;
    if ((code = burn_rules_check_name(s->image, err)) != 0 ||
        (code = check_name_is_free(b, err)) != 0 || (code = refuse_collections(b, err)) != 0 ||
        (code = burn_take_rows(b, err)) != 0 ||
        ((s->digest || s->stores) && (code = learn_all(b, err)) != 0) ||
        (s->stores && (code = burn_store(b, err)) != 0) ||
        (code = plan_close(b->plan, &b->options, err)) != 0 ||
        (code = burn_rules_not_empty(b->plan, b->job->spec->allow_empty, err)) != 0 ||
        (code = check_objects(b, err)) != 0 || (code = put_header(b, err)) != 0 ||
        (code = look_at_header(b, err)) != 0)
        return code;
    return put_table(b, err);
}

/* The same one for all targets, and another one for another job. */
static bool is_ours(const struct job_base *j)
{
    const struct job *job = j->job;
    const uint64_t number = XXH3_64bits(job->id, strlen(job->id)) % job->participant_count;
    return strcmp(job->participants[number], j->target->id) == 0;
}

static int run(void *self, struct error *err)
{
    struct burn_job *j = self;
    struct burning b;
    if (!is_ours(&j->base))
        return job_tally_end(j->base.tally, err);
    int code = burning_begin(&b, j, err);
    if (code == 0)
        code = burn(&b, err);
    burning_end(&b);
    return code == 0 ? job_tally_end(j->base.tally, err) : code;
}

static int begin(void *self, struct error *err)
{
    struct burn_job *j = self;
    j->resumed = j->base.job->state != JOB_QUEUED;
    int code = burn_spec_parse(j->base.job->spec, &j->spec, err);
    return code == 0 ? objects_plan_parse(j->base.job->plan, &j->base.plan, err) : code;
}

static void end(void *self)
{
    struct burn_job *j = self;
    burn_spec_free(j->spec);
}

const struct xaction_ops burn_xaction =
    JOB_WORK("burn", .size = sizeof(struct burn_job), .done_word = "looked at", .sends = true,
             .begin = begin, .run = run, .end = end);
