#include "gateway/object_attributes.h"

#include "gateway/local.h"
#include "gateway/native_head.h"
#include "gateway/reply.h"
#include "s3/attributes.h"

/* The rows of a page: the arena's. */
static void list_parts(const char *sizes, const struct part_sums *sums, struct arena *arena,
                       struct s3_object_parts *parts)
{
    struct s3_object_part *rows = arena_alloc(arena, (parts->page.max + 1) * sizeof *rows);
    struct s3_sum_value *values = arena_alloc(arena, (parts->page.max + 1) * sizeof *values);
    for (unsigned n = parts->page.after + 1; n <= parts->count && parts->listed < parts->page.max;
         n++) {
        struct s3_sum_value *value = &values[parts->listed];
        struct part_span span;
        (void)part_sizes_find(sizes, n, &span);
        rows[parts->listed++] = (struct s3_object_part){
            .number = n,
            .size = span.size,
            .sum = sums != NULL && part_sums_find(sums, n, value) ? value : NULL};
    }
    parts->parts = rows;
}

/* False: the object has no parts that are known. */
static bool find_parts(const struct forward_reply *r, struct arena *arena,
                       struct s3_object_parts *parts)
{
    struct part_sizes sizes;
    struct part_sums sums;
    struct s3_object_sum sum;
    const char *text = native_head_parts(r->headers, r->length, &sizes);
    if (text == NULL)
        return false;
    parts->count = sizes.count;
    parts->is_listed = native_head_sum(r->headers, &sum);
    if (parts->is_listed)
        list_parts(text, native_head_part_sums(r->headers, &sums) ? &sums : NULL, arena, parts);
    return true;
}

static enum s3_error read_request(const struct gateway_call *call, unsigned *asked,
                                  struct s3_parts_page *page, struct s3_failure *why)
{
    enum s3_error e = s3_attributes_asked(&call->head, asked, why);
    return e == S3_OK ? s3_attributes_page(&call->head, page, why) : e;
}

static void reply_attributes(struct http_request *req, const struct gateway_call *call,
                             const struct forward_reply *r)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    const char *modified = target_call_header(r->headers, "Last-Modified");
    struct s3_object_sum sum;
    struct s3_object_parts parts = {.count = 0};
    struct s3_failure why;
    unsigned asked;
    if (r->err.code != 0) {
        http_reply_error(req, &r->err);
        return;
    }
    if (read_request(call, &asked, &parts.page, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    bool has_sum = native_head_sum(r->headers, &sum);
    bool has_parts = find_parts(r, http_arena(req), &parts);
    const struct s3_attributes a = {.etag = native_head_bare_etag(r->headers, http_arena(req)),
                                    .sum = has_sum ? &sum : NULL,
                                    .parts = has_parts ? &parts : NULL,
                                    .size = (uint64_t)r->length};
    s3_attributes_document(asked, &a, &document);
    if (modified != NULL)
        http_reply_header(req, "Last-Modified", modified);
    gateway_reply_xml(req, &document);
}

void s3_object_attributes(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    struct s3_failure why;
    struct s3_parts_page page;
    unsigned asked;
    if (read_request(call, &asked, &page, &why) != S3_OK ||
        native_head_check_version(call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    native_head_begin(&head, http_arena(req));
    const struct forward_plan plan = {
        .method = HTTP_HEAD, .headers = head.lines, .reply = reply_attributes};
    local_or_forward(req, call, &plan);
}
