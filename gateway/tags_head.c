#include "gateway/tags_head.h"

#define NATIVE_TAGS "Dfc-Tags"

void tags_head_add(struct native_head *h, const char *text)
{
    if (*text != '\0')
        native_head_add(h, NATIVE_TAGS, text);
}

enum s3_error tags_head_add_asked(struct native_head *h, const struct gateway_call *call,
                                  struct s3_failure *why)
{
    const char *text = s3_header(&call->head, "x-amz-tagging");
    _cleanup_buf_ struct buf native = BUF_INIT;
    struct s3_tags tags;
    if (text == NULL)
        return S3_OK;
    enum s3_error e = s3_tags_parse_header(text, S3_OBJECT_TAGS_MAX, h->arena, &tags, why);
    if (e != S3_OK)
        return e;
    s3_tags_print(&tags, &native);
    tags_head_add(h, buf_str(&native));
    return S3_OK;
}

const char *tags_head_of(const struct target_call_header *headers)
{
    const char *text = target_call_header(headers, NATIVE_TAGS);
    return text != NULL ? text : "";
}

void tags_head_read(const struct target_call_header *headers, struct arena *arena,
                    struct s3_tags *out)
{
    const char *text = tags_head_of(headers);
    if (s3_tags_parse_header(text, S3_OBJECT_TAGS_MAX, arena, out, NULL) != S3_OK)
        *out = (struct s3_tags){.count = 0};
}

void tags_head_reply_count(struct http_request *req, const struct target_call_header *headers)
{
    struct s3_tags tags;
    tags_head_read(headers, http_arena(req), &tags);
    if (tags.count > 0)
        http_reply_header(req, "x-amz-tagging-count",
                          arena_printf(http_arena(req), "%zu", tags.count));
}
