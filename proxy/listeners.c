#include "proxy/listeners.h"

#include "access/exposure_gate.h"
#include "access/guard.h"
#include "access/witness.h"
#include "gateway/reply.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
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
    return net == NET_PUBLIC || !auth_has_key(p->auth);
}

static int start_server(struct proxy *p, enum http_net net, uint64_t port, unsigned threads,
                        struct http_server **server, char **url, struct error *err)
{
    const bool to_clients = (net & NET_CLIENTS) != 0;
    const char *own = to_clients ? p->params.public_address : p->params.control_address;
    struct tls *tls = to_clients ? p->tls : NULL;
    const struct http_server_config config = {
        .node = p->id,
        .address = daemon_address(own, p->params.address),
        .port = (uint16_t)port,
        .net = net,
        .threads = threads,
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
        .tls = tls,
        .tls_handshake_timeout_ms = p->params.tls_handshake_timeout,
        .tls_handshakes_max = (unsigned)p->params.tls_handshakes_max,
        .guard = to_clients ? public_hook(p) : NULL,
        .witness = witness_hook(p->witness),
        .user = p,
    };
    int r = http_server_new(&config, server, err);
    if (r == 0)
        *url = daemon_url(tls != NULL,
                          daemon_host(own, p->params.address, p->params.advertise, !to_clients),
                          http_server_port(*server));
    return r;
}

static int start_gateway(struct proxy *p, struct error *err)
{
    const struct gateway_config config = {.region = p->params.s3_region,
                                          .domains = p->params.s3_domains,
                                          .asks_rights = p->guard != NULL,
                                          .handlers = proxy_s3_handlers,
                                          .state = p->state,
                                          .client = p->data_client,
                                          .loop = p->data_loop,
                                          .forwards_max = &p->params.s3_forwards_max,
                                          .buffer_bytes = p->params.s3_buffer};
    return gateway_new(&config, &p->gateway, err);
}

int listeners_start(struct proxy *p, struct error *err)
{
    const struct proxy_params *params = &p->params;
    unsigned threads = daemon_http_threads(params->http_threads);
    int r;
    if ((r = start_gateway(p, err)) != 0 ||
        (r = start_server(p, NET_PUBLIC, params->public_port, threads, &p->public_server,
                          &p->public_url, err)) != 0)
        return r;
    if (params->s3_port != 0 && (r = start_server(p, NET_S3, params->s3_port, threads,
                                                  &p->s3_server, &p->s3_url, err)) != 0)
        return r;
    return start_server(p, NET_CONTROL, params->control_port, CONTROL_THREADS, &p->control_server,
                        &p->control_url, err);
}
