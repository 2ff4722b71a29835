/* The call runs in the loop's thread, and may go on when the client and its request are gone: what
 * it needs is of its own arena. */
#include "gateway/uploads/upload_complete.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "gateway/collect.h"
#include "gateway/native_head.h"
#include "gateway/reply.h"
#include "gateway/uploads/slow_reply.h"
#include "gateway/uploads/upload_call.h"
#include "gateway/uploads/uploads.h"
#include "io/loop.h"
#include "s3/uploads/complete_body.h"
#include "s3/uploads/complete_sum.h"
#include "s3/uploads/sum_kind.h"
#include "s3/uploads/upload_reply.h"

/* A part in the document has at most so many bytes. */
enum { PART_BYTES_MAX = 400, BODY_MAX = S3_PARTS_MAX * PART_BYTES_MAX, MD5_DIGITS = 32 };

struct completion {
    struct http_request *req;      /* until the reply begins … */
    const struct gateway_call *s3; /* … and this */
    struct arena *arena;
    struct slow_reply *reply;
    const char *bucket, *key, *location;
    const char *upload, *list; /* the native call's */
    const char *old_list;      /* the same without checksums; NULL: it has none */
    const char *const *headers;
    struct s3_complete_sum sum;
};

static void completion_free(struct completion *c)
{
    arena_free(c->arena);
    free(c);
}

/* --- the reply -------------------------------------------------------------------------------- */

static void end(struct completion *c, const struct s3_failure *why, const struct buf *document)
{
    slow_reply_end(c->reply, why, document);
    completion_free(c);
}

static void end_with_error(struct completion *c, const struct error *err)
{
    const struct buf none = BUF_INIT;
    struct s3_failure why;
    upload_call_failure(err, &why);
    end(c, &why, &none);
}

static void end_with_tag(struct completion *c, const char *tag, const struct s3_object_sum *sum)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    const struct s3_failure none = {.error = S3_OK};
    const struct s3_completed completed = {
        .location = c->location, .bucket = c->bucket, .key = c->key, .etag = tag, .sum = sum};
    s3_upload_completed_document(&completed, &document);
    end(c, &none, &document);
}

/* The reply to a repetition is that of the first completion, which may have had another value. */
static int check_sum(const struct completion *c, const struct s3_object_sum *stored,
                     struct error *err)
{
    const struct s3_object_sum *given = &c->sum.sum;
    if (!c->sum.is_given || given->value.type != stored->value.type ||
        s3_object_sum_equal(given, stored))
        return 0;
    char stored_text[S3_OBJECT_SUM_VALUE_MAX], given_text[S3_OBJECT_SUM_VALUE_MAX];
    return error_set(err, E_CHECKSUM, "the object is complete, and its checksum is %s, not %s",
                     s3_object_sum_value(stored, stored_text),
                     s3_object_sum_value(given, given_text));
}

static void completed(void *arg, const struct error *failure, const struct buf *text)
{
    struct completion *c = arg;
    struct error err = *failure;
    const char *tag = NULL;
    struct s3_object_sum sum;
    bool has_sum = false;
    if (err.code == 0)
        (void)upload_reply_read(text, c->arena, &tag, &sum, &has_sum, &err);
    if (err.code == 0 && has_sum)
        (void)check_sum(c, &sum, &err);
    if (err.code != 0)
        end_with_error(c, &err);
    else
        end_with_tag(c, tag, has_sum ? &sum : NULL);
}

static void begin(void *arg)
{
    struct completion *c = arg;
    struct error err = ERROR_INIT;
    const struct upload_call spec = {.method = HTTP_POST,
                                     .upload = c->upload,
                                     .headers = c->headers,
                                     .body = c->list,
                                     .old_body = c->old_list,
                                     .is_slow = true,
                                     .done = completed,
                                     .arg = c};
    c->reply = slow_reply_new(c->req, c->s3);
    if (upload_call_start(c->req, c->s3, &spec, &err) != 0)
        end_with_error(c, &err);
}

/* --- what the request says -------------------------------------------------------------------- */

/* With its quotes or without.  The MD5 is all that a part's tag can be. */
static enum s3_error put_part(const struct s3_part *part, bool with_sum, struct buf *out,
                              struct s3_failure *why)
{
    const struct s3_sum_text sum = {.is_known = true, .value = part->sum};
    char text[S3_SUM_TEXT_MAX];
    const char *tag = part->etag + (*part->etag == '"');
    size_t len = strspn(tag, "0123456789abcdef");
    const char *rest = tag + len + (tag[len] == '"');
    if (len != MD5_DIGITS || *rest != '\0')
        return s3_fail(why, S3_INVALID_PART, "Part %u has not the entity tag %.80s", part->number,
                       part->etag);
    buf_printf(out, "%s{\"part\":%u,\"tag\":\"%.*s\"", out->len > 1 ? "," : "", part->number,
               MD5_DIGITS, tag);
    if (with_sum && part->has_sum)
        buf_printf(out, ",\"sum\":\"%s\"", s3_sum_text_print(&sum, text));
    buf_putc(out, '}');
    return S3_OK;
}

static bool has_sums(const struct s3_complete *parts)
{
    size_t i = 0;
    while (i < parts->count && !parts->parts[i].has_sum)
        i++;
    return i < parts->count;
}

static enum s3_error put_list(const struct s3_complete *parts, bool with_sums, struct buf *out,
                              struct s3_failure *why)
{
    enum s3_error e = S3_OK;
    buf_putc(out, '[');
    for (size_t i = 0; i < parts->count && e == S3_OK; i++)
        e = put_part(&parts->parts[i], with_sums, out, why);
    buf_putc(out, ']');
    return e;
}

/* A composite one is that of the list, whose checksums the target compares. */
static void add_sum(struct native_head *head, const struct s3_object_sum *sum)
{
    const struct s3_sum_text whole = {.is_known = true, .value = sum->value};
    const struct s3_sum_kind kind = {true, sum->value.type, sum->parts > 0};
    char text[S3_SUM_KIND_MAX];
    native_head_add(head, NATIVE_UPLOAD_SUMS, s3_sum_kind_print(&kind, text));
    if (!kind.is_composite)
        native_head_add_sum(head, &whole);
}

static void set_headers(struct completion *c)
{
    struct native_head head;
    native_head_begin(&head, c->arena);
    native_head_add(&head, "Content-Type", "application/json");
    native_head_conditions_of_write(&head, c->s3);
    if (c->sum.is_given)
        add_sum(&head, &c->sum.sum);
    c->headers = head.lines;
}

static void set_names(struct completion *c)
{
    const struct s3_call *s3 = &c->s3->s3;
    c->bucket = arena_strdup(c->arena, s3->bucket);
    c->key = arena_strdup(c->arena, s3->key);
    c->location = arena_strdup(c->arena, http_path(c->req));
    c->upload = arena_strdup(c->arena, upload_id_of(c->s3));
}

static enum s3_error read_request(struct completion *c, const char *data, size_t len,
                                  struct s3_failure *why)
{
    _cleanup_buf_ struct buf list = BUF_INIT, old = BUF_INIT;
    struct s3_complete parts;
    enum s3_error e = s3_complete_parse(data, len, c->arena, &parts, why);
    if (e == S3_OK)
        e = s3_complete_sum_read(&c->s3->head, &parts, &c->sum, why);
    if (e == S3_OK)
        e = put_list(&parts, true, &list, why);
    if (e == S3_OK && has_sums(&parts))
        e = put_list(&parts, false, &old, why);
    if (e != S3_OK)
        return e;
    c->list = arena_strdup(c->arena, buf_str(&list));
    if (old.len > 0)
        c->old_list = arena_strdup(c->arena, buf_str(&old));
    set_names(c);
    set_headers(c);
    return S3_OK;
}

static void collected(struct http_request *req, const struct gateway_call *call, const char *data,
                      size_t len)
{
    struct completion *c = xcalloc(1, sizeof *c);
    struct s3_failure why;
    *c = (struct completion){.req = req, .s3 = call, .arena = arena_new(4096)};
    if (read_request(c, data, len, &why) == S3_OK) {
        loop_post(gateway_config_of(call->gateway)->loop, begin, c);
        return;
    }
    completion_free(c);
    gateway_fail(req, &why);
}

/* An upload that is none is told before the document is looked at, as of AWS. */
void s3_complete_upload(struct http_request *req, const struct gateway_call *call)
{
    struct error err = ERROR_INIT;
    struct s3_failure why;
    if (upload_call_check(call, upload_id_of(call), &err) != 0) {
        upload_call_failure(&err, &why);
        gateway_fail(req, &why);
        return;
    }
    gateway_collect(req, call, BODY_MAX, collected);
}
