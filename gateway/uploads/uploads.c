#include "gateway/uploads/uploads.h"

#include <strings.h>

#include "common/jsonx.h"
#include "common/parse.h"
#include "gateway/body.h"
#include "gateway/forward.h"
#include "gateway/native_head.h"
#include "gateway/reply.h"
#include "gateway/tags_head.h"
#include "gateway/uploads/upload_call.h"
#include "s3/uploads/complete_body.h"
#include "s3/uploads/sum_kind.h"
#include "s3/uploads/upload_reply.h"

/* --- what requests and replies say ------------------------------------------------------------ */

const char *upload_id_of(const struct gateway_call *call)
{
    return s3_query_get(&call->s3.query, "uploadId");
}

enum s3_error upload_part_query(const struct gateway_call *call, struct arena *arena,
                                const char **out, struct s3_failure *why)
{
    const char *text = s3_query_get(&call->s3.query, "partNumber");
    uint64_t number;
    if (text == NULL || parse_u64(text, &number, NULL) != 0 || number == 0 || number > S3_PARTS_MAX)
        return s3_fail(why, S3_INVALID_ARGUMENT, "partNumber must be 1 to %d", S3_PARTS_MAX);
    *out = arena_printf(arena, "part=%llu", (unsigned long long)number);
    return S3_OK;
}

int upload_reply_read(const struct buf *text, struct arena *arena, const char **tag,
                      struct s3_object_sum *sum, bool *has_sum, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *sum_text = "";
    int code = json_parse(text->data, text->len, &doc, err);
    if (code == 0)
        code = json_need_str(doc, "", "tag", tag, err);
    if (code == 0)
        code = json_get_str(doc, "", "sum", &sum_text, err);
    if (code != 0)
        return code;
    *tag = arena_strdup(arena, *tag);
    *has_sum = s3_object_sum_parse(sum_text, sum);
    return 0;
}

static void fail(struct http_request *req, const struct error *err)
{
    struct s3_failure why;
    upload_call_failure(err, &why);
    gateway_fail(req, &why);
}

/* A request that is parked, and its call; of the request's arena. */
struct asked {
    struct http_request *req;
    const struct gateway_call *s3;
    struct s3_sum_kind kind; /* of a new upload */
};

static void start(const struct asked *a, const struct upload_call *spec)
{
    struct error err = ERROR_INIT;
    if (upload_call_start(a->req, a->s3, spec, &err) != 0)
        fail(a->req, &err);
}

/* --- CreateMultipartUpload -------------------------------------------------------------------- */

static void reply_begun(const struct asked *a, const char *id)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    s3_upload_begun_document(a->s3->s3.bucket, a->s3->s3.key, id, &document);
    if (a->kind.is_asked) {
        http_reply_header(a->req, "x-amz-checksum-algorithm", s3_sum_algorithm(a->kind.type));
        http_reply_header(a->req, "x-amz-checksum-type", s3_sum_kind_text(&a->kind));
    }
    gateway_reply_xml(a->req, &document);
}

static void begun(void *arg, const struct error *failure, const struct buf *text)
{
    const struct asked *a = arg;
    _cleanup_json_ json_t *doc = NULL;
    struct error err = *failure;
    const char *id = NULL;
    if (err.code == 0 && json_parse(text->data, text->len, &doc, &err) == 0)
        (void)json_need_str(doc, "", "upload", &id, &err);
    if (err.code != 0)
        fail(a->req, &err);
    else
        reply_begun(a, id);
}

/* A target of an earlier build knows only of a checksum of the whole object. */
static void add_kind(struct native_head *head, const struct s3_sum_kind *kind)
{
    const struct s3_sum_text sum = {.value.type = kind->type};
    char text[S3_SUM_KIND_MAX];
    if (!kind->is_asked)
        return;
    native_head_add(head, NATIVE_UPLOAD_SUMS, s3_sum_kind_print(kind, text));
    if (!kind->is_composite)
        native_head_add_sum(head, &sum);
}

void s3_create_upload(struct http_request *req, const struct gateway_call *call)
{
    struct asked *a = arena_alloc(http_arena(req), sizeof *a);
    struct native_head head;
    struct s3_failure why;
    *a = (struct asked){.req = req, .s3 = call};
    native_head_begin(&head, http_arena(req));
    if (body_check_none(req, call, &why) != S3_OK ||
        native_head_content(&head, call, &why) != S3_OK ||
        tags_head_add_asked(&head, call, &why) != S3_OK ||
        s3_sum_kind_read(&call->head, &a->kind, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    add_kind(&head, &a->kind);
    const struct upload_call spec = {
        .method = HTTP_POST, .headers = head.lines, .done = begun, .arg = a};
    start(a, &spec);
}

/* --- UploadPart ------------------------------------------------------------------------------- */

/* The target's, or that of the request. */
static void reply_sum(struct http_request *req, const struct body *body,
                      const struct s3_object_sum *stored)
{
    struct s3_sum_text sum = {.is_known = false};
    char text[S3_SUM_BASE64_MAX];
    if (stored != NULL)
        sum.value = stored->value;
    else if (!body_sum(body, &sum))
        return;
    http_reply_header(req, s3_sum_header(sum.value.type), s3_sum_print(&sum.value, text));
}

/* The request itself was looked at: what the target does not take is another algorithm. */
static void fail_part(struct http_request *req, const struct error *err)
{
    struct s3_failure why;
    upload_call_failure(err, &why);
    if (err->code == E_INVALID)
        s3_fail(&why, S3_INVALID_REQUEST, "%s", err->message);
    gateway_fail(req, &why);
}

static void reply_part(struct http_request *req, const struct gateway_call *call,
                       const struct forward_reply *r)
{
    (void)call;
    struct error err = r->err;
    const char *tag;
    struct s3_object_sum sum;
    bool has_sum = false;
    if (err.code == 0)
        (void)upload_reply_read(&r->text, http_arena(req), &tag, &sum, &has_sum, &err);
    if (err.code != 0) {
        fail_part(req, &err);
        return;
    }
    http_reply_header(req, "ETag", arena_printf(http_arena(req), "\"%s\"", tag));
    reply_sum(req, r->body, has_sum ? &sum : NULL);
    http_reply_empty(req, 200);
}

static enum s3_error begin_part(struct http_request *req, const struct gateway_call *call,
                                struct upload_call *spec, struct body **body,
                                struct s3_failure *why)
{
    enum s3_error e = upload_part_query(call, http_arena(req), &spec->query, why);
    return e == S3_OK ? body_new(call, http_content_length(req), body, why) : e;
}

void s3_upload_part(struct http_request *req, const struct gateway_call *call)
{
    struct upload_call spec = {.method = HTTP_PUT, .upload = upload_id_of(call)};
    struct native_head head;
    struct s3_failure why;
    struct error err = ERROR_INIT;
    struct s3_sum_text sum;
    _cleanup_(body_freep)
    struct body *body = NULL;
    _cleanup_buf_ struct buf url = BUF_INIT;
    if (begin_part(req, call, &spec, &body, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    if (upload_call_url(req, call, &spec, &url, &err) != 0) {
        fail(req, &err);
        return;
    }
    const char *md5 = s3_header(&call->head, "Content-MD5"); /* the target compares it */
    native_head_begin(&head, http_arena(req));
    if (md5 != NULL)
        native_head_add(&head, "Content-MD5", md5);
    if (body_sum(body, &sum))
        native_head_add_sum(&head, &sum);
    const struct forward_plan plan = {
        .method = HTTP_PUT, .headers = head.lines, .body = steal(body), .reply = reply_part};
    forward_to(req, call, &plan, buf_str(&url));
}

/* --- AbortMultipartUpload --------------------------------------------------------------------- */

static void aborted(void *arg, const struct error *err, const struct buf *text)
{
    (void)text;
    const struct asked *a = arg;
    if (err->code != 0)
        fail(a->req, err);
    else
        http_reply_empty(a->req, 204);
}

void s3_abort_upload(struct http_request *req, const struct gateway_call *call)
{
    struct asked *a = arena_alloc(http_arena(req), sizeof *a);
    *a = (struct asked){.req = req, .s3 = call};
    const struct upload_call spec = {
        .method = HTTP_DELETE, .upload = upload_id_of(call), .done = aborted, .arg = a};
    start(a, &spec);
}
