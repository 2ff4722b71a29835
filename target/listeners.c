#include "target/listeners.h"

#include "access/witness.h"
#include "gateway/reply.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
#include "net/direct/direct.h"
#include "net/tls/tls.h"
#include "target/node/member.h"
#include "target/node/public_guard.h"
#include "target/node/target.h"
#include "target/http/object_routes.h"
#include "target/s3/handlers.h"

enum { CONTROL_THREADS = 2 };

static const char *own_address(const struct target_params *p, enum target_listener which)
{
    const char *const own[LISTENERS] = {
        [LISTEN_PUBLIC] = p->public_address,
        [LISTEN_CONTROL] = p->control_address,
        [LISTEN_DATA] = p->data_address,
        [LISTEN_S3] = p->public_address,
        [LISTEN_ADMIN] = daemon_address(p->admin_address, p->public_address),
    };
    return own[which];
}

/* Without a key a web page could administer, too.  A page cannot sign an S3 request. */
static bool asks_visitors(const struct target *t, enum http_net net)
{
    if (net == NET_S3)
        return t->guard == NULL;
    return (net & NET_CLIENTS) != 0 || !auth_has_key(t->auth);
}

/* Pushes into rings have memory of their own: what they may have at once, or the largest one. */
static size_t collect_memory(const struct target_params *p, enum target_listener which)
{
    const uint64_t pushes = p->ring_memory > p->ring_push_max ? p->ring_memory : p->ring_push_max;
    return HTTP_COLLECT_MEMORY + (which == LISTEN_PUBLIC ? pushes : 0);
}

static int start_server(struct target *t, enum target_listener which, enum http_net net,
                        uint64_t port, unsigned threads, struct error *err)
{
    const bool to_clients = (net & NET_CLIENTS) != 0;
    const char *own = own_address(&t->params, which);
    struct tls *tls = to_clients ? t->tls : NULL;
    const struct http_server_config config = {
        .node = t->id,
        .address = daemon_address(own, t->params.address),
        .port = (uint16_t)port,
        .net = net,
        .threads = threads,
        .connections_max = (unsigned)t->params.connections_max,
        .connection_memory = t->params.connection_memory,
        .collect_memory = collect_memory(&t->params, which),
        .idle_timeout_s = (unsigned)((t->params.idle_timeout + 999) / 1000),
        .head_timeout_ms = t->params.head_timeout,
        .body_rate = {.bytes_per_s = to_clients ? t->params.min_body_rate : 0,
                      .window_ms = t->params.min_body_time},
        .routes = target_routes,
        .visitors = asks_visitors(t, net) ? t->visitors : NULL,
        .auth = t->auth,
        .error_form = net == NET_S3 ? &gateway_error_form : NULL,
        .tls = tls,
        .tls_handshake_timeout_ms = t->params.tls_handshake_timeout,
        .tls_handshakes_max = (unsigned)t->params.tls_handshakes_max,
        .guard = to_clients ? public_guard_hook(t) : NULL,
        .admin_is_elsewhere = which == LISTEN_PUBLIC && t->params.admin_port != 0,
        .witness = witness_hook(t->witness),
        .user = t,
    };
    int code = http_server_new(&config, &t->servers[which], err);
    if (code == 0)
        t->urls[which] = daemon_url(
            tls != NULL, daemon_host(own, t->params.address, t->params.advertise, !to_clients),
            http_server_port(t->servers[which]));
    return code;
}

static void renew(void *ctx, const char *wanted, void (*fn)(void *arg), void *arg)
{
    const struct target *t = ctx;
    member_refresh(t->member, wanted, fn, arg);
}

static int start_gateway(struct target *t, struct error *err)
{
    const struct direct_config direct = {.client = t->data_client,
                                         .kept_max = t->params.s3_kept_connections};
    t->direct = direct_reader_new(&direct);
    const struct gateway_config config = {.region = t->params.s3_region,
                                          .domains = t->params.s3_domains,
                                          .asks_rights = t->guard != NULL,
                                          .handlers = target_s3_handlers,
                                          .state = t->state,
                                          .renew = renew,
                                          .ctx = t,
                                          .local = {.id = t->id,
                                                    .read = object_read_begin,
                                                    .write = object_write_begin,
                                                    .remove = object_delete_begin},
                                          .client = t->data_client,
                                          .direct = t->direct,
                                          .loop = t->data,
                                          .forwards_max = &t->params.s3_forwards_max,
                                          .buffer_bytes = t->params.s3_buffer,
                                          .ping_ms = &t->params.s3_complete_ping,
                                          .silence_ms = t->params.stall_timeout};
    return gateway_new(&config, &t->gateway, err);
}

int target_listen(struct target *t, struct error *err)
{
    const struct target_params *p = &t->params;
    unsigned threads = daemon_http_threads(p->http_threads);
    int code = daemon_tls_new(p->tls_cert, p->tls_key, &t->tls, err);
    if (code == 0)
        code = start_gateway(t, err);
    if (code == 0)
        code = start_server(t, LISTEN_PUBLIC, NET_PUBLIC, p->public_port, threads, err);
    if (code == 0)
        code = start_server(t, LISTEN_CONTROL, NET_CONTROL, p->control_port, CONTROL_THREADS, err);
    if (code == 0)
        code = start_server(t, LISTEN_DATA, NET_DATA, p->data_port, threads, err);
    if (code == 0 && p->s3_port != 0)
        code = start_server(t, LISTEN_S3, NET_S3, p->s3_port, threads, err);
    if (code == 0 && p->admin_port != 0)
        code = start_server(t, LISTEN_ADMIN, NET_ADMIN, p->admin_port, CONTROL_THREADS, err);
    return code;
}

void target_listeners_free(struct target *t)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        http_server_free(t->servers[i]);
        free(t->urls[i]);
    }
    tls_free(t->tls);
}
