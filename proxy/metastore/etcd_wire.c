#include "proxy/metastore/etcd_wire.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

enum { OPERATIONS_FLAT_MAX = 100, OPERATIONS_NESTED = 60 };

/* --- base64 ---------------------------------------------------------------------------------- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void etcd_base64_put(struct buf *out, const void *data, size_t len)
{
    const unsigned char *in = data;
    buf_reserve(out, (len + 2) / 3 * 4);
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned bits = (unsigned)in[i] << 16 | (left > 1 ? (unsigned)in[i + 1] << 8 : 0) |
                        (left > 2 ? in[i + 2] : 0);
        buf_putc(out, alphabet[bits >> 18]);
        buf_putc(out, alphabet[bits >> 12 & 63]);
        buf_putc(out, left > 1 ? alphabet[bits >> 6 & 63] : '=');
        buf_putc(out, left > 2 ? alphabet[bits & 63] : '=');
    }
}

/* The value of four characters, of which the last `padding` are '='. */
static int quad(const char *text, size_t padding, unsigned *out)
{
    unsigned bits = 0;
    for (size_t i = 0; i < 4; i++) {
        const char *place = i < 4 - padding ? memchr(alphabet, text[i], 64) : alphabet;
        if (place == NULL)
            return E_JSON;
        bits = bits << 6 | (unsigned)(place - alphabet);
    }
    *out = bits;
    return (bits & ((1u << 8 * padding) - 1)) == 0 ? 0 : E_JSON;
}

int etcd_base64_parse(const char *text, struct buf *out, struct error *err)
{
    size_t len = strlen(text);
    size_t end = len;
    while (end > 0 && len - end < 2 && text[end - 1] == '=')
        end--;
    int r = len % 4 == 0 ? 0 : E_JSON;
    for (size_t i = 0; r == 0 && i < len; i += 4) {
        size_t padding = i + 4 == len ? len - end : 0;
        unsigned bits;
        if ((r = quad(text + i, padding, &bits)) != 0)
            break;
        const char bytes[] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        buf_append(out, bytes, 3 - padding);
    }
    return r == 0 ? 0 : error_set(err, E_JSON, "etcd: '%.40s' is not base64", text);
}

/* --- requests -------------------------------------------------------------------------------- */

static json_t *base64(const void *data, size_t len)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    etcd_base64_put(&text, data, len);
    return json_string(buf_str(&text));
}

static json_t *base64_text(const char *text)
{
    return base64(text, strlen(text));
}

static json_t *u64_text(uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return json_string(text);
}

json_t *etcd_put(const char *key, const void *value, size_t len, uint64_t lease)
{
    json_t *put = json_pack("{s:o, s:o}", "key", base64_text(key), "value", base64(value, len));
    if (lease != 0)
        json_object_set_new(put, "lease", u64_text(lease));
    return json_pack("{s:o}", "request_put", put);
}

json_t *etcd_delete(const char *key)
{
    return json_pack("{s:{s:o}}", "request_delete_range", "key", base64_text(key));
}

json_t *etcd_get(const char *key)
{
    return json_pack("{s:{s:o}}", "request_range", "key", base64_text(key));
}

json_t *etcd_if_created(const char *key, uint64_t revision)
{
    return json_pack("{s:o, s:s, s:s, s:o}", "key", base64_text(key), "target", "CREATE", "result",
                     "EQUAL", "create_revision", u64_text(revision));
}

json_t *etcd_if_changed(const char *key, uint64_t revision)
{
    return json_pack("{s:o, s:s, s:s, s:o}", "key", base64_text(key), "target", "MOD", "result",
                     "EQUAL", "mod_revision", u64_text(revision));
}

static json_t *nested(json_t *operations, size_t first)
{
    json_t *group = json_array();
    for (size_t i = first; i < first + OPERATIONS_NESTED && i < json_array_size(operations); i++)
        json_array_append(group, json_array_get(operations, i));
    return json_pack("{s:{s:o}}", "request_txn", "success", group);
}

json_t *etcd_txn(json_t *compare, json_t *success, json_t *failure)
{
    json_t *operations = success;
    if (json_array_size(success) > OPERATIONS_FLAT_MAX) {
        operations = json_array();
        for (size_t i = 0; i < json_array_size(success); i += OPERATIONS_NESTED)
            json_array_append_new(operations, nested(success, i));
        json_decref(success);
    }
    return json_pack("{s:o, s:o, s:o}", "compare", compare, "success", operations, "failure",
                     failure);
}

json_t *etcd_range(const char *first, const char *end, uint64_t revision, unsigned limit)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "key", base64_text(first), "range_end",
                     base64_text(end), "revision", u64_text(revision), "limit", u64_text(limit));
}

/* --- answers --------------------------------------------------------------------------------- */

int etcd_u64(json_t *obj, const char *field, uint64_t *out, struct error *err)
{
    const char *text = NULL;
    *out = 0;
    int r = json_get_str(obj, "", field, &text, err);
    if (r != 0 || text == NULL)
        return r;
    return parse_u64(text, out, NULL) == 0
               ? 0
               : error_set(err, E_JSON, "etcd: field '%s': '%.40s' is no number", field, text);
}

void etcd_kvs_done(struct etcd_kvs *kvs)
{
    for (size_t i = 0; i < kvs->count; i++) {
        free(kvs->kvs[i].key);
        buf_done(&kvs->kvs[i].value);
    }
    free(kvs->kvs);
    *kvs = (struct etcd_kvs){0};
}

static int kv_parse(json_t *doc, struct etcd_kv *out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf key = BUF_INIT;
    const char *key_text = NULL;
    const char *value_text = "";
    int r;
    if ((r = json_need_str(doc, "kvs", "key", &key_text, err)) != 0 ||
        (r = json_get_str(doc, "kvs", "value", &value_text, err)) != 0 ||
        (r = etcd_u64(doc, "create_revision", &out->create_revision, err)) != 0 ||
        (r = etcd_u64(doc, "mod_revision", &out->mod_revision, err)) != 0 ||
        (r = etcd_base64_parse(key_text, &key, err)) != 0)
        return r;
    out->key = xstrdup(buf_str(&key));
    return etcd_base64_parse(value_text, &out->value, err);
}

static int header_revision(json_t *reply, uint64_t *out, struct error *err)
{
    json_t *header = NULL;
    int r = json_get_object(reply, "", "header", &header, err);
    *out = 0;
    return r != 0 || header == NULL ? r : etcd_u64(header, "revision", out, err);
}

int etcd_kvs_parse(json_t *reply, struct etcd_kvs *out, struct error *err)
{
    json_t *kvs = NULL;
    int r;
    *out = (struct etcd_kvs){0};
    if ((r = header_revision(reply, &out->revision, err)) != 0 ||
        (r = json_get_bool(reply, "", "more", &out->more, err)) != 0 ||
        (r = json_get_array(reply, "", "kvs", &kvs, err)) != 0)
        return r;
    size_t count = json_array_size(kvs);
    out->kvs = xcalloc(count > 0 ? count : 1, sizeof out->kvs[0]);
    for (out->count = 0; r == 0 && out->count < count; out->count++)
        r = kv_parse(json_array_get(kvs, out->count), &out->kvs[out->count], err);
    if (r != 0)
        etcd_kvs_done(out);
    return r;
}

int etcd_txn_kvs_parse(json_t *reply, size_t n, struct etcd_kvs *out, struct error *err)
{
    json_t *responses = NULL;
    int r = json_get_array(reply, "", "responses", &responses, err);
    if (r != 0)
        return r;
    json_t *range = json_object_get(json_array_get(responses, n), "response_range");
    if (range == NULL)
        return error_set(err, E_JSON, "etcd: the transaction's answer has no range %zu", n);
    return etcd_kvs_parse(range, out, err);
}

int etcd_txn_parse(json_t *reply, bool *succeeded, uint64_t *revision, struct error *err)
{
    *succeeded = false;
    int r = json_get_bool(reply, "", "succeeded", succeeded, err);
    return r != 0 ? r : header_revision(reply, revision, err);
}

/* --- what an answer means --------------------------------------------------------------------- */

/* gRPC's codes of answers that come before anything is proposed to the members.  All others
 * (cancelled, deadline exceeded, unavailable, unknown, …) leave open what became of it. */
static const struct {
    uint64_t grpc;
    int code;
} refusals[] = {
    {3, E_INVALID},                        /* invalid argument: also "request is too large" */
    {5, E_NOT_FOUND},                      /* a lease */
    {7, E_UNAUTHORIZED},  {8, E_NO_SPACE}, /* resource exhausted: the store's quota */
    {9, E_INVALID},                        /* failed precondition: logging in where nobody has to */
    {11, E_RANGE},                         /* a revision that is compacted */
    {16, E_UNAUTHORIZED},
};

static int code_of_refusal(uint64_t grpc, const char *message)
{
    if (strstr(message, "auth token") != NULL || strstr(message, "auth store") != NULL ||
        strstr(message, "user name is empty") != NULL)
        return E_UNAUTHORIZED;
    if (strstr(message, "too large") != NULL || strstr(message, "too many operations") != NULL)
        return E_TOO_LARGE;
    if (strstr(message, "too many requests") != NULL)
        return E_OVERLOAD;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].grpc == grpc)
            return refusals[i].code;
    }
    return E_IN_DOUBT;
}

int etcd_answer_check(int status, const char *body, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *message = "";
    uint64_t grpc = 0;
    if (status >= 200 && status < 300)
        return 0;
    if (json_parse(body, len, &doc, NULL) != 0 || !json_is_object(doc) ||
        json_get_str(doc, "", "message", &message, NULL) != 0 ||
        json_get_u64(doc, "", "code", &grpc, NULL) != 0)
        return error_set(err, E_IN_DOUBT, "etcd answers with status %d", status);
    return error_set(err, code_of_refusal(grpc, message), "etcd: %s", message);
}
