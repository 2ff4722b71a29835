#include "net/http/gate.h"

#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/parse.h"
#include "net/auth/auth.h"
#include "net/http/server_state.h"
#include "net/http/visitor.h"

enum { COMPLAINT_INTERVAL_MS = 10000 };

/* Who is refused may ask without end: one line for all, now and then. */
static void complain(struct http_request *req, const char *what, const struct error *err)
{
    struct http_server *s = req->server;
    uint64_t now = clock_ms();
    unsigned long long last = atomic_load(&s->complained_ms);
    if ((last == 0 || now - last >= COMPLAINT_INTERVAL_MS) &&
        atomic_compare_exchange_strong(&s->complained_ms, &last, now))
        log_warn(what, lstr("peer", http_peer(req)), lstr("method", http_method_name(req->method)),
                 lstr("path", req->path), lerr(err));
}

static int refuse(struct http_request *req, enum auth_verdict v, struct error *err)
{
    static const char *const why[] = {
        [AUTH_NO_CLAIM] =
            ("this is a control or data port: calls to it must be signed with the cluster key; "
             "clients call the public port of a proxy"),
        [AUTH_NO_SESSION] = "the session is not known",
        [AUTH_BAD_MAC] = "the signature is not that of this request",
        [AUTH_REPLAYED] = "this signature was used before",
    };
    char challenge[48];
    snprintf(challenge, sizeof challenge, "Dfc error=\"%s\"", auth_verdict_word(v));
    http_reply_header(req, "WWW-Authenticate", challenge);
    error_set(err, E_UNAUTHORIZED, "%s", why[v]);
    if (v != AUTH_NO_SESSION) { /* that is how a restart looks */
        metric_add(req->server->unauthorized, 1);
        complain(req, "a request without proof of membership", err);
    }
    return E_UNAUTHORIZED;
}

/* --- the signature ---------------------------------------------------------------------------- */

static void request_text(const struct http_request *req, const struct auth_claim *claim,
                         struct buf *out)
{
    const struct auth_request r = {.session = claim->session,
                                   .counter = claim->counter,
                                   .method = http_method_name(req->method),
                                   .path = req->path,
                                   .query = req->query,
                                   .length = req->content_length,
                                   .digest = claim->digest};
    auth_request_text(&r, out);
    for (const struct request_header *h = req->headers; h != NULL; h = h->next)
        auth_header_text(h->name, h->value, strlen(h->value), out);
}

static enum auth_verdict check_signature(struct http_request *req)
{
    const char *header = http_header(req, "Dfc-Auth");
    struct auth_claim claim;
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    if (header == NULL || !auth_claim_parse(header, &claim))
        return AUTH_NO_CLAIM;
    request_text(req, &claim, &text);
    enum auth_verdict v = auth_check(req->server->auth, &claim, &text);
    if (v == AUTH_PROVEN && strcmp(claim.digest, "-") != 0) {
        req->digest = arena_strdup(req->arena, claim.digest);
        req->digested = checksum_new(CHECKSUM_SHA256);
    }
    return v;
}

/* --- the documents that the sender has -------------------------------------------------------- */

/* "cluster term.version"; what is none says nothing. */
static bool stamp_parse(const char *text, struct auth_stamp *out)
{
    char term[24];
    size_t name = strcspn(text, " ");
    if (text[name] != ' ' || name >= sizeof out->cluster)
        return false;
    const char *number = text + name + 1;
    size_t len = strcspn(number, ".");
    if (number[len] != '.' || len >= sizeof term)
        return false;
    memcpy(out->cluster, text, name);
    out->cluster[name] = '\0';
    memcpy(term, number, len);
    term[len] = '\0';
    return parse_u64(term, &out->term, NULL) == 0 &&
           parse_u64(number + len + 1, &out->version, NULL) == 0;
}

static int check_stamp(struct http_request *req, const struct http_route *route, struct error *err)
{
    const char *header = http_header(req, "Dfc-State");
    struct auth_stamp theirs, ours;
    if (header == NULL || !stamp_parse(header, &theirs))
        return 0;
    auth_stamp(req->server->auth, &ours);
    if (ours.cluster[0] == '\0')
        return 0;
    if (strcmp(ours.cluster, theirs.cluster) != 0 && (route == NULL || !route->any_cluster))
        return error_set(err, E_WRONG_CLUSTER,
                         "the sender belongs to cluster '%s', this is cluster '%s'", theirs.cluster,
                         ours.cluster);
    if (route != NULL && route->fenced && theirs.term < ours.term)
        return error_set(err, E_STALE_MAP,
                         "an order of term %llu, which is over: this node knows term %llu",
                         (unsigned long long)theirs.term, (unsigned long long)ours.term);
    return 0;
}

/* --- whom the sender asks for ----------------------------------------------------------------- */

/* "ID NAME".  Whoever signs may say it: a node that has the key may do everything. */
static void take_actor(struct http_request *req)
{
    const char *header = http_header(req, HTTP_ACTOR_HEADER);
    const char *space = header != NULL ? strchr(header, ' ') : NULL;
    if (space == NULL)
        req->actor.name = HTTP_ACTOR_KEY;
    else
        http_set_actor(req, arena_strndup(req->arena, header, (size_t)(space - header)), space + 1);
}

/* --- called ----------------------------------------------------------------------------------- */

int gate_check(struct http_request *req, const struct http_route *route, struct error *err)
{
    struct http_server *s = req->server;
    if (s->auth == NULL || (s->net & NET_CLIENTS) != 0 || (route != NULL && route->open))
        return 0;
    bool asks = auth_has_key(s->auth);
    enum auth_verdict v = asks ? check_signature(req) : AUTH_PROVEN;
    req->proven = v == AUTH_PROVEN;
    if (asks && req->proven)
        take_actor(req);
    return v != AUTH_PROVEN ? refuse(req, v, err) : check_stamp(req, route, err);
}

int gate_check_visitor(struct http_request *req, const struct http_route *route, struct error *err)
{
    const struct visitor_rules *rules = req->server->visitors;
    if (rules == NULL)
        return 0;
    const struct visitor v = {
        .host = http_header(req, "Host"),
        .origin = http_header(req, "Origin"),
        .fetch_site = http_header(req, "Sec-Fetch-Site"),
        .content_type = http_header(req, "Content-Type"),
        .only_reads = req->method == HTTP_GET || req->method == HTTP_HEAD,
        .is_open = route != NULL && route->open,
        .sends_json = request_has_body(req) && (route == NULL || !route->any_type),
    };
    int code = visitor_check(rules, &v, err);
    if (code == E_ORIGIN && route != NULL && route->pages) {
        req->foreign = true;
        return 0;
    }
    if (code != 0)
        complain(req, "a request that no client of ours sends", err);
    return code;
}

void gate_body(struct http_request *req, const char *data, size_t len)
{
    if (req->digested != NULL)
        checksum_update(req->digested, data, len);
}

int gate_body_ended(struct http_request *req, struct error *err)
{
    struct checksum_value value;
    char hex[2 * CHECKSUM_MAX + 1];
    if (req->digested == NULL)
        return 0;
    checksum_final(req->digested, &value);
    checksum_hex(&value, hex);
    return auth_same(hex, req->digest)
               ? 0
               : error_set(err, E_UNAUTHORIZED, "the body is not the one that was signed");
}

void gate_done(struct http_request *req)
{
    checksum_free(req->digested);
}
