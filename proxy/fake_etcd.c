#include "proxy/fake_etcd.h"

#include <jansson.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/etcd_wire.h"

enum { LEASES_MAX = 1000 };

struct entry {
    struct entry *next; /* in the order of the keys */
    char *key;
    char *value;
    uint64_t created, changed;
    uint64_t lease; /* 0: none */
};

struct fake_etcd {
    struct peer peer;
    pthread_mutex_t lock; /* guards what follows */
    uint64_t revision;
    struct entry *entries;
    uint64_t last_lease;
    bool leases[LEASES_MAX]; /* by number: it lives */
    enum fake_fault faults[FAKE_REQUESTS];
    unsigned fault_counts[FAKE_REQUESTS];
    unsigned seen[FAKE_REQUESTS];
    json_t *kept;
};

/* --- keys ------------------------------------------------------------------------------------ */

static struct entry **find(struct fake_etcd *f, const char *key)
{
    struct entry **at = &f->entries;
    while (*at != NULL && strcmp((*at)->key, key) < 0)
        at = &(*at)->next;
    return at;
}

static bool is_at(struct entry *const *at, const char *key)
{
    return *at != NULL && strcmp((*at)->key, key) == 0;
}

static void put(struct fake_etcd *f, const char *key, const char *value, uint64_t lease)
{
    struct entry **at = find(f, key);
    if (!is_at(at, key)) {
        struct entry *e = xcalloc(1, sizeof *e);
        *e = (struct entry){.next = *at, .key = xstrdup(key), .created = f->revision};
        *at = e;
    }
    free((*at)->value);
    (*at)->value = xstrdup(value);
    (*at)->changed = f->revision;
    (*at)->lease = lease;
}

static void drop(struct entry **at)
{
    struct entry *e = *at;
    *at = e->next;
    free(e->key);
    free(e->value);
    free(e);
}

/* 0: all. */
static void expire(struct fake_etcd *f, uint64_t lease)
{
    for (size_t i = 0; i < LEASES_MAX; i++)
        f->leases[i] = f->leases[i] && lease != 0 && i != lease;
    f->revision++;
    for (struct entry **at = &f->entries; *at != NULL;) {
        if ((*at)->lease != 0 && !f->leases[(*at)->lease])
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

static json_t *header(const struct fake_etcd *f)
{
    return json_pack("{s:o}", "revision", number(f->revision));
}

static json_t *range(struct fake_etcd *f, json_t *body)
{
    _cleanup_free_ char *first = decoded(body, "key");
    _cleanup_free_ char *end = decoded(body, "range_end");
    uint64_t limit = number_of(body, "limit");
    json_t *kvs = json_array();
    json_t *reply = json_pack("{s:o, s:o}", "header", header(f), "kvs", kvs);
    for (struct entry *e = *find(f, first); e != NULL; e = e->next) {
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

static bool holds(struct fake_etcd *f, json_t *compare)
{
    _cleanup_free_ char *key = decoded(compare, "key");
    struct entry **at = find(f, key);
    bool by_creation = strcmp(json_string_value(json_object_get(compare, "target")), "CREATE") == 0;
    uint64_t wanted = number_of(compare, by_creation ? "create_revision" : "mod_revision");
    uint64_t have = !is_at(at, key) ? 0 : by_creation ? (*at)->created : (*at)->changed;
    return have == wanted;
}

static void operate(struct fake_etcd *f, json_t *operation, json_t *responses)
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
    struct entry **at = find(f, key);
    if (is_at(at, key))
        drop(at);
}

static json_t *transact(struct fake_etcd *f, json_t *body)
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

static json_t *serve(struct fake_etcd *f, const char *path, json_t *body)
{
    if (strcmp(path, "/v3/kv/range") == 0)
        return range(f, body);
    if (strcmp(path, "/v3/kv/txn") == 0)
        return transact(f, body);
    if (strcmp(path, "/v3/lease/grant") == 0) {
        if (++f->last_lease == LEASES_MAX)
            abort();
        f->leases[f->last_lease] = true;
        return json_pack("{s:o, s:o}", "ID", number(f->last_lease), "TTL",
                         number(number_of(body, "TTL")));
    }
    uint64_t lease = number_of(body, "ID");
    if (strcmp(path, "/v3/lease/revoke") == 0) {
        expire(f, lease);
        return json_object();
    }
    json_t *result = json_object();
    if (lease < LEASES_MAX && f->leases[lease])
        json_object_set_new(result, "TTL", json_string("1"));
    return json_pack("{s:o}", "result", result);
}

/* --- faults ---------------------------------------------------------------------------------- */

static enum fake_request request_of(const char *path, json_t *body)
{
    if (strcmp(path, "/v3/lease/keepalive") == 0)
        return FAKE_RENEWAL;
    if (strcmp(path, "/v3/kv/range") == 0)
        return number_of(body, "revision") != 0 ? FAKE_PAGE : FAKE_REQUESTS;
    if (strcmp(path, "/v3/kv/txn") == 0)
        return json_array_size(json_object_get(body, "compare")) == 2 ? FAKE_COMMIT : FAKE_CAMPAIGN;
    return FAKE_REQUESTS;
}

static enum fake_fault next_fault(struct fake_etcd *f, enum fake_request request)
{
    if (request == FAKE_REQUESTS)
        return FAKE_NONE;
    f->seen[request]++;
    if (f->fault_counts[request] == 0)
        return FAKE_NONE;
    f->fault_counts[request]--;
    return f->faults[request];
}

static const char *refusal(enum fake_fault fault, int *status)
{
    *status = fault == FAKE_UNAVAILABLE ? 503 : fault == FAKE_FULL ? 429 : 400;
    return fault == FAKE_UNAVAILABLE ? "{\"message\":\"etcdserver: leader changed\",\"code\":14}"
           : fault == FAKE_FULL
               ? "{\"message\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}"
               : "{\"message\":\"etcdserver: mvcc: required revision has been compacted\","
                 "\"code\":11}";
}

static void another_wins(struct fake_etcd *f)
{
    expire(f, 0);
    f->revision++;
    put(f, "/dfc/primary",
        "{\"id\":\"other\",\"public_url\":\"http://other\",\"control_url\":\"http://other\"}", 0);
}

/* The answer (malloc'ed), or NULL: hang up. */
static char *react(struct fake_etcd *f, const char *path, json_t *body, int *status)
{
    enum fake_fault fault = next_fault(f, request_of(path, body));
    *status = 200;
    if (fault == FAKE_UNAVAILABLE || fault == FAKE_FULL || fault == FAKE_COMPACTED)
        return xstrdup(refusal(fault, status));
    if (fault == FAKE_KEEPS_IT)
        f->kept = json_incref(body);
    if (fault == FAKE_LOSES_IT || fault == FAKE_KEEPS_IT)
        return NULL;
    _cleanup_json_ json_t *reply = serve(f, path, body);
    if (fault == FAKE_DEPOSES)
        another_wins(f);
    return fault == FAKE_NONE ? json_text(reply) : NULL;
}

/* --- the server ------------------------------------------------------------------------------ */

static void converse(struct fake_etcd *f, struct peer_conn *c)
{
    char path[64] = "";
    if (!peer_read_request(c) || sscanf(buf_str(&c->head), "POST %63s", path) != 1)
        return;
    _cleanup_json_ json_t *body = NULL;
    if (json_parse(buf_str(&c->body), c->body.len, &body, NULL) != 0)
        abort();
    int status;
    pthread_mutex_lock(&f->lock);
    _cleanup_free_ char *text = react(f, path, body, &status);
    pthread_mutex_unlock(&f->lock);
    if (text == NULL)
        return;
    peer_print(c, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
               strlen(text));
    peer_send(c, text, strlen(text));
}

static void script(struct peer *p)
{
    struct peer_conn *c;
    while ((c = peer_accept(p)) != NULL) {
        converse(p->ctx, c);
        peer_close(c);
    }
}

struct fake_etcd *fake_etcd_new(void)
{
    struct fake_etcd *f = xcalloc(1, sizeof *f);
    f->revision = 1;
    pthread_mutex_init(&f->lock, NULL);
    peer_start(&f->peer, script, f);
    return f;
}

void fake_etcd_free(struct fake_etcd *f)
{
    peer_stop(&f->peer);
    peer_join(&f->peer);
    while (f->entries != NULL)
        drop(&f->entries);
    json_decref(f->kept);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

uint16_t fake_etcd_port(const struct fake_etcd *f)
{
    return f->peer.port;
}

void fake_etcd_fault(struct fake_etcd *f, enum fake_request request, enum fake_fault fault,
                     unsigned count)
{
    pthread_mutex_lock(&f->lock);
    f->faults[request] = fault;
    f->fault_counts[request] = count;
    pthread_mutex_unlock(&f->lock);
}

void fake_etcd_do_kept(struct fake_etcd *f)
{
    pthread_mutex_lock(&f->lock);
    json_decref(transact(f, f->kept));
    pthread_mutex_unlock(&f->lock);
}

void fake_etcd_put(struct fake_etcd *f, const char *key, const char *value)
{
    pthread_mutex_lock(&f->lock);
    f->revision++;
    put(f, key, value, 0);
    pthread_mutex_unlock(&f->lock);
}

char *fake_etcd_get(struct fake_etcd *f, const char *key)
{
    pthread_mutex_lock(&f->lock);
    struct entry **at = find(f, key);
    char *value = is_at(at, key) ? xstrdup((*at)->value) : NULL;
    pthread_mutex_unlock(&f->lock);
    return value;
}

void fake_etcd_expire(struct fake_etcd *f)
{
    pthread_mutex_lock(&f->lock);
    expire(f, 0);
    pthread_mutex_unlock(&f->lock);
}

void fake_etcd_forget(struct fake_etcd *f)
{
    pthread_mutex_lock(&f->lock);
    while (f->entries != NULL)
        drop(&f->entries);
    pthread_mutex_unlock(&f->lock);
}

unsigned fake_etcd_seen(struct fake_etcd *f, enum fake_request request)
{
    pthread_mutex_lock(&f->lock);
    unsigned seen = f->seen[request];
    pthread_mutex_unlock(&f->lock);
    return seen;
}
