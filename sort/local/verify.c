#include "sort/local/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "io/file.h"
#include "sort/base/blob.h"
#include "sort/shard/format.h"
#include "sort/shard/group.h"
#include "sort/spec/order.h"
#include "sort/local/strays.h"
#include "sort/task/task.h"
#include "sort/local/verify_digest.h"

#define PIECE (64 * 1024)
#define LIST_SHARD 1
#define LIST_RECORD 2
#define LIST_END 0

/* An entry of the list. */
struct expected {
    struct buf name;
    struct digest digest;
};

struct verify {
    const struct verify_config *config;
    struct verify_result *result;
    struct sort_env env;
    struct blob *digests; /* of the records, as they were read */
    uint64_t digest_count;
    uint64_t *firsts; /* by shard: the number of its first record's digest */
    size_t firsts_cap;
    struct blob *list;
    struct encoder encoder; /* into the list */
    struct buf output;      /* the list's last output shard */
    struct strays *strays;
    XXH128_hash_t wanted_sum, found_sum;
    unsigned char *piece;

    /* Of the output shard that is compared. */
    struct decoder decoder; /* of the list */
    uint64_t next_entry;    /* its mark, already read */
    struct expected expected;
    struct digest found; /* members of the present record, so far */
    bool in_record;      /* `expected` is being found */
};

static int shown(size_t len)
{
    return (int)(len < 256 ? len : 256);
}

__attribute__((format(printf, 2, 3))) static void differs(struct verify *v, const char *format, ...)
{
    struct verify_result *r = v->result;
    if (!r->same_order)
        return; /* the first one is what is told */
    r->same_order = false;
    va_list ap;
    va_start(ap, format);
    vsnprintf(r->difference, sizeof r->difference, format, ap);
    va_end(ap);
}

/* --- the task's world ------------------------------------------------------------------------- */

static int fetch(const struct verify *v, bool output, const char *name, int *fd, struct error *err)
{
    const struct verify_source *s = v->config->source;
    _cleanup_close_ int file = -1;
    int rc = file_open_unnamed(v->config->work_dir, &file, err);
    if (rc == 0)
        rc = s->fetch(s->ctx, output, name, file, err);
    if (rc == 0)
        *fd = steal_fd(&file);
    return rc;
}

static int env_pin(void *ctx, const struct sort_spec *spec,
                   int (*each)(void *arg, const struct sort_shard_info *info, struct error *err),
                   void *arg, struct sort_pinned *pinned, struct error *err)
{
    const struct verify *v = ctx;
    pinned->stamp = 1;
    return v->config->source->list(v->config->source->ctx, spec, each, arg, err);
}

static int env_open_shard(void *ctx, const char *name, int *fd, struct error *err)
{
    return fetch(ctx, false, name, fd, err);
}

static int env_read_key_map(void *ctx, const struct sort_spec *spec,
                            int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                            void *arg, struct error *err)
{
    const struct verify_source *s = ((const struct verify *)ctx)->config->source;
    return s->read_key_map(s->ctx, spec, feed, arg, err);
}

static int env_open_work_file(void *ctx, int *fd, struct error *err)
{
    const struct verify *v = ctx;
    return file_open_unnamed(v->config->work_dir, fd, err);
}

static const char *env_target_name(void *ctx, unsigned number)
{
    (void)ctx;
    (void)number;
    return "local";
}

static unsigned env_owner(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return 0;
}

/* The outputs are there: that is the point. */
static int env_output_check(void *ctx, const char *name, struct error *err)
{
    (void)ctx;
    (void)name;
    (void)err;
    return 0;
}

static int env_outputs_prune(void *ctx, bool (*wanted)(void *arg, const char *name), void *arg,
                             struct error *err)
{
    (void)ctx;
    (void)wanted;
    (void)arg;
    (void)err;
    return 0;
}

/* --- what there should be --------------------------------------------------------------------- */

static int add_to_digest(void *ctx, const char *path, size_t len, const XXH128_hash_t *digest,
                         struct error *err)
{
    (void)path;
    (void)len;
    (void)err;
    digest_add(ctx, digest);
    return 0;
}

static int read_piece(const struct verify *v, struct digester *d, const struct record_piece *p,
                      int fd, uint64_t at, struct error *err)
{
    int rc = 0;
    for (uint64_t done = 0; rc == 0 && done < p->length;) {
        size_t n = p->length - done < PIECE ? (size_t)(p->length - done) : PIECE;
        rc = file_pread_full(fd, v->piece, n, at + p->offset + done, err);
        if (rc == 0)
            rc = digester_write(d, v->piece, n, err);
        done += n;
    }
    return rc;
}

static int read_record(const struct verify *v, const struct group_record *r, int fd, uint64_t at,
                       struct digest *out, struct error *err)
{
    struct digester d;
    int rc = 0;
    digester_init(&d, add_to_digest, out);
    for (size_t i = 0; rc == 0 && i < r->piece_count; i++) {
        const struct record_piece *p = &r->pieces[i];
        rc = p->is_inline ? digester_write(&d, r->inlines + p->offset, (size_t)p->length, err)
                          : read_piece(v, &d, p, fd, at, err);
    }
    digester_done(&d);
    return rc;
}

/* One thread reads, a shard after the other, so that a shard's digests stand side by side. */
static int watch_read(void *ctx, uint32_t shard, uint32_t position, const struct group_record *r,
                      int fd, uint64_t at, struct error *err)
{
    struct verify *v = ctx;
    struct digest digest = {0};
    while (shard >= v->firsts_cap) {
        v->firsts_cap = v->firsts_cap == 0 ? 64 : 2 * v->firsts_cap;
        v->firsts = xrealloc(v->firsts, v->firsts_cap * sizeof *v->firsts);
    }
    if (position == 0)
        v->firsts[shard] = v->digest_count;
    v->digest_count++;
    int rc = read_record(v, r, fd, at, &digest, err);
    return rc != 0 ? rc : blob_append(v->digests, &digest, sizeof digest, err);
}

static int list_text(struct verify *v, uint64_t mark, const char *text, size_t len,
                     struct error *err)
{
    int rc = encoder_put_varint(&v->encoder, mark, err);
    if (rc == 0)
        rc = encoder_put_varint(&v->encoder, len, err);
    return rc != 0 ? rc : encoder_put(&v->encoder, text, len, err);
}

static int watch_ordered(void *ctx, const char *output, const char *name, size_t name_len,
                         uint32_t shard, uint32_t position, struct error *err)
{
    struct verify *v = ctx;
    struct digest digest;
    int rc = 0;
    if (v->result->shards == 0 || strcmp(output, buf_str(&v->output)) != 0) {
        buf_clear(&v->output);
        buf_puts(&v->output, output);
        v->result->shards++;
        strays_add_output(v->strays, output);
        rc = list_text(v, LIST_SHARD, output, strlen(output), err);
    }
    if (rc == 0)
        rc = blob_read(v->digests, (v->firsts[shard] + position) * sizeof digest, &digest,
                       sizeof digest, err);
    if (rc == 0)
        rc = list_text(v, LIST_RECORD, name, name_len, err);
    if (rc == 0)
        rc = encoder_put(&v->encoder, &digest, sizeof digest, err);
    if (rc != 0)
        return rc;
    v->wanted_sum.low64 += digest.sum.low64;
    v->wanted_sum.high64 += digest.sum.high64;
    v->result->records++;
    return 0;
}

static int watch_used(void *ctx, const struct name_template *t, uint64_t count, struct error *err)
{
    const struct verify *v = ctx;
    (void)count; /* the outputs are told one by one */
    return strays_add_template(v->strays, t, err);
}

static int make_list(struct verify *v, struct error *err)
{
    const struct verify_config *config = v->config;
    const struct sort_watch watch = {
        .ctx = v, .read = watch_read, .ordered = watch_ordered, .used = watch_used};
    const struct sort_task_config task_config = {
        .job_id = "verify",
        .spec = config->spec,
        .env = &v->env,
        .participants = 1,
        .memory_bytes = config->memory_bytes,
        .window_max = FORMAT_WINDOW_ALONE,
        .formats = FORMAT_FORMATS_ALONE,
        .key_map_bytes = config->key_map_bytes,
        .extract_threads = 1,
        .create_threads = 1,
        .open_shards = 1,
        .watch = &watch,
    };
    _cleanup_(sort_task_freep)
    struct sort_task *task = NULL;
    int rc = sort_task_new(&task_config, &task, err);
    if (rc == 0)
        rc = sort_task_run(task, err);
    if (rc == 0)
        rc = encoder_put_varint(&v->encoder, LIST_END, err);
    return rc != 0 ? rc : encoder_flush(&v->encoder, err);
}

/* --- what there is ---------------------------------------------------------------------------- */

static int get_text(struct verify *v, struct buf *out, struct error *err)
{
    uint64_t len = 0;
    int rc = decoder_get_bounded(&v->decoder, SORT_NAME_MAX, "a name", &len, err);
    if (rc != 0)
        return rc;
    buf_clear(out);
    buf_reserve(out, (size_t)len);
    rc = decoder_get(&v->decoder, out->data, (size_t)len, err);
    out->len = (size_t)len;
    out->data[len] = '\0';
    return rc;
}

static int get_mark(struct verify *v, struct error *err)
{
    return decoder_get_varint(&v->decoder, &v->next_entry, err);
}

/* The next record of this shard becomes what is expected, if there is one. */
static int next_record(struct verify *v, struct error *err)
{
    v->found = (struct digest){0};
    v->in_record = v->next_entry == LIST_RECORD;
    if (!v->in_record)
        return 0;
    int rc = get_text(v, &v->expected.name, err);
    if (rc == 0)
        rc = decoder_get(&v->decoder, &v->expected.digest, sizeof v->expected.digest, err);
    return rc != 0 ? rc : get_mark(v, err);
}

static int found_member(void *ctx, const char *path, size_t len, const XXH128_hash_t *digest,
                        struct error *err)
{
    struct verify *v = ctx;
    v->found_sum.low64 += digest->low64;
    v->found_sum.high64 += digest->high64;
    if (!v->in_record) {
        differs(v, "output shard '%s' has '%.*s' behind its last record", buf_str(&v->output),
                shown(len), path);
        return 0;
    }
    struct expected *e = &v->expected;
    digest_add(&v->found, digest);
    if (v->found.members < e->digest.members)
        return 0;
    v->result->compared++;
    if (!XXH128_isEqual(v->found.ordered, e->digest.ordered))
        differs(v, "output shard '%s' has '%.*s' where record '%.*s' belongs%s",
                buf_str(&v->output), shown(len), path, shown(e->name.len), buf_str(&e->name),
                len >= e->name.len && memcmp(path, e->name.data, e->name.len) == 0
                    ? ", with other members or contents"
                    : "");
    return next_record(v, err);
}

/* A tar as it comes, whose end mark is no member. */
struct tail {
    struct digester digester;
    unsigned char held[SORT_TAR_END];
    size_t count;
};

static int tail_write(void *ctx, const void *data, size_t len, struct error *err)
{
    struct tail *t = ctx;
    const unsigned char *at = data;
    size_t keep = len < sizeof t->held ? len : sizeof t->held;
    size_t room = sizeof t->held - keep;
    size_t goes = t->count > room ? t->count - room : 0;
    int rc = goes > 0 ? digester_write(&t->digester, t->held, goes, err) : 0;
    if (rc == 0 && len > keep)
        rc = digester_write(&t->digester, at, len - keep, err);
    t->count -= goes;
    memmove(t->held, t->held + goes, t->count);
    memcpy(t->held + t->count, at + len - keep, keep);
    t->count += keep;
    return rc;
}

static int tail_end(const struct tail *t, struct error *err)
{
    static const unsigned char zeros[SORT_TAR_END];
    bool whole = t->count == sizeof zeros && memcmp(t->held, zeros, sizeof zeros) == 0 &&
                 untar_between(&t->digester.untar);
    return whole ? 0 : error_set(err, E_SHARD_CORRUPT, "it does not end as a sort's output does");
}

static int read_tar(const struct verify *v, int fd, uint64_t size, struct tail *t,
                    struct error *err)
{
    int rc = 0;
    for (uint64_t at = 0; rc == 0 && at < size;) {
        size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;
        rc = file_pread_full(fd, v->piece, n, at, err);
        if (rc == 0)
            rc = tail_write(t, v->piece, n, err);
        at += n;
    }
    return rc;
}

static int never_stops(void *ctx, struct error *err)
{
    (void)ctx;
    (void)err;
    return 0;
}

static int read_output(struct verify *v, int fd, struct tail *t, struct error *err)
{
    const struct shard_format_ops *format = v->config->spec->output_shards;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_errno(err, errno, "look at a work file");
    const struct format_input in = {.fd = fd,
                                    .size = (uint64_t)st.st_size,
                                    .shard = buf_str(&v->output),
                                    .window_max = FORMAT_WINDOW_ALONE,
                                    .check = never_stops};
    int rc = format->decode == NULL
                 ? read_tar(v, fd, in.size, t, err)
                 : format_decode(format, &in, (struct sink){.write = tail_write, .ctx = t}, err);
    return rc != 0 ? rc : tail_end(t, err);
}

/* A shard that is not there, or is none, is a difference; anything else ends the comparing. */
static int judge(struct verify *v, int rc, struct error *err)
{
    bool theirs = rc == E_OBJECT_NOT_FOUND || rc == E_SHARD_CORRUPT || rc == E_CORRUPT ||
                  rc == E_SHARD_UNSUPPORTED;
    if (!theirs)
        return rc;
    differs(v, "output shard '%s': %s", buf_str(&v->output), err->message);
    *err = (struct error)ERROR_INIT;
    return 0;
}

/* Its records that were not found are passed over. */
static int compare_shard(struct verify *v, struct error *err)
{
    struct error why = ERROR_INIT;
    struct tail tail = {.count = 0};
    _cleanup_close_ int fd = -1;
    int rc = next_record(v, err);
    if (rc != 0)
        return rc;
    digester_init(&tail.digester, found_member, v);
    rc = fetch(v, true, buf_str(&v->output), &fd, &why);
    if (rc == 0)
        rc = read_output(v, fd, &tail, &why);
    digester_done(&tail.digester);
    rc = judge(v, rc, &why);
    if (rc != 0)
        return error_set(err, rc, "output shard '%s': %s", buf_str(&v->output), why.message);
    if (v->in_record)
        differs(v, "output shard '%s' ends before record '%.*s'", buf_str(&v->output),
                shown(v->expected.name.len), buf_str(&v->expected.name));
    while (rc == 0 && v->in_record)
        rc = next_record(v, err);
    return rc;
}

static int compare(struct verify *v, struct error *err)
{
    struct blob_range range = {.blob = v->list, .end = blob_size(v->list)};
    decoder_init(&v->decoder, source_blob(&range));
    int rc = get_mark(v, err);
    while (rc == 0 && v->next_entry == LIST_SHARD) {
        rc = get_text(v, &v->output, err);
        if (rc == 0)
            rc = get_mark(v, err);
        if (rc == 0)
            rc = compare_shard(v, err);
    }
    decoder_done(&v->decoder);
    v->result->same_records = XXH128_isEqual(v->wanted_sum, v->found_sum);
    return rc;
}

/* --- what there is besides -------------------------------------------------------------------- */

struct looking {
    struct verify *v;
    size_t which; /* template */
};

static int look_at(void *arg, const char *name, struct error *err)
{
    const struct looking *l = arg;
    struct verify_result *r = l->v->result;
    (void)err;
    if (strays_has(l->v->strays, l->which, name) && r->strays++ == 0)
        snprintf(r->stray, sizeof r->stray, "%s", name);
    return 0;
}

static int find_strays(struct verify *v, struct error *err)
{
    const struct verify_source *s = v->config->source;
    const char *prefix;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (prefix = strays_prefix(v->strays, i)) != NULL; i++) {
        struct looking l = {.v = v, .which = i};
        rc = s->list_outputs(s->ctx, prefix, look_at, &l, err);
    }
    return rc;
}

int verify_run(const struct verify_config *config, struct verify_result *result, struct error *err)
{
    struct verify v = {
        .config = config,
        .result = result,
        .env = {.pin_shards = env_pin,
                .open_shard = env_open_shard,
                .read_key_map = env_read_key_map,
                .open_work_file = env_open_work_file,
                .target_name = env_target_name,
                .owner = env_owner,
                .output_check = env_output_check,
                .outputs_prune = env_outputs_prune},
        .piece = xmalloc(PIECE),
    };
    v.env.ctx = &v;
    *result = (struct verify_result){.same_order = true};
    config->spec->dry_run = true;
    v.digests = blob_new(&v.env, config->memory_bytes / 4);
    v.list = blob_new(&v.env, config->memory_bytes / 4);
    v.strays = strays_new();
    encoder_init(&v.encoder, sink_blob(v.list));
    int rc = make_list(&v, err);
    if (rc == 0)
        rc = compare(&v, err);
    if (rc == 0)
        rc = find_strays(&v, err);
    strays_free(v.strays);
    encoder_done(&v.encoder);
    blob_free(v.list);
    blob_free(v.digests);
    buf_done(&v.output);
    buf_done(&v.expected.name);
    free(v.firsts);
    free(v.piece);
    return rc;
}
