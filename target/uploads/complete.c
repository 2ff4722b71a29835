#include "target/uploads/complete.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cluster/members/location.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/copies/object_copy.h"
#include "target/node/header_lines.h"
#include "target/node/target.h"
#include "target/store/own_meta.h"
#include "target/store/put_sums.h"

enum { PIECE = 256 << 10 };

/* --- the bytes -------------------------------------------------------------------------------- */

struct reading {
    const struct completion *c;
    const struct part_table *table;
    ec_take_fn *take;
    void *ctx;
    char *piece;
    bool compares; /* parts with their checksums of S3 */
};

static int damaged_part(const struct upload *u, const struct part *part, const char *why,
                        struct error *err)
{
    mountpath_failed(u->mp, E_CORRUPT);
    log_warn("part of an upload is damaged", lstr("id", u->id), lu64("part", part->number),
             lstr("why", why));
    return error_set(err, E_PART, "part %u: its bytes are damaged (%s): send it again",
                     part->number, why);
}

static int compare_part(const struct reading *r, const struct part *part, struct s3_sum *sum,
                        struct error *err)
{
    struct s3_sum_value got;
    s3_sum_final(sum, &got);
    return s3_sum_equal(&got, &part->sum)
               ? 0
               : damaged_part(r->c->upload, part, "their checksum is another one", err);
}

/* A part is compared before its last bytes are taken, so that they become no object. */
static int read_part(const struct reading *r, const struct part *part, struct error *err)
{
    const struct upload *u = r->c->upload;
    _cleanup_(s3_sum_freep)
    struct s3_sum *sum = r->compares && part->has_sum ? s3_sum_new(part->sum.type) : NULL;
    uint64_t offset;
    int fd;
    int code = upload_open_part(u, part, &fd, &offset, err);
    for (uint64_t done = 0; code == 0 && done < part->size;) {
        size_t len = part->size - done < PIECE ? (size_t)(part->size - done) : PIECE;
        code = uploads_stopped(u->all) ? error_set(err, E_ABORTED, "the target stops")
                                       : file_pread_full(fd, r->piece, len, offset + done, err);
        done += len;
        if (code == 0 && sum != NULL)
            s3_sum_update(sum, r->piece, len);
        if (code == 0 && sum != NULL && done == part->size)
            code = compare_part(r, part, sum, err);
        if (code == 0)
            code = r->take(r->ctx, r->piece, len, err);
    }
    upload_close_part(u, fd);
    return code;
}

static int read_all(const struct completion *c, const struct part_table *table, ec_take_fn *take,
                    void *ctx, struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    const struct reading r = {
        .c = c, .table = table, .take = take, .ctx = ctx, .piece = piece, .compares = true};
    int code = 0;
    for (size_t i = 0; i < c->count && code == 0; i++)
        code = read_part(&r, part_table_find(table, c->list[i].number), err);
    return code;
}

/* --- parts that were stored before a restart -------------------------------------------------- */

static int take_into_md5(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)err;
    checksum_update(ctx, data, len);
    return 0;
}

static int check_part(const struct reading *r, const struct part *part, struct error *err)
{
    struct checksum_value md5;
    struct error why = ERROR_INIT;
    int code = read_part(r, part, &why);
    checksum_final(r->ctx, &md5);
    if (code == E_ABORTED)
        return error_set(err, code, "%s", why.message);
    if (code != 0)
        return damaged_part(r->c->upload, part, why.message, err);
    return memcmp(md5.bytes, part->md5, PART_MD5) == 0
               ? 0
               : damaged_part(r->c->upload, part, "their MD5 is another one", err);
}

/* The object would have a checksum of what is left. */
static int check_old_parts(const struct completion *c, const struct part_table *table,
                           struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    int code = 0;
    for (size_t i = 0; i < c->count && code == 0; i++) {
        const struct part *part = part_table_find(table, c->list[i].number);
        if (!upload_part_is_old(c->upload, part))
            continue;
        _cleanup_(checksum_freep)
        struct checksum *md5 = checksum_new(CHECKSUM_MD5);
        const struct reading r = {
            .c = c, .table = table, .take = take_into_md5, .ctx = md5, .piece = piece};
        code = check_part(&r, part, err);
    }
    return code;
}

/* --- the PUT ---------------------------------------------------------------------------------- */

struct feeding {
    const struct completion *c;
    const struct part_table *table;
    uint64_t left;      /* bytes */
    struct s3_sum *sum; /* of them; NULL: the completion says none */
    struct s3_sum_text wanted;
    ec_take_fn *take;
    void *take_ctx;
};

/* Slices have no checksum of S3 that a PUT would compare.  So the last bytes wait for it here. */
static int compare_whole(const struct feeding *f, struct error *err)
{
    struct s3_sum_text got = {.is_known = true};
    char got_text[S3_SUM_TEXT_MAX], want_text[S3_SUM_TEXT_MAX];
    s3_sum_final(f->sum, &got.value);
    if (s3_sum_equal(&got.value, &f->wanted.value))
        return 0;
    return error_set(err, E_CHECKSUM, "the checksum of the bytes is %s, not %s",
                     s3_sum_text_print(&got, got_text), s3_sum_text_print(&f->wanted, want_text));
}

static int take_summed(void *ctx, const void *data, size_t len, struct error *err)
{
    struct feeding *f = ctx;
    f->left -= len;
    s3_sum_update(f->sum, data, len);
    int code = f->left == 0 ? compare_whole(f, err) : 0;
    return code != 0 ? code : f->take(f->take_ctx, data, len, err);
}

static int feed_parts(void *ctx, ec_take_fn *take, void *take_ctx, struct error *err)
{
    struct feeding *f = ctx;
    const char *text =
        f->c->upload->sums.is_asked ? NULL : f->c->sum; /* else the parts have theirs */
    if (text == NULL || !s3_sum_text_parse(text, &f->wanted) || !f->wanted.is_known)
        return read_all(f->c, f->table, take, take_ctx, err);
    f->take = take;
    f->take_ctx = take_ctx;
    f->sum = s3_sum_new(f->wanted.value.type);
    int code = read_all(f->c, f->table, take_summed, f, err);
    s3_sum_free(f->sum);
    return code;
}

static bool is_header(const char *line, const char *name)
{
    size_t len = strlen(name);
    return strncasecmp(line, name, len) == 0 && line[len] == ':';
}

/* Of an upload's headers: the completion has its own checksum, and the kind of those of the parts
 * is told by the parts. */
static bool is_passed_on(const struct completion *c, const char *line)
{
    return !is_header(line, UPLOAD_SUMS_HEADER) &&
           !((c->sum != NULL || c->upload->sums.is_composite) &&
             is_header(line, OBJECT_SUM_HEADER));
}

static void put_sum_headers(struct header_lines *h, const struct completion *c,
                            const struct upload_plan *plan)
{
    if (c->sum != NULL)
        header_lines_printf(h, OBJECT_SUM_HEADER ": %s", c->sum);
    if (*plan->sum != '\0')
        header_lines_printf(h, UPLOAD_SUM_HEADER ": %s", plan->sum);
    if (*plan->part_sums != '\0')
        header_lines_printf(h, UPLOAD_PART_SUMS_HEADER ": %s", plan->part_sums);
}

static void put_headers(struct header_lines *h, const struct completion *c,
                        const struct upload_plan *plan, bool in_place)
{
    const struct upload_about *about = &c->upload->about;
    header_lines_add(h, OBJECT_COPY_HEADER ": " OBJECT_COPY_UPLOAD);
    header_lines_printf(h, UPLOAD_TAG_HEADER ": %s", plan->tag);
    if (*plan->parts != '\0')
        header_lines_printf(h, UPLOAD_PARTS_HEADER ": %s", plan->parts);
    if (in_place)
        header_lines_printf(h, UPLOAD_ID_HEADER ": %s", c->upload->id);
    if (upload_about_header(about, "Content-Type") == NULL)
        header_lines_add(h, object_type_line(h->arena, NULL));
    for (size_t at = 0; at < about->headers_len; at += strlen(about->headers + at) + 1) {
        if (is_passed_on(c, about->headers + at))
            header_lines_add(h, about->headers + at);
    }
    for (const char *const *line = c->headers; *line != NULL; line++)
        header_lines_add(h, *line);
    put_sum_headers(h, c, plan);
}

struct where {
    const struct cluster_state *state;
    const struct bucket *bucket;
    const struct node *leader;
};

/* table: NULL in place. */
static int send_put(const struct completion *c, const struct upload_plan *plan,
                    const struct part_table *table, const struct where *w,
                    struct copier_reply *reply, struct error *err)
{
    struct object_copier *copier = upload_target(c->upload)->copier;
    struct feeding f = {.c = c, .table = table, .left = plan->size};
    int errnum = fault_errno("upload.put");
    if (errnum != 0)
        return error_errno(err, errnum, "upload '%s'", c->upload->id);
    _cleanup_free_ char *url =
        location_of_copy(w->leader, w->state, w->bucket, c->upload->about.object);
    struct header_lines h;
    header_lines_begin(&h);
    put_headers(&h, c, plan, table == NULL);
    struct http_call call = {.method = HTTP_PUT,
                             .url = url,
                             .node = w->leader->id,
                             .headers = h.lines,
                             .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT,
                             .body = "",
                             .upload_length = (int64_t)plan->size,
                             .once = true};
    int code = table != NULL && plan->size > 0
                   ? object_copier_stream(copier, &call, feed_parts, &f, reply, err)
                   : object_copier_call(copier, &call, reply, err);
    header_lines_end(&h);
    return code == 0 || reply->status != 307
               ? code
               : error_set(err, E_NOT_READY, "the owners of the object are changing; ask again");
}

/* --- in place --------------------------------------------------------------------------------- */

/* A body with more bytes has a part that is not listed, which would be lost where the PUT is
 * refused. */
static bool may_be_in_place(const struct completion *c, const struct upload_plan *plan,
                            const struct where *w, bool quiet)
{
    const struct upload *u = c->upload;
    const struct target *t = upload_target(u);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    struct mountpath *mp;
    struct stat st;
    return plan->in_place && quiet && !bucket_has_copies(w->bucket) &&
           w->bucket->props.backend == NULL && strcmp(w->leader->id, t->id) == 0 &&
           mountpath_set_pick(set, w->bucket->id, u->about.object, &mp, NULL) == 0 && mp == u->mp &&
           fstat(u->body_fd, &st) == 0 && (uint64_t)st.st_size == plan->size;
}

static int take_into_sums(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)err;
    put_sums_update(ctx, data, len);
    return 0;
}

/* As the PUT would compute them of a body. */
static int sum_up(const struct completion *c, const struct part_table *table, uint64_t size,
                  enum checksum_type type, struct error *err)
{
    struct upload *u = c->upload;
    struct s3_sum_text asked;
    const char *text = c->sum;
    if (text == NULL && !u->sums.is_composite)
        text = upload_about_header(&u->about, OBJECT_SUM_HEADER);
    if (text != NULL && !s3_sum_text_parse(text, &asked))
        return error_set(err, E_INVALID, OBJECT_SUM_HEADER ": '%.64s' is no checksum of S3", text);
    struct put_sums sums;
    put_sums_begin(
        &sums, &(struct object_put_spec){.checksum = type, .sum = text != NULL ? &asked : NULL});
    int code = 0;
    if (type != CHECKSUM_NONE || text != NULL || u->sums.is_asked)
        code = read_all(c, table, take_into_sums, &sums, err);
    if (code == 0)
        code = put_sums_end(&sums, size, &u->body.checksum, u->body_sum, err);
    put_sums_done(&sums);
    return code;
}

static int make_ready(const struct completion *c, const struct part_table *table, uint64_t size,
                      const struct where *w, struct error *err)
{
    struct upload *u = c->upload;
    int code = sum_up(c, table, size, w->bucket->props.checksum, err);
    if (code != 0)
        return code;
    free(u->body_path);
    u->body_path = upload_dir_file(u->mp, u->id, "body");
    u->body.mp = u->mp;
    u->body.path = u->body_path;
    u->body.size = size;
    u->body.sum = u->body_sum;
    pthread_mutex_lock(&u->lock);
    u->file = &u->body;
    pthread_mutex_unlock(&u->lock);
    return 0;
}

int upload_ready(struct uploads *all, const char *id, uint64_t bucket_id, const char *object,
                 struct upload **out, struct error *err)
{
    struct upload *u = uploads_find(all, id);
    bool is_ready = false;
    if (u != NULL) {
        pthread_mutex_lock(&u->lock);
        is_ready = u->file != NULL && u->about.bucket_id == bucket_id &&
                   strcmp(u->about.object, object) == 0;
        pthread_mutex_unlock(&u->lock);
    }
    if (!is_ready && u != NULL)
        upload_unref(u);
    *out = is_ready ? u : NULL;
    return is_ready ? 0 : upload_not_found(id, err);
}

/* --- all of it -------------------------------------------------------------------------------- */

/* What the list lacks, in the words of the call. */
static int refuse(const struct completion *c, const struct upload_plan *plan, struct error *err)
{
    static const struct {
        int code;
        const char *words;
    } rows[] = {
        [UPLOAD_EMPTY] = {E_INVALID, "the list of parts is empty"},
        [UPLOAD_ORDER] = {E_PART_ORDER, "its number is not above the one before"},
        [UPLOAD_MISSING] = {E_PART, "it is not stored"},
        [UPLOAD_OTHER_BYTES] = {E_PART, "it is stored with another tag"},
        [UPLOAD_OTHER_SUM] = {E_PART, "it is stored with another checksum"},
        [UPLOAD_SMALL] = {E_PART_SMALL, "it is below 5 MiB, and not the last"},
    };
    if (plan->verdict == UPLOAD_EMPTY)
        return error_set(err, rows[UPLOAD_EMPTY].code, "%s", rows[UPLOAD_EMPTY].words);
    return error_set(err, rows[plan->verdict].code, "part %u: %s", c->list[plan->at].number,
                     rows[plan->verdict].words);
}

/* UPLOAD_COMPLETING from here on.  *quiet: nobody writes to the body. */
static int enter(struct upload *u, bool *quiet, json_t **reply, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&u->lock);
    *quiet = u->in_body == 0;
    if (u->done != NULL)
        *reply = json_deep_copy(u->done);
    else if ((code = upload_check_open(u, err)) == 0)
        u->state = UPLOAD_COMPLETING;
    pthread_mutex_unlock(&u->lock);
    return code;
}

/* A PUT in place that has not answered may still give the body the object's name, and one that
 * failed late has done so: nobody writes to it before that is known, which is when the upload is
 * opened anew. */
static void leave(struct upload *u, bool is_known)
{
    pthread_mutex_lock(&u->lock);
    u->file = NULL;
    if (is_known)
        u->state = UPLOAD_OPEN;
    pthread_mutex_unlock(&u->lock);
}

static bool has_one_name(const struct upload *u)
{
    struct stat st;
    return fstat(u->body_fd, &st) == 0 && st.st_nlink == 1;
}

static int find_leader(const struct upload *u, struct where *w, struct error *err)
{
    w->bucket = bmd_bucket_by_id(&w->state->bmd, u->about.bucket_id);
    if (w->bucket == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    return object_copy_owner(w->state, w->bucket, u->about.object, &w->leader, err);
}

/* Of the object: that of its parts, or the one of the request, which its bytes have. */
static const char *sum_of(const struct completion *c, const struct upload_plan *plan)
{
    struct s3_sum_text sum;
    if (*plan->sum != '\0')
        return plan->sum;
    return c->sum != NULL && s3_sum_text_parse(c->sum, &sum) && sum.is_known ? c->sum : "";
}

static int reply_of(const struct completion *c, const struct upload_plan *plan,
                    const struct buf *put, json_t **out, struct error *err)
{
    const char *version = "", *etag = "";
    _cleanup_json_ json_t *doc = NULL;
    int code = json_parse(put->data, put->len, &doc, err);
    if (code == 0)
        code = json_get_str(doc, "", "version", &version, err);
    if (code == 0)
        code = json_get_str(doc, "", "etag", &etag, err);
    if (code != 0)
        return error_recode(err, E_INTERNAL, "the reply of the PUT");
    *out = upload_reply(version, etag, plan->size, plan->tag, sum_of(c, plan));
    return 0;
}

static int put_object(const struct completion *c, const struct upload_plan *plan,
                      const struct part_table *table, bool quiet, bool *is_known, json_t **reply,
                      struct error *err)
{
    _cleanup_state_ const struct cluster_state *state =
        state_current(upload_target(c->upload)->state);
    struct where w = {.state = state};
    struct copier_reply put = {.status = 0};
    int code = find_leader(c->upload, &w, err);
    if (code != 0)
        return code;
    bool in_place = may_be_in_place(c, plan, &w, quiet);
    if (in_place && (code = make_ready(c, table, plan->size, &w, err)) != 0)
        return code;
    code = send_put(c, plan, in_place ? NULL : table, &w, &put, err);
    *is_known = !in_place || (put.status != 0 && has_one_name(c->upload));
    if (code == 0)
        code = reply_of(c, plan, &put.body, reply, err);
    buf_done(&put.body);
    return code;
}

/* What the request says of the whole object, where the parts have checksums. */
static int check_sum(const struct completion *c, const struct upload_plan *plan, struct error *err)
{
    char kind[S3_SUM_KIND_MAX];
    if (*plan->sum == '\0')
        return 0;
    s3_sum_kind_print(&c->upload->sums, kind);
    if (c->kind != NULL && strcmp(c->kind, kind) != 0)
        return error_set(err, E_CHECKSUM, "the upload has checksums %s, and the completion %.40s",
                         kind, c->kind);
    if (c->sum != NULL && strcmp(c->sum, plan->sum) != 0)
        return error_set(err, E_CHECKSUM, "the checksum of the parts is %s, not %.80s", plan->sum,
                         c->sum);
    return 0;
}

static int complete_parts(const struct completion *c, const struct part_table *table, bool quiet,
                          bool *is_known, json_t **reply, struct error *err)
{
    const struct s3_sum_kind *sums = &c->upload->sums;
    const struct upload_plan plan = upload_plan_make(table, sums, c->list, c->count);
    struct completion with_sum = *c;
    if (plan.verdict != UPLOAD_COMPLETE)
        return refuse(c, &plan, err);
    int code = check_sum(c, &plan, err);
    if (code == 0)
        code = check_old_parts(c, table, err);
    if (sums->is_asked)
        with_sum.sum = sums->is_composite ? NULL : plan.sum;
    return code != 0 ? code : put_object(&with_sum, &plan, table, quiet, is_known, reply, err);
}

int upload_complete(const struct completion *c, json_t **reply, struct error *err)
{
    struct part_table table;
    bool quiet, is_known = true;
    *reply = NULL;
    int code = enter(c->upload, &quiet, reply, err);
    if (code != 0 || *reply != NULL)
        return code;
    code = upload_parts(c->upload, &table, err);
    if (code == 0) {
        code = complete_parts(c, &table, quiet, &is_known, reply, err);
        part_table_clear(&table);
    }
    if (code == 0)
        upload_finish(c->upload, json_deep_copy(*reply)); /* each thread has its own */
    else
        leave(c->upload, is_known);
    return code;
}
