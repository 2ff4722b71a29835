#include "access/witness.h"

#include <stdlib.h>

#include "access/audit.h"
#include "access/guard.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/http/handler.h"

struct witness {
    struct http_witness hook;
    struct audit *audit;
};

/* Objects have no row that says `changes`: the log would be as long as their number. */
static bool changes(const struct http_request *req, unsigned status)
{
    const struct http_route *route = http_route(req);
    const struct http_subject *subject = http_subject(req);
    if (subject != NULL)
        return subject->changes;
    return route != NULL && status != 307 && (route->changes || route->right == RIGHT_DELETE);
}

/* Between nodes, nodes do what a user or an operator asked for elsewhere. */
static bool counts(const struct http_request *req, const struct http_outcome *outcome)
{
    const struct http_route *route = http_route(req);
    return (http_listener(req) & NET_CLIENTS) != 0 ||
           (route != NULL && route->admin && outcome->let_in);
}

static const char *via_of(const struct http_request *req, const struct guard_account *a)
{
    if (a->via != NULL)
        return a->via;
    if ((http_listener(req) & NET_CLIENTS) != 0)
        return "anonymous";
    return http_actor(req)->id != NULL ? "node" : "cluster key";
}

static void put_subject(const struct http_request *req, struct audit_line *line)
{
    const struct http_route *route = http_route(req);
    const struct http_subject *subject = http_subject(req);
    if (subject != NULL) {
        line->op = subject->op;
        line->bucket = subject->bucket;
        line->object = subject->object;
        return;
    }
    line->op = route != NULL ? route->name : http_method_name(http_method(req));
    line->bucket = http_path_param(req, "bucket");
    line->object = http_path_param(req, "object");
}

static void put(struct witness *w, struct http_request *req, struct audit_line *line,
                const struct http_outcome *outcome)
{
    struct guard_account account;
    guard_account(req, &account);
    line->request_id = http_request_id(req);
    line->peer = http_peer(req);
    line->user = http_actor(req)->name;
    line->key = account.key[0] != '\0' ? account.key : NULL;
    line->via = via_of(req, &account);
    line->path = http_path(req);
    put_subject(req, line);
    line->code = outcome->code;
    line->rule = account.rule;
    line->bytes_in = outcome->bytes_in;
    line->bytes_out = outcome->bytes_out;
    line->ms = outcome->ms;
    audit_put(w->audit, line);
}

static void ended(void *ctx, struct http_request *req)
{
    struct witness *w = ctx;
    struct http_outcome outcome;
    http_outcome(req, &outcome);
    struct audit_line line = {.status = outcome.status,
                              .denied = outcome.status == 401 || outcome.status == 403,
                              .changes = changes(req, outcome.status)};
    if (counts(req, &outcome) && audit_wants(w->audit, &line))
        put(w, req, &line, &outcome);
}

int witness_new(const struct witness_config *config, struct witness **out, struct error *err)
{
    struct audit_config audit = {.path = config->file,
                                 .node = config->node,
                                 .buffer_bytes = config->buffer_bytes,
                                 .must = config->must};
    *out = NULL;
    int code = audit_level_from_name(config->level, &audit.level, err);
    if (code != 0)
        return error_wrap(err, "--audit");
    if (config->file[0] == '\0')
        return 0;
    struct witness *w = xcalloc(1, sizeof *w);
    w->hook = (struct http_witness){.ended = ended, .ctx = w};
    code = audit_new(&audit, &w->audit, err);
    if (code != 0) {
        free(w);
        return code;
    }
    *out = w;
    return 0;
}

void witness_free(struct witness *w)
{
    if (w == NULL)
        return;
    audit_free(w->audit);
    free(w);
}

const struct http_witness *witness_hook(const struct witness *w)
{
    return w != NULL ? &w->hook : NULL;
}

void witness_tell(struct witness *w, const struct audit_line *line)
{
    if (w != NULL && audit_wants(w->audit, line))
        audit_put(w->audit, line);
}

void witness_reopen(struct witness *w)
{
    struct error err = ERROR_INIT;
    if (w != NULL && audit_reopen(w->audit, &err) != 0)
        log_error("audit log not opened anew", lerr(&err));
}
