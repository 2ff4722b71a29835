#include "gateway/object_part.h"

#include "common/parse.h"
#include "gateway/forward.h"
#include "gateway/native_head.h"
#include "gateway/reply.h"
#include "gateway/tags_head.h"
#include "s3/uploads/complete_body.h"

static bool number_of(const struct gateway_call *call, uint64_t *out)
{
    const char *text = s3_query_get(&call->s3.query, PART_NUMBER);
    return parse_u64(text, out, NULL) == 0 && *out >= 1 && *out <= S3_PARTS_MAX;
}

enum s3_error object_part_check(const struct gateway_call *call, struct s3_failure *why)
{
    uint64_t number;
    if (s3_header(&call->head, "Range") != NULL)
        return s3_fail(why, S3_INVALID_REQUEST, "A read has a Range or a partNumber, not both");
    if (!number_of(call, &number))
        return s3_fail(why, S3_INVALID_ARGUMENT, "partNumber must be 1 to %d", S3_PARTS_MAX);
    return S3_OK;
}

/* --- the bytes -------------------------------------------------------------------------------- */

/* Of the part; of all of the object where this is its only part. */
static void reply_sum(struct http_request *req, const struct gateway_call *call,
                      const struct forward_reply *r, bool has_parts)
{
    struct part_sums sums;
    struct s3_object_sum object;
    struct s3_sum_value sum;
    char text[S3_SUM_BASE64_MAX];
    uint64_t number = 0;
    (void)number_of(call, &number);
    if (!native_head_wants_sum(call) || !native_head_sum(r->headers, &object))
        return;
    if (!has_parts) {
        native_head_reply_sum(req, r->headers);
    } else if (native_head_part_sums(r->headers, &sums) &&
               part_sums_find(&sums, (unsigned)number, &sum)) {
        http_reply_header(req, s3_sum_header(sum.type), s3_sum_print(&sum, text));
        http_reply_header(req, "x-amz-checksum-type", s3_object_sum_type(&object));
    }
}

static void reply_head(struct http_request *req, const struct gateway_call *call,
                       const struct forward_reply *r)
{
    struct part_sizes sizes;
    native_head_reply(req, call, r->headers);
    tags_head_reply_count(req, r->headers);
    bool has_parts = native_head_parts(r->headers, forward_reply_total(r), &sizes) != NULL;
    reply_sum(req, call, r, has_parts);
    if (has_parts)
        http_reply_header(req, "x-amz-mp-parts-count",
                          arena_printf(http_arena(req), "%u", sizes.count));
}

static void reply_part(struct http_request *req, const struct gateway_call *call,
                       const struct forward_reply *r)
{
    struct s3_failure why;
    if (r->err.code == E_PRECONDITION) {
        s3_fail(&why, S3_SLOW_DOWN, "The object was replaced meanwhile; send the request again");
        gateway_fail(req, &why);
        return;
    }
    if (r->err.code != 0) {
        http_reply_error(req, &r->err);
        return;
    }
    reply_head(req, call, r);
    forward_reply_bytes(req, r->status, r);
}

/* A part of no bytes has no range: its reply is that to the HEAD. */
static void read_part(struct http_request *req, const struct gateway_call *call,
                      const struct forward_reply *head, const struct part_span *span)
{
    const char *etag = target_call_header(head->headers, "ETag");
    struct native_head lines;
    native_head_begin(&lines, http_arena(req));
    if (etag != NULL)
        native_head_add(&lines, "If-Match", etag);
    struct forward_plan plan = {.method = HTTP_GET, .reply = reply_part};
    if (span->size > 0) {
        plan.range =
            arena_printf(http_arena(req), "bytes=%llu-%llu", (unsigned long long)span->offset,
                         (unsigned long long)(span->offset + span->size - 1));
        native_head_add(&lines, "Range", plan.range);
    }
    plan.headers = lines.lines;
    forward_start(req, call, &plan);
}

/* --- which bytes ------------------------------------------------------------------------------ */

static bool find_span(const struct forward_reply *head, unsigned number, struct part_span *out)
{
    struct part_sizes sizes;
    const char *text = native_head_parts(head->headers, head->length, &sizes);
    if (text != NULL)
        return part_sizes_find(text, number, out);
    *out = (struct part_span){.size = head->length > 0 ? (uint64_t)head->length : 0};
    return number == 1;
}

static void head_replied(struct http_request *req, const struct gateway_call *call,
                         const struct forward_reply *r)
{
    struct s3_failure why;
    struct part_span span;
    uint64_t number = 0;
    (void)number_of(call, &number);
    if (r->err.code == E_NOT_MODIFIED) {
        reply_head(req, call, r);
        http_reply_empty(req, 304);
    } else if (r->err.code != 0) {
        http_reply_error(req, &r->err);
    } else if (!find_span(r, (unsigned)number, &span)) {
        s3_fail(&why, S3_INVALID_PART_NUMBER, NULL);
        gateway_fail(req, &why);
    } else if (span.size == 0 && r->length > 0) {
        reply_head(req, call, r);
        http_reply_empty(req, 206);
    } else {
        read_part(req, call, r, &span);
    }
}

void object_part_read(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    native_head_begin(&head, http_arena(req));
    native_head_conditions_of_read(&head, call);
    const struct forward_plan plan = {
        .method = HTTP_HEAD, .headers = head.lines, .reply = head_replied};
    forward_start(req, call, &plan);
}
