#include "proxy/http/reseal.h"

#include "common/jsonx.h"
#include "common/log.h"
#include "io/pool.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/reseal.h"

/* In the overhaul thread. */
static void run(void *arg)
{
    struct http_request *req = arg;
    struct reseal_tally t = {0};
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(req));
    if (reseal_all(http_user(req), &t, &err) != 0) {
        proxy_reply_error(req, &err);
    } else {
        _cleanup_json_ json_t *doc =
            json_pack("{s:I, s:I}", "resealed", t.resealed, "unreadable", t.unreadable);
        http_reply_json(req, 200, doc);
    }
    log_set_request(NULL);
}

static void reseal_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    struct error err = ERROR_INIT;
    if (!proxy_passed_to_primary(req) && pool_submit(p->overhaul, run, req, &err) != 0)
        proxy_reply_error(req, &err);
}

const struct http_route reseal_routes[] = {
    {.name = "auth_reseal",
     .method = HTTP_POST,
     .pattern = "/v1/auth/reseal",
     .nets = NET_CONTROL,
     .changes = true,
     .admin = true,
     .right = RIGHT_CLUSTER_ADMIN,
     .begin = reseal_begin,
     .summary = "Seals the secrets of users under the first line of the cluster key. The primary "
                "does it by "
                "itself at SIGHUP; this call says how far it is.",
     .body = "",
     .reply = "`{\"resealed\", \"unreadable\"}`",
     .errors = "not_supported in_doubt overloaded"},
    {.name = NULL},
};
