/* Does a backend answer, with the credentials and limits of this target?  A proxy asks before it
 * makes a bucket (proxy/http/backend_probe.h). */
#include "target/cold/check_routes.h"

#include "cluster/props/backend.h"
#include "common/log.h"
#include "target/cold/internal.h"

struct check_call {
    struct http_request *req;
    struct target *target;
    const char *url;
};

/* One name is enough: that the bucket exists, and may be listed. */
static int ask_list(const struct exchange_env *env, const char *url, struct error *err)
{
    struct exchange_reply reply;
    const struct backend_list_ask list = {
        .prefix = "", .delimiter = "", .start_after = "", .limit = 1};
    const struct backend_ask ask = {.verb = BACKEND_LIST, .name = "", .list = &list};
    int code = exchange_send(env, url, &ask, NULL, &reply, err);
    buf_done(&reply.body);
    return code == E_OBJECT_NOT_FOUND ? error_recode(err, E_BACKEND, "list") : code;
}

/* A server without lists may refuse names that it does not have: it answers all the same. */
static int ask_any(const struct exchange_env *env, const char *url, struct error *err)
{
    struct bpipe *none;
    struct backend_facts facts;
    struct error why = ERROR_INIT;
    const struct backend_ask ask = {.method = HTTP_HEAD, .name = "dfc-check"};
    int code = exchange_begin(env, url, &ask, 0, &facts, &none, &why);
    if (code == 0 || code == E_OBJECT_NOT_FOUND || code == E_BACKEND_DENIED)
        return 0;
    return error_set(err, code, "%s", why.message);
}

static void check_run(void *arg)
{
    const struct check_call *c = arg;
    struct exchange_env env = c->target->cold->env;
    struct error err = ERROR_INIT;
    env.once = true; /* an operator waits, and repeats the command */
    log_set_request(http_request_id(c->req));
    int code =
        backend_is_listed(c->url) ? ask_list(&env, c->url, &err) : ask_any(&env, c->url, &err);
    if (code == 0)
        http_reply_empty(c->req, 204);
    else
        http_reply_error(c->req, &err);
    log_set_request(NULL);
}

static void check_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    const char *url = http_query(req, "url");
    struct check_call *c = arena_alloc(http_arena(req), sizeof *c);
    struct error err = ERROR_INIT;
    *c = (struct check_call){.req = req, .target = t, .url = url};
    if (url == NULL)
        error_set(&err, E_INVALID, "parameter 'url' is missing");
    else if (backend_check(url, &err) == 0)
        cold_submit(&t->cold->askers, url, check_run, c, &err);
    if (err.code != 0)
        http_reply_error(req, &err);
}

const struct http_route cold_check_routes[] = {
    {.name = "backend_check",
     .method = HTTP_GET,
     .pattern = "/v1/backends",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = check_begin,
     .summary = "Asks a backend once whether it answers: for a list of one name, or for any name.",
     .query = HTTP_PARAMETERS({"url", "of the backend, as the property of a bucket"}),
     .body = "",
     .reply = "204",
     .errors = "invalid_argument not_supported backend_denied backend_error backend_unavailable "
               "backend_timeout"},
    {.name = NULL},
};
