#include "proxy/testing/fake_etcd.h"

#include <jansson.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/metastore/etcd_wire.h"
#include "proxy/testing/fake_keys.h"

struct fake_etcd {
    struct peer peer;
    pthread_mutex_t lock; /* guards what follows */
    struct fake_keys keys;
    enum fake_fault faults[FAKE_REQUESTS];
    unsigned fault_counts[FAKE_REQUESTS];
    unsigned seen[FAKE_REQUESTS];
    json_t *kept;
};

/* --- faults ---------------------------------------------------------------------------------- */

static enum fake_request request_of(const char *path, json_t *body)
{
    uint64_t revision;
    if (strcmp(path, "/v3/lease/keepalive") == 0)
        return FAKE_RENEWAL;
    if (strcmp(path, "/v3/kv/range") == 0)
        return etcd_u64(body, "revision", &revision, NULL) == 0 && revision != 0 ? FAKE_PAGE
                                                                                 : FAKE_REQUESTS;
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
    fake_keys_expire(&f->keys, 0);
    fake_keys_put(
        &f->keys, "/dfc/primary",
        "{\"id\":\"other\",\"public_url\":\"http://other\",\"control_url\":\"http://other\"}");
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
    _cleanup_json_ json_t *reply = fake_keys_serve(&f->keys, path, body, status);
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
    f->keys.revision = 1;
    pthread_mutex_init(&f->lock, NULL);
    peer_start(&f->peer, script, f);
    return f;
}

void fake_etcd_free(struct fake_etcd *f)
{
    peer_stop(&f->peer);
    peer_join(&f->peer);
    fake_keys_done(&f->keys);
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
    int status;
    json_decref(fake_keys_serve(&f->keys, "/v3/kv/txn", f->kept, &status));
    pthread_mutex_unlock(&f->lock);
}

void fake_etcd_put(struct fake_etcd *f, const char *key, const char *value)
{
    pthread_mutex_lock(&f->lock);
    fake_keys_put(&f->keys, key, value);
    pthread_mutex_unlock(&f->lock);
}

char *fake_etcd_get(struct fake_etcd *f, const char *key)
{
    pthread_mutex_lock(&f->lock);
    char *value = xstrdup(fake_keys_get(&f->keys, key));
    pthread_mutex_unlock(&f->lock);
    return value;
}

void fake_etcd_expire(struct fake_etcd *f)
{
    pthread_mutex_lock(&f->lock);
    fake_keys_expire(&f->keys, 0);
    pthread_mutex_unlock(&f->lock);
}

void fake_etcd_forget(struct fake_etcd *f)
{
    pthread_mutex_lock(&f->lock);
    fake_keys_done(&f->keys);
    pthread_mutex_unlock(&f->lock);
}

unsigned fake_etcd_seen(struct fake_etcd *f, enum fake_request request)
{
    pthread_mutex_lock(&f->lock);
    unsigned seen = f->seen[request];
    pthread_mutex_unlock(&f->lock);
    return seen;
}
