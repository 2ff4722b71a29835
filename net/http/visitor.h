/* Who asks on the public listener: a client, or a web page in a client's browser.  Pure.
 *
 * The browser of somebody who reaches the cluster runs pages of strangers.  Such a page can send
 * requests here (a POST of a form or of text without asking first), and with a name that it has
 * pointed at our address (DNS rebinding) read the replies, too.  What tells it from a client:
 *
 *     Host             the name that the page's author chose: 421 unless it is ours
 *     Origin           the page's own: 403 unless it is that of the Host, or allowed
 *     Sec-Fetch-Site   the same, where a browser sends no Origin: 403 for what is no GET or HEAD
 *     Content-Type     a page may send text and forms without asking: where the browser shows in
 *                      one of the two above, a JSON call takes application/json alone: 415
 *
 * GET and HEAD of the calls that anybody may make (http_route.open: /v1/health and /metrics) take
 * any Host: probes and collectors come with names of their own.  A page that has pointed its name
 * here can then read figures of the node where its browser sends neither Origin nor Sec-Fetch-Site
 * (plain HTTP): with names of mountpaths and, at the primary, of buckets with a quota
 * (bucket_metrics_max), not of objects; no contents, and it changes nothing.
 *
 * Clients that are no browsers send none of the last three, or a Content-Type that says nothing
 * (curl -d says form): for them it does not count. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

struct visitor_rules;

/* advertise: the name of this node, or "".  allowed_hosts: names without a port, separated by
 * commas; "*.example.org" is any name below that one, "*" any at all.  allowed_origins:
 * "https://host[:port]", separated by commas.  E_INVALID: a row that is none. */
int visitor_rules_new(const char *advertise, const char *allowed_hosts, const char *allowed_origins,
                      struct visitor_rules **out, struct error *err);
void visitor_rules_free(struct visitor_rules *r);

struct visitor {
    const char *host;         /* of the headers; NULL: none */
    const char *origin;       /* NULL: none */
    const char *fetch_site;   /* Sec-Fetch-Site; NULL: none */
    const char *content_type; /* NULL: none */
    bool only_reads;          /* GET or HEAD */
    bool is_open;             /* the call is anybody's (http_route.open) */
    bool sends_json;          /* it has a body, and the call takes JSON */
};

/* 0, E_HOST, E_ORIGIN or E_MEDIA_TYPE. */
int visitor_check(const struct visitor_rules *r, const struct visitor *v, struct error *err);
