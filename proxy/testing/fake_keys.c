#include "proxy/testing/fake_keys.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/metastore/etcd_wire.h"

struct fake_key {
    struct fake_key *next; /* in the order of the keys */
    char *key;
    char *value;
    uint64_t created, changed;
    uint64_t lease; /* 0: none */
};

/* --- keys ------------------------------------------------------------------------------------ */

static struct fake_key **find(struct fake_keys *f, const char *key)
{
    struct fake_key **at = &f->first;
    while (*at != NULL && strcmp((*at)->key, key) < 0)
        at = &(*at)->next;
    return at;
}

static bool is_at(struct fake_key *const *at, const char *key)
{
    return *at != NULL && strcmp((*at)->key, key) == 0;
}

static void put(struct fake_keys *f, const char *key, const char *value, uint64_t lease)
{
    struct fake_key **at = find(f, key);
    if (!is_at(at, key)) {
        struct fake_key *e = xcalloc(1, sizeof *e);
        *e = (struct fake_key){.next = *at, .key = xstrdup(key), .created = f->revision};
        *at = e;
    }
    free((*at)->value);
    (*at)->value = xstrdup(value);
    (*at)->changed = f->revision;
    (*at)->lease = lease;
}

static void drop(struct fake_key **at)
{
    struct fake_key *e = *at;
    *at = e->next;
    free(e->key);
    free(e->value);
    free(e);
}

void fake_keys_expire(struct fake_keys *f, uint64_t lease)
{
    for (size_t i = 0; i <= f->last_lease; i++) {
        if (lease == 0 || i == lease)
            f->ttl_s[i] = 0;
    }
    f->revision++;
    for (struct fake_key **at = &f->first; *at != NULL;) {
        if ((*at)->lease != 0 && f->ttl_s[(*at)->lease] == 0)
            drop(at);
        else
            at = &(*at)->next;
    }
}

/* --- requests -------------------------------------------------------------------------------- */

static char *decoded(json_t *obj, const char *field)
{
    struct buf out = BUF_INIT;
    const char *text = json_string_value(json_object_get(obj, field));
    if (text != NULL && etcd_base64_parse(text, &out, NULL) != 0)
        abort();
    buf_putc(&out, '\0');
    return buf_steal(&out);
}

static json_t *encoded(const char *text)
{
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    etcd_base64_put(&out, text, strlen(text));
    return json_string(buf_str(&out));
}

static json_t *number(uint64_t n)
{
    _cleanup_free_ char *text = xprintf("%llu", (unsigned long long)n);
    return json_string(text);
}

static uint64_t number_of(json_t *obj, const char *field)
{
    uint64_t n;
    if (etcd_u64(obj, field, &n, NULL) != 0)
        abort();
    return n;
}

static json_t *header(const struct fake_keys *f)
{
    return json_pack("{s:o}", "revision", number(f->revision));
}

static json_t *range(struct fake_keys *f, json_t *body)
{
    _cleanup_free_ char *first = decoded(body, "key");
    _cleanup_free_ char *end = decoded(body, "range_end");
    uint64_t limit = number_of(body, "limit");
    json_t *kvs = json_array();
    json_t *reply = json_pack("{s:o, s:o}", "header", header(f), "kvs", kvs);
    for (struct fake_key *e = *find(f, first); e != NULL; e = e->next) {
        if (end[0] == '\0' ? strcmp(e->key, first) != 0 : strcmp(e->key, end) >= 0)
            break;
        if (limit > 0 && json_array_size(kvs) == limit) {
            json_object_set_new(reply, "more", json_true());
            break;
        }
        json_array_append_new(kvs,
                              json_pack("{s:o, s:o, s:o, s:o}", "key", encoded(e->key), "value",
                                        encoded(e->value), "create_revision", number(e->created),
                                        "mod_revision", number(e->changed)));
    }
    return reply;
}

static bool holds(struct fake_keys *f, json_t *compare)
{
    _cleanup_free_ char *key = decoded(compare, "key");
    struct fake_key **at = find(f, key);
    bool by_creation = strcmp(json_string_value(json_object_get(compare, "target")), "CREATE") == 0;
    uint64_t wanted = number_of(compare, by_creation ? "create_revision" : "mod_revision");
    uint64_t have = !is_at(at, key) ? 0 : by_creation ? (*at)->created : (*at)->changed;
    return have == wanted;
}

static void operate(struct fake_keys *f, json_t *operation, json_t *responses)
{
    size_t i;
    json_t *inner;
    json_t *body;
    if ((body = json_object_get(operation, "request_txn")) != NULL) {
        json_array_foreach(json_object_get(body, "success"), i, inner)
            operate(f, inner, json_array());
        return;
    }
    if ((body = json_object_get(operation, "request_range")) != NULL) {
        json_array_append_new(responses, json_pack("{s:o}", "response_range", range(f, body)));
        return;
    }
    if ((body = json_object_get(operation, "request_put")) != NULL) {
        _cleanup_free_ char *key = decoded(body, "key");
        _cleanup_free_ char *value = decoded(body, "value");
        put(f, key, value, number_of(body, "lease"));
        return;
    }
    _cleanup_free_ char *key = decoded(json_object_get(operation, "request_delete_range"), "key");
    struct fake_key **at = find(f, key);
    if (is_at(at, key))
        drop(at);
}

static json_t *transact(struct fake_keys *f, json_t *body)
{
    size_t i;
    json_t *item;
    bool ok = true;
    json_array_foreach(json_object_get(body, "compare"), i, item) ok = holds(f, item) && ok;
    f->revision += ok;
    json_t *responses = json_array();
    json_array_foreach(json_object_get(body, ok ? "success" : "failure"), i, item)
        operate(f, item, responses);
    json_t *reply = json_pack("{s:o, s:o}", "header", header(f), "responses", responses);
    if (ok)
        json_object_set_new(reply, "succeeded", json_true());
    return reply;
}

/* As etcd does, before it looks at anything else. */
static bool has_dead_lease(const struct fake_keys *f, json_t *body)
{
    size_t i;
    json_t *operation;
    json_array_foreach(json_object_get(body, "success"), i, operation)
    {
        uint64_t lease = number_of(json_object_get(operation, "request_put"), "lease");
        if (lease != 0 && f->ttl_s[lease] == 0)
            return true;
    }
    return false;
}

json_t *fake_keys_serve(struct fake_keys *f, const char *path, json_t *body, int *status)
{
    *status = 200;
    if (strcmp(path, "/v3/kv/txn") == 0 && has_dead_lease(f, body)) {
        *status = 404;
        return json_pack("{s:s, s:i}", "message", "etcdserver: requested lease not found", "code",
                         5);
    }
    if (strcmp(path, "/v3/kv/range") == 0)
        return range(f, body);
    if (strcmp(path, "/v3/kv/txn") == 0)
        return transact(f, body);
    if (strcmp(path, "/v3/lease/grant") == 0) {
        if (++f->last_lease == FAKE_LEASES_MAX)
            abort();
        f->ttl_s[f->last_lease] = number_of(body, "TTL");
        return json_pack("{s:o, s:o}", "ID", number(f->last_lease), "TTL",
                         number(f->ttl_s[f->last_lease]));
    }
    uint64_t lease = number_of(body, "ID");
    if (strcmp(path, "/v3/lease/revoke") == 0) {
        fake_keys_expire(f, lease);
        return json_object();
    }
    json_t *result = json_object();
    if (lease < FAKE_LEASES_MAX && f->ttl_s[lease] != 0)
        json_object_set_new(result, "TTL", number(f->ttl_s[lease]));
    return json_pack("{s:o}", "result", result);
}

/* --- for who tests --------------------------------------------------------------------------- */

void fake_keys_put(struct fake_keys *f, const char *key, const char *value)
{
    f->revision++;
    put(f, key, value, 0);
}

const char *fake_keys_get(struct fake_keys *f, const char *key)
{
    struct fake_key **at = find(f, key);
    return is_at(at, key) ? (*at)->value : NULL;
}

uint64_t fake_keys_created(struct fake_keys *f, const char *key)
{
    struct fake_key **at = find(f, key);
    return is_at(at, key) ? (*at)->created : 0;
}

void fake_keys_done(struct fake_keys *f)
{
    while (f->first != NULL)
        drop(&f->first);
}
