#include "mount/group/peers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/checksum.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/loop.h"
#include "mount/group/rest.h"
#include "net/auth/auth.h"
#include "net/client/client.h"

#define ANSWER_WAITS 5 /* of wait_ms: all of an answer */
#define WARM_WAITS 60  /* of a warm-up, which has no bytes until it is done */

/* Asked at least once; those of members that have left stay, and are few. */
struct peer {
    struct peer *next;
    struct rest rest;
    char id[];
};

struct group_peers {
    struct loop *loop;
    struct http_client *client;
    uint64_t wait_ms;
    pthread_mutex_t lock; /* of what follows */
    struct peer *peers;
};

int group_peers_new(const struct group_peers_options *options, struct group_peers **out,
                    struct error *err)
{
    _cleanup_(group_peers_freep)
    struct group_peers *p = xcalloc(1, sizeof *p);
    const struct http_client_config config = {
        .connect_timeout_ms = options->connect_ms,
        .stall_timeout_ms = options->wait_ms,
        .auth = options->auth,
    };
    int rc;
    pthread_mutex_init(&p->lock, NULL);
    p->wait_ms = options->wait_ms;
    if ((rc = loop_new("dfc-peers", &p->loop, err)) != 0 ||
        (rc = http_client_new(p->loop, &config, &p->client, err)) != 0)
        return rc;
    *out = steal(p);
    return 0;
}

void group_peers_free(struct group_peers *p)
{
    if (p == NULL)
        return;
    if (p->client != NULL)
        http_client_free(p->client);
    if (p->loop != NULL)
        loop_free(p->loop);
    while (p->peers != NULL) {
        struct peer *next = p->peers->next;
        free(p->peers);
        p->peers = next;
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* ---- who rests; under the lock ---- */

static struct peer *peer_of(struct group_peers *p, const char *id)
{
    for (struct peer *at = p->peers; at != NULL; at = at->next) {
        if (strcmp(at->id, id) == 0)
            return at;
    }
    struct peer *peer = xcalloc(1, sizeof *peer + strlen(id) + 1);
    memcpy(peer->id, id, strlen(id) + 1);
    peer->next = p->peers;
    p->peers = peer;
    return peer;
}

static bool may_ask(struct group_peers *p, const char *id)
{
    pthread_mutex_lock(&p->lock);
    bool may = rest_may_ask(&peer_of(p, id)->rest, clock_ms());
    pthread_mutex_unlock(&p->lock);
    return may;
}

/* The first of several failures is told. */
static void note(struct group_peers *p, const struct group_member *m, const struct error *failure)
{
    pthread_mutex_lock(&p->lock);
    struct peer *peer = peer_of(p, m->id);
    bool rested = peer->rest.failures > 0;
    rest_note(&peer->rest, failure == NULL, clock_ms());
    pthread_mutex_unlock(&p->lock);
    if (failure != NULL && !rested)
        log_warn("a cache member fails: the store is asked instead", lstr("member", m->id),
                 lstr("url", m->url), lerr(failure));
    else if (failure == NULL && rested)
        log_info("a cache member answers again", lstr("member", m->id), lstr("url", m->url));
}

/* ---- a call ---- */

/* "TYPE:HEX" of the whole object; one that is not known says nothing. */
static bool has_checksum(const char *checksum, const struct buf *data)
{
    enum checksum_type type;
    struct checksum_value value;
    char hex[2 * CHECKSUM_MAX + 1];
    const char *colon = strchr(checksum, ':');
    if (colon == NULL)
        return true;
    _cleanup_free_ char *name = xstrndup(checksum, (size_t)(colon - checksum));
    if (checksum_from_name(name, &type, NULL) != 0 || checksum_size(type) == 0)
        return true;
    struct checksum *c = checksum_new(type);
    checksum_update(c, data->data, data->len);
    checksum_final(c, &value);
    checksum_free(c);
    checksum_hex(&value, hex);
    return strcmp(hex, colon + 1) == 0;
}

static int check_bytes(const struct group_request *r, const struct http_result *result,
                       struct error *err)
{
    char sum[GROUP_SUM_CHARS];
    if (result->body.len != r->length)
        return error_set(err, E_LENGTH, "%zu bytes came in place of %llu", result->body.len,
                         (unsigned long long)r->length);
    group_sum(r->offset, result->body.data, r->length, sum);
    bool good = strcmp(sum, result->etag) == 0 &&
                (r->length < r->size || has_checksum(r->checksum, &result->body)) &&
                (r->entity == NULL ||
                 entity_compare(r->entity, r->offset, result->body.data, result->body.len));
    return good ? 0
                : error_set(err, E_CORRUPT, "bytes of '%s/%s' came damaged", r->bucket, r->object);
}

/* A member that is busy, or has not got it, or cannot get it, is well. */
static bool is_well(const struct http_result *result, int code)
{
    return result->code == 0 && code != E_UNAUTHORIZED && code != E_CORRUPT && code != E_LENGTH;
}

int group_peers_ask(struct group_peers *p, const struct group_member *member,
                    const struct group_request *r, struct buf *out, struct error *err)
{
    struct http_result result = {0};
    struct error own = ERROR_INIT;
    if (err == NULL)
        err = &own; /* a failure is noted with its words */
    if (!may_ask(p, member->id))
        return error_set(err, E_NOT_READY, "member '%s' has failed just now", member->id);
    _cleanup_free_ char *url = group_request_url(member->url, r);
    const bool warms = r->how == GROUP_WARM, has_bytes = !warms && r->how != GROUP_CHECK;
    const struct http_call call = {
        .method = HTTP_GET,
        .url = url,
        .node = member->id,
        .reply_max = PIECE_BYTES,
        .stall_timeout_ms = warms ? WARM_WAITS * p->wait_ms : p->wait_ms,
        .total_timeout_ms = (warms ? WARM_WAITS : ANSWER_WAITS) * p->wait_ms,
    };
    int rc = http_call_wait(p->client, &call, &result, err);
    if (rc == 0 && has_bytes)
        rc = check_bytes(r, &result, err);
    note(p, member, is_well(&result, rc) ? NULL : err);
    if (rc == 0)
        buf_append(out, result.body.data, result.body.len);
    http_result_done(&result);
    return rc;
}
