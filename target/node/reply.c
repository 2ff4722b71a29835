#include "target/node/reply.h"

#include "common/buf.h"
#include "common/clock.h"
#include "target/format/attr.h"
#include "target/node/call.h"
#include "target/store/own_meta.h"

void object_reply_meta(struct http_request *req, const struct attr *a, bool to_peer)
{
    size_t pos = 0;
    const char *name, *value;
    while (attr_meta_next(a, &pos, &name, &value)) {
        const struct own_meta *own = own_meta_find(name);
        if (own != NULL && own->given != NULL)
            http_reply_header(req, own->given, value);
        if (own != NULL && !to_peer)
            continue;
        char header[sizeof OBJECT_META_PREFIX + ATTR_META_MAX];
        snprintf(header, sizeof header, OBJECT_META_PREFIX "%s", name);
        http_reply_header(req, header, value);
    }
}

void object_reply_kept(struct http_request *req, const struct attr *a)
{
    for (const struct own_meta *own = own_metas; own->name != NULL; own++) {
        const char *value = own->is_kept ? attr_meta_find(a, own->name) : NULL;
        if (value != NULL)
            http_reply_header(req, own->given, value);
    }
}

void object_reply_tags(const struct object_call *call, const struct attr *a, const char *etag)
{
    const char *md5 = object_call_md5(call, a);
    http_reply_header(call->req, "ETag", etag);
    if (md5 != NULL)
        http_reply_header(call->req, OBJECT_MD5_HEADER, md5);
}

/* GET and HEAD give it with the metadata. */
static void reply_sum(const struct object_call *call, const struct attr *a)
{
    const char *sum = attr_meta_find(a, OBJECT_SUM);
    if (sum != NULL)
        http_reply_header(call->req, OBJECT_SUM_HEADER, sum);
}

json_t *object_reply_size(const struct attr *a)
{
    char hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&a->checksum, hex);
    json_t *checksum = json_pack("{ss ss}", "type", checksum_name(a->checksum.type), "value", hex);
    return json_pack("{sI so}", "size", (json_int_t)a->size, "checksum", checksum);
}

/* Written by hand: a document of jansson costs 2 us of a small PUT. */
static void put_kept(struct buf *out, const struct attr *a, const char *version, const char *etag)
{
    char hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&a->checksum, hex);
    buf_printf(out,
               "{\"size\":%llu,\"checksum\":{\"type\":\"%s\",\"value\":\"%s\"},"
               "\"version\":\"%s\",\"etag\":\"",
               (unsigned long long)a->size, checksum_name(a->checksum.type), hex, version);
    buf_put_json_escaped(out, etag, strlen(etag));
    buf_puts(out, "\"}");
}

static void reply_kept(const struct object_call *call, const struct attr *a)
{
    char version[VERSION_TEXT_MAX], etag[OBJECT_ETAG_MAX], date[32];
    _cleanup_buf_ struct buf text = BUF_INIT;
    version_format(&a->version, version);
    object_call_etag(call, a, etag);
    put_kept(&text, a, version, etag);
    object_reply_tags(call, a, etag);
    reply_sum(call, a);
    http_reply_header(call->req, "Last-Modified", clock_format_http(a->modified_ms / 1000, date));
    http_reply_data(call->req, 200, "application/json", text.data, text.len);
}

void object_reply_stored(const struct object_call *call, const struct attr *attr, const char *etag)
{
    if (attr != NULL) {
        reply_kept(call, attr);
        return;
    }
    json_t *doc = json_pack("{ss}", "etag", etag);
    if (*etag != '\0')
        http_reply_header(call->req, "ETag", etag);
    http_reply_json(call->req, 200, doc);
    json_decref(doc);
}
