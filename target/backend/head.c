#include "target/backend/head.h"

#include <string.h>
#include <strings.h>

#include "common/clock.h"
#include "target/backend/meta.h"

static void keep_text(char *out, size_t size, const char *text)
{
    if (text != NULL && strlen(text) < size)
        memcpy(out, text, strlen(text) + 1);
}

/* "aws-chunked" is how the object was once sent, and no encoding of its bytes. */
static void keep_encoding(struct backend_facts *out, const char *text)
{
    if (text != NULL && strcmp(text, "identity") != 0 && strcmp(text, "aws-chunked") != 0)
        keep_text(out->encoding, sizeof out->encoding, text);
}

void backend_read_head(const struct backend_ops *ops, const struct http_head *head,
                       struct backend_facts *out)
{
    const char *range = head->header(head, "Content-Range");
    const char *modified = head->header(head, "Last-Modified");
    const char *coding = head->header(head, "Transfer-Encoding");
    uint64_t length;
    *out = (struct backend_facts){
        .status = head->status, .length = head->content_length, .size = -1, .modified_s = -1};
    out->ends = out->length >= 0 || (coding != NULL && strcasecmp(coding, "chunked") == 0);
    keep_text(out->etag, sizeof out->etag, head->header(head, "ETag"));
    keep_text(out->content_type, sizeof out->content_type, head->header(head, "Content-Type"));
    if (modified == NULL || clock_parse_http(modified, &out->modified_s) != 0)
        out->modified_s = -1;
    keep_encoding(out, head->header(head, "Content-Encoding"));
    if (out->status == 200)
        out->size = out->length;
    else if (out->status == 206 && range != NULL &&
             !backend_parse_content_range(range, &out->offset, &length, &out->size))
        out->size = -1;
    ops->sum(head, &out->sum);
    backend_meta_read(ops, head, out);
    if (ops->facts != NULL)
        ops->facts(head, out);
}
