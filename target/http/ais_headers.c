#include "target/http/ais_headers.h"

#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "target/store/own_meta.h"

/* "name=value, name=value": what a client has given.  A value with a comma or a name with '=' is
 * left to Dfc-Meta-*, since the SDK would read it as something else. */
static void put_custom(struct http_request *req, const struct attr *a)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    size_t pos = 0;
    const char *name, *value;
    while (attr_meta_next(a, &pos, &name, &value)) {
        if (own_meta_find(name) == NULL && strchr(name, '=') == NULL && strchr(value, ',') == NULL)
            buf_printf(&text, "%s%s=%s", text.len > 0 ? ", " : "", name, value);
    }
    if (text.len > 0)
        http_reply_header(req, "ais-custom-md", buf_str(&text));
}

/* A name of other bytes is none for a header; the SDK knows which one it has asked for. */
static void put_name(struct http_request *req, const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~')
            return;
    }
    http_reply_header(req, "ais-name", name);
}

static void put_copies(struct http_request *req, const struct bucket *b)
{
    char text[24];
    snprintf(text, sizeof text, "%u", (unsigned)b->props.copies);
    http_reply_header(req, "ais-mirror-copies", text);
}

void ais_headers_put(const struct object_call *call, const struct attr *a)
{
    struct http_request *req = call->req;
    char version[VERSION_TEXT_MAX], hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&a->checksum, hex);
    http_reply_header(req, "ais-checksum-type", checksum_name(a->checksum.type));
    http_reply_header(req, "ais-checksum-value", hex);
    http_reply_header(req, "ais-version", version_format(&a->version, version));
    put_name(req, call->name);
    http_reply_header(req, "ais-bucket-name", call->bucket->name);
    http_reply_constant(req, "ais-bucket-provider", "ais");
    http_reply_constant(req, "ais-present", "true");
    http_reply_constant(req, "ais-location", "");
    put_copies(req, call->bucket);
    put_custom(req, a);
}
