#include "proxy/listeners.h"

#include "access/exposure_gate.h"
#include "access/guard.h"
#include "access/witness.h"
#include "ais/dialect.h"
#include "gateway/reply.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
#include "net/direct/direct.h"
#include "proxy/primary/proxy.h"
#include "proxy/s3/handlers.h"

enum { CONTROL_THREADS = 2 };

static const struct http_guard *public_hook(const struct proxy *p)
{
    return p->guard != NULL ? guard_hook(p->guard) : exposure_gate_hook(p->gate);
}

/* Without a key a web page could administer, too.  A page cannot sign an S3 request. */
static bool asks_visitors(const struct proxy *p, enum http_net net)
{
    if (net == NET_S3)
        return p->guard == NULL;
    return (net & NET_CLIENTS) != 0 || !auth_has_key(p->auth);
}

struct listener {
    enum http_net net;
    const char *address; /* its own, or "" */
    uint64_t port;
    bool is_optional; /* port 0: there is none */
    unsigned threads;
    bool admin_is_elsewhere;
    struct http_server **server;
    char **url;
};

static int start_server(struct proxy *p, const struct listener *l, struct error *err)
{
    const enum http_net net = l->net;
    const bool to_clients = (net & NET_CLIENTS) != 0;
    struct tls *tls = to_clients ? p->tls : NULL;
    const struct http_server_config config = {
        .node = p->id,
        .address = daemon_address(l->address, p->params.address),
        .port = (uint16_t)l->port,
        .net = net,
        .threads = l->threads,
        .connections_max = (unsigned)p->params.connections_max,
        .connection_memory = p->params.connection_memory,
        .idle_timeout_s = (unsigned)((p->params.idle_timeout + 999) / 1000),
        .head_timeout_ms = p->params.head_timeout,
        .body_rate = {.bytes_per_s = to_clients ? p->params.min_body_rate : 0,
                      .window_ms = p->params.min_body_time},
        .routes = proxy_routes,
        .visitors = asks_visitors(p, net) ? p->visitors : NULL,
        .auth = p->auth,
        .error_form = net == NET_S3 ? &gateway_error_form : NULL,
        .dialect = (net & (NET_PUBLIC | NET_ADMIN)) != 0 ? &ais_dialect : NULL,
        .tls = tls,
        .tls_handshake_timeout_ms = p->params.tls_handshake_timeout,
        .tls_handshakes_max = (unsigned)p->params.tls_handshakes_max,
        .guard = to_clients ? public_hook(p) : NULL,
        .admin_is_elsewhere = l->admin_is_elsewhere,
        .witness = witness_hook(p->witness),
        .user = p,
    };
    int r = http_server_new(&config, l->server, err);
    if (r == 0)
        *l->url =
            daemon_url(tls != NULL,
                       daemon_host(l->address, p->params.address, p->params.advertise, !to_clients),
                       http_server_port(*l->server));
    return r;
}

static int start_gateway(struct proxy *p, struct error *err)
{
    const struct direct_config direct = {.client = p->data_client,
                                         .kept_max = p->params.s3_kept_connections};
    p->direct = direct_reader_new(&direct);
    const struct gateway_config config = {.region = p->params.s3_region,
                                          .domains = p->params.s3_domains,
                                          .asks_rights = p->guard != NULL,
                                          .handlers = proxy_s3_handlers,
                                          .state = p->state,
                                          .client = p->data_client,
                                          .direct = p->direct,
                                          .loop = p->data_loop,
                                          .forwards_max = &p->params.s3_forwards_max,
                                          .buffer_bytes = p->params.s3_buffer,
                                          .ping_ms = &p->params.s3_complete_ping,
                                          .silence_ms = p->params.stall_timeout};
    return gateway_new(&config, &p->gateway, err);
}

int listeners_start(struct proxy *p, struct error *err)
{
    const struct proxy_params *params = &p->params;
    const unsigned threads = daemon_http_threads(params->http_threads);
    const struct listener all[] = {
        {.net = NET_PUBLIC,
         .address = params->public_address,
         .port = params->public_port,
         .threads = threads,
         .admin_is_elsewhere = params->admin_port != 0,
         .server = &p->public_server,
         .url = &p->public_url},
        {.net = NET_S3,
         .address = params->public_address,
         .port = params->s3_port,
         .is_optional = true,
         .threads = threads,
         .server = &p->s3_server,
         .url = &p->s3_url},
        {.net = NET_ADMIN,
         .address = daemon_address(params->admin_address, params->public_address),
         .port = params->admin_port,
         .is_optional = true,
         .threads = CONTROL_THREADS,
         .server = &p->admin_server,
         .url = &p->admin_url},
        {.net = NET_CONTROL,
         .address = params->control_address,
         .port = params->control_port,
         .threads = CONTROL_THREADS,
         .server = &p->control_server,
         .url = &p->control_url},
    };
    int r = start_gateway(p, err);
    for (size_t i = 0; r == 0 && i < sizeof all / sizeof *all; i++) {
        if (all[i].port != 0 || !all[i].is_optional)
            r = start_server(p, &all[i], err);
    }
    return r;
}
