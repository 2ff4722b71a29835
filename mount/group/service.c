#include "mount/group/service.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/dfc.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/rng.h"
#include "io/pool.h"
#include "mount/data/buffer.h"
#include "mount/group/entities.h"
#include "mount/group/members.h"
#include "mount/group/peers.h"
#include "mount/group/routes.h"
#include "mount/group/served.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
#include "net/http/server.h"

#define ENTITIES_MOST 65536
#define IDLE_TIMEOUT_S 60
#define WARM_BYTES (1u << 20) /* read at once */
#define HEAD_BYTES (32u << 10)

struct group_service {
    struct group_service_options options;
    struct group_self self;
    char boot[16];
    char *url;
    struct auth *auth;
    struct cache *cache;
    struct buffer *buffer;
    struct group_entities *entities;
    struct group_peers *peers;
    struct group_members *members;
    struct served *served;
    struct pool *pool;
    struct http_server *server;
    metric_t *sent;
    atomic_bool ready;
};

/* ---- what a reader asks for ---- */

struct job {
    struct group_service *service;
    struct http_request *req;
    struct group_request asked;
};

static struct entity *entity_of(struct group_service *s, struct served_bucket *home,
                                const struct group_request *q)
{
    struct entity *e = entity_new(q->object, q->etag, q->checksum, q->size);
    e->home = home;
    return group_entities_take(s->entities, e);
}

static struct span piece_around(const struct group_request *q)
{
    uint64_t from = q->offset / PIECE_BYTES * PIECE_BYTES;
    return (struct span){from, q->size - from < PIECE_BYTES ? q->size : from + PIECE_BYTES};
}

static int failure(int rc, const struct group_request *q, struct error *err)
{
    int code = rc == -ESTALE ? E_PRECONDITION : rc == -ENOENT ? E_OBJECT_NOT_FOUND : E_NET;
    return error_set(err, code, "fetch '%s/%s': %s", q->bucket, q->object, strerror(-rc));
}

/* A part of a piece that is not there brings the whole piece, or the disk would never have it. */
static int read_range(struct group_service *s, const struct group_request *q, struct entity *e,
                      void *to, struct error *err)
{
    struct served_bucket *home = e->home;
    bool cached = tiers_cached(served_tiers(home), e, q->offset, q->length) == q->length;
    const struct buffer_read read = {
        .entity = e,
        .offset = q->offset,
        .size = q->length,
        .ahead = cached ? (struct span){0, 0} : piece_around(q),
    };
    if (!cached && q->how != GROUP_FETCH)
        return error_set(err, E_NOT_FOUND, "this member does not have the piece");
    if (q->how == GROUP_CHECK)
        return 0;
    int rc = buffer_read(s->buffer, &read, to);
    return rc == 0 ? 0 : failure(rc, q, err);
}

/* All that was handed over is on the disk before it is looked at; what was dropped comes again. */
static int warm_range(struct group_service *s, const struct group_request *q, struct entity *e,
                      void *scratch, struct error *err)
{
    struct tiers *t = served_tiers(e->home);
    const uint64_t end = q->offset + q->length;
    int rc = 0;
    bool cached = tiers_cached(t, e, q->offset, q->length) == q->length;
    for (uint64_t at = q->offset; !cached && rc == 0 && at < end;) {
        const struct buffer_read read = {
            .entity = e,
            .offset = at,
            .size = end - at < WARM_BYTES ? end - at : WARM_BYTES,
            .ahead = piece_around(q),
        };
        rc = buffer_read(s->buffer, &read, scratch);
        at += read.size;
    }
    buffer_settle(s->buffer, e, piece_around(q));
    cache_flush(s->cache);
    if (rc == 0)
        rc = tiers_warm(t, e, q->offset, q->length);
    return rc == 0 ? 0 : failure(rc, q, err);
}

static int find_and_read(struct group_service *s, const struct group_request *q, void *to,
                         struct error *err)
{
    struct served_bucket *home;
    int rc = served_find(s->served, q->bucket, q->scope, &home, err);
    if (rc != 0)
        return rc;
    struct entity *e = entity_of(s, home, q);
    rc = q->how == GROUP_WARM ? warm_range(s, q, e, to, err) : read_range(s, q, e, to, err);
    entity_unref(e);
    return rc;
}

static void answer(void *arg)
{
    const struct job *job = arg;
    const struct group_request *q = &job->asked;
    struct error err = ERROR_INIT;
    char sum[GROUP_SUM_CHARS];
    char *data = xmalloc(q->length);
    if (find_and_read(job->service, q, data, &err) != 0) {
        free(data);
        http_reply_error(job->req, &err);
        return;
    }
    if (q->how == GROUP_CHECK || q->how == GROUP_WARM) {
        free(data);
        http_reply_empty(job->req, 204);
        return;
    }
    if (fault_errno_at("group.lie", q->object) != 0)
        data[q->length / 2] ^= 1;
    group_sum(q->offset, data, q->length, sum);
    if (fault_errno_at("group.damage", q->object) != 0)
        data[q->length / 2] ^= 1;
    metric_add(job->service->sent, q->length);
    http_reply_header(job->req, "ETag", sum);
    http_reply_constant(job->req, "Content-Type", "application/octet-stream");
    http_reply_taken(job->req, 200, data, q->length);
}

/* ---- calls ---- */

static const char *query(void *context, const char *name)
{
    return http_query(context, name);
}

void group_piece_begin(struct http_request *req)
{
    struct group_service *s = http_user(req);
    struct error err = ERROR_INIT;
    struct job *job = arena_alloc(http_arena(req), sizeof *job);
    *job = (struct job){.service = s, .req = req};
    int rc = atomic_load(&s->ready) ? group_request_parse(query, req, &job->asked, &err)
                                    : error_set(&err, E_NOT_READY, "this member starts or stops");
    if (rc != 0 || pool_submit(s->pool, answer, job, &err) != 0)
        http_reply_error(req, &err);
}

void group_drain_begin(struct http_request *req)
{
    struct group_service *s = http_user(req);
    struct error err = ERROR_INIT;
    if (!atomic_load(&s->ready)) {
        error_set(&err, E_NOT_READY, "this member starts or stops");
        http_reply_error(req, &err);
        return;
    }
    group_members_drain(s->members);
    log_info("this member drains", lstr("group", s->options.group), lstr("id", s->options.id));
    http_reply_empty(req, 204);
}

/* ---- its life ---- */

static int buffer_fetch(void *context, const struct entity *e, uint64_t offset, uint64_t length,
                        const struct dfc_sink *sink)
{
    (void)context;
    struct served_bucket *home = e->home;
    return tiers_fetch(served_tiers(home), e, offset, length, sink);
}

static int open_listener(struct group_service *s, struct error *err)
{
    const struct group_service_options *o = &s->options;
    const struct http_server_config config = {
        .node = o->id,
        .address = o->address,
        .port = o->port,
        .net = NET_DATA,
        .threads = daemon_http_threads(0),
        .connections_max = (unsigned)o->connections_max,
        .connection_memory = HEAD_BYTES,
        .idle_timeout_s = IDLE_TIMEOUT_S,
        .routes = group_routes,
        .auth = s->auth,
        .user = s,
    };
    int rc = http_server_new(&config, &s->server, err);
    if (rc != 0)
        return error_wrap(err, "listen at %s port %u", o->address, (unsigned)o->port);
    s->url = daemon_url(false, o->advertise[0] != '\0' ? o->advertise : o->address,
                        http_server_port(s->server));
    return 0;
}

static int open_data(struct group_service *s, struct error *err)
{
    const struct group_service_options *o = &s->options;
    const struct buffer_options buffer = {.bytes = o->buffer_bytes, .fetchers = o->fetchers};
    const struct data_store store = {.context = s, .fetch = buffer_fetch};
    int rc = cache_open(&o->cache, &s->cache, err);
    if (rc != 0)
        return rc;
    s->entities = group_entities_new(ENTITIES_MOST);
    s->buffer = buffer_new(&buffer, &store);
    return s->buffer != NULL
               ? 0
               : error_set(err, E_NOMEM, "no thread could be started that fetches data");
}

static int open_group(struct group_service *s, struct error *err)
{
    const struct group_service_options *o = &s->options;
    s->self = (struct group_self){.id = o->id, .boot = s->boot, .url = s->url, .weight = o->weight};
    const struct group_members_options members = {
        .client = o->client, .group = o->group, .interval_ms = o->interval_ms, .self = &s->self};
    int rc = group_members_open(&members, &s->members, err);
    if (rc != 0)
        return rc;
    const struct served_options served = {
        .client = o->client,
        .cache = s->cache,
        .members = s->members,
        .peers = s->peers,
        .self = o->id,
    };
    s->served = served_new(&served);
    return 0;
}

/* As auth_check_address(), in the words of this program. */
static int check_address(const struct group_service_options *o, struct error *err)
{
    if (o->key_file[0] != '\0' || auth_is_loopback(o->address))
        return 0;
    return error_set(err, E_INVALID,
                     "--group-key-file is missing: without a key anybody who reaches %s could read "
                     "what this member keeps: give the key of the group, or --listen 127.0.0.1",
                     o->address);
}

static int service_start(struct group_service *s, struct error *err)
{
    const struct group_service_options *o = &s->options;
    const struct auth_config auth = {.key_file = o->key_file, .node = o->id, .boot = s->boot};
    int rc;
    if ((rc = check_address(o, err)) != 0 || (rc = auth_new(&auth, &s->auth, err)) != 0)
        return rc;
    const struct group_peers_options peers = {
        .auth = s->auth, .connect_ms = o->connect_ms, .wait_ms = o->wait_ms};
    if ((rc = group_peers_new(&peers, &s->peers, err)) != 0 ||
        (rc = pool_new("dfc-answer", o->workers, o->queue, &s->pool, err)) != 0 ||
        (rc = open_data(s, err)) != 0 || (rc = open_listener(s, err)) != 0)
        return rc;
    return open_group(s, err);
}

int group_service_open(const struct group_service_options *options, struct group_service **out,
                       struct error *err)
{
    _cleanup_(group_service_closep)
    struct group_service *s = xcalloc(1, sizeof *s);
    s->options = *options;
    s->sent = metric_get(M_group_sent_bytes_total, NULL);
    random_id("", s->boot);
    int rc = service_start(s, err);
    if (rc != 0)
        return rc;
    atomic_store(&s->ready, true);
    *out = steal(s);
    return 0;
}

/* It leaves while it serves; then requests end, which use all of the rest. */
void group_service_close(struct group_service *s)
{
    if (s == NULL)
        return;
    atomic_store(&s->ready, false);
    group_members_leave(s->members);
    dfc_client_cancel(s->options.client);
    if (s->server != NULL)
        http_server_free(s->server);
    if (s->pool != NULL)
        pool_free(s->pool);
    buffer_free(s->buffer);
    served_free(s->served);
    group_members_close(s->members);
    group_entities_free(s->entities);
    cache_close(s->cache);
    group_peers_free(s->peers);
    auth_free(s->auth);
    free(s->url);
    free(s);
}

const char *group_service_url(const struct group_service *s)
{
    return s->url;
}

struct auth *group_service_auth(struct group_service *s)
{
    return s->auth;
}
