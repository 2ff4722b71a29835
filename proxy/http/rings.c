#include "proxy/http/rings.h"

#include <string.h>

#include "access/guard.h"
#include "access/redirect_proof.h"
#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "common/rng.h"
#include "proxy/http/relay.h"
#include "proxy/primary/proxy.h"
#include "ring/head.h"

/* Where a call goes. */
typedef int where_fn(const struct http_request *req, const struct cluster_state *s,
                     const struct bucket *b, const struct node **out, struct error *err);

enum { PUSH_TARGETS = 8 }; /* of which one that answers is taken */

/* HRW of the producer and its push, of active targets: a repeated one finds the same target while
 * that one answers.  Else by chance. */
static int push_where(const struct http_request *req, const struct cluster_state *s,
                      const struct bucket *b, const struct node **out, struct error *err)
{
    const char *producer = http_query(req, "producer"), *sequence = http_query(req, "sequence");
    unsigned char random[8];
    _cleanup_buf_ struct buf key = BUF_INIT;
    random_bytes(random, sizeof random);
    if (producer != NULL)
        buf_printf(&key, "%s/%s", producer, sequence != NULL ? sequence : "0");
    else
        for (size_t i = 0; i < sizeof random; i++)
            buf_printf(&key, "%02x", random[i]);
    const struct node *best[PUSH_TARGETS];
    const size_t count = smap_owners(&s->smap, b->id, buf_str(&key), PUSH_TARGETS, best);
    for (size_t i = 0; i < count; i++) {
        if (best[i]->state == NODE_ACTIVE) {
            *out = best[i];
            return 0;
        }
    }
    return error_set(err, E_NO_TARGETS, "no target is active");
}

static int keeper_where(const struct http_request *req, const struct cluster_state *s,
                        const struct bucket *b, const struct node **out, struct error *err)
{
    struct owners o;
    (void)req;
    int code = owners_find_acting(s, b, RING_HEAD_OBJECT, &o, err);
    if (code == 0)
        *out = o.acting;
    return code;
}

static int lane_where(const struct http_request *req, const struct cluster_state *s,
                      const struct bucket *b, const struct node **out, struct error *err)
{
    const char *lane = http_query(req, "lane");
    char node[RING_LANE_MAX];
    if (lane == NULL || !ring_lane_node(lane, node))
        return error_set(
            err, E_INVALID,
            "parameter 'lane' is missing, or is no lane: the head of the ring has them");
    *out = smap_node(&s->smap, node);
    if (*out == NULL || (*out)->role != NODE_TARGET)
        return keeper_where(req, s, b, out, err); /* it says what is lost */
    return (*out)->state != NODE_UNREACHABLE
               ? 0
               : error_set(err, E_NODE_UNREACHABLE, "target '%s' of lane '%s' is unreachable", node,
                           lane);
}

static int find_bucket(struct http_request *req, const struct cluster_state *s,
                       const struct bucket **out, struct error *err)
{
    const char *name = http_path_param(req, "bucket");
    int code = bucket_name_check(name, err);
    if (code != 0)
        return code;
    *out = bmd_bucket(&s->bmd, name);
    if (*out == NULL)
        return proxy_no_bucket(http_user(req), name, err);
    return (*out)->props.ring_cap > 0
               ? 0
               : error_set(err, E_RING, "bucket '%s' is no ring: create one with --ring cap=N",
                           name);
}

static void put_url(const struct http_request *req, const struct cluster_state *s,
                    const struct bucket *b, const struct node *n, struct buf *url)
{
    static const char *const drop[] = {"dfcb", "dfcv", "dfca", "redirect", NULL};
    const char *object = http_object(req);
    char separator = '?';
    buf_printf(url, "%s/v1/rings/", n->public_url);
    buf_put_url_escaped(url, b->name, strlen(b->name), "");
    buf_putc(url, '/');
    buf_put_url_escaped(url, object, strlen(object), "");
    location_put_query(url, http_raw_query(req), drop, &separator);
    location_put_version(url, s, b->id, &separator);
    guard_put_proof(req, b->id, NULL, url);
}

static void send_on(struct http_request *req, where_fn *where)
{
    struct proxy *p = proxy_enter_objects(req);
    if (p == NULL)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct bucket *b = NULL;
    const struct node *n = NULL;
    struct error err = ERROR_INIT;
    _cleanup_buf_ struct buf url = BUF_INIT;
    int code = find_bucket(req, s, &b, &err);
    if (code == 0)
        code = where(req, s, b, &n, &err);
    if (code != 0) {
        http_reply_error(req, &err);
        return;
    }
    put_url(req, s, b, n, &url);
    if (relay_is_wanted(req))
        relay_start(p, req, buf_str(&url));
    else
        http_reply_redirect(req, buf_str(&url));
}

static void push_begin(struct http_request *req)
{
    send_on(req, push_where);
}

static void get_begin(struct http_request *req)
{
    send_on(req,
            strcmp(http_path_param(req, "object"), "samples") == 0 ? lane_where : keeper_where);
}

static void keeper_begin(struct http_request *req)
{
    send_on(req, keeper_where);
}

#define RING_PATTERN "/v1/rings/{bucket}/{object}"
#define REDIRECT                               \
    {                                          \
        "redirect", "never: through the proxy" \
    }
#define RING_ERRORS                                                                          \
    "invalid_argument invalid_name bucket_not_found not_a_ring no_targets node_unreachable " \
    "not_found not_ready"

const struct http_route ring_routes[] = {
    {.name = "ring_push",
     .method = HTTP_POST,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .signs = RING_SIGNS("POST"),
     .begin = push_begin,
     .summary = "`/samples`: appends samples to a ring.",
     .query =
         HTTP_PARAMETERS({"producer", "name of the maker"},
                         {"sequence", "number of its push: a repeated one gets the same answer"},
                         {"wait", "so long at most for room, as 30s; then 429"},
                         {"policy", "of a push into a full ring: block, or drop the oldest samples "
                                    "that are in no generation (default: the ring's)"},
                         REDIRECT),
     .body = "frames (docs/design/ring.md), one behind the other",
     .reply = "307 to the target; its reply is 201 `{\"lane\", \"first\", \"count\"}`",
     .errors = RING_ERRORS " bad_sample checksum_mismatch ring_full too_large no_space overloaded"},
    {.name = "ring_get",
     .method = HTTP_GET,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .signs = RING_SIGNS("GET"),
     .begin = get_begin,
     .summary = "`/samples`: samples of a lane; `/status`: the ring, as its keeper knows it.",
     .query = HTTP_PARAMETERS({"lane", "of the head"}, {"from", "ordinal of the first sample"},
                              {"count", "at most so many (default 1)"},
                              {"after", "of a status: wait for a generation beyond this one"},
                              {"wait", "so long at most, as 30s; the reply then has no such one"},
                              REDIRECT),
     .body = "",
     .reply = "307 to the target; its reply is 200 with frames, of as many samples as header "
              "`Dfc-Ring-Count` says; or `{\"ring\", \"keeper\", \"cap\", \"keep\", \"swap\", "
              "\"policy\", \"fill\", \"lanes\", \"head\"}`",
     .errors = RING_ERRORS " generation_gone mountpath_disabled overloaded"},
    {.name = "ring_swap",
     .method = HTTP_PUT,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .signs = RING_SIGNS("PUT"),
     .begin = keeper_begin,
     .summary = "`/generation`: the samples that are in no generation become one, at most cap; "
                "`/pause`: full ones wait, until `/resume`; `/groups`: a group of readers joins, "
                "stays, or acknowledges.",
     .query = HTTP_PARAMETERS({"group", "of `/groups`: name of a group of readers"},
                              {"done", "the last generation that the group has consumed"},
                              {"lease", "how long the group may be silent, as 30s"}, REDIRECT),
     .body = "",
     .reply = "307 to the keeper; its reply is `{\"generation\": number}`, of `/groups` with "
              "`\"joined\"`",
     .errors = RING_ERRORS " no_generation"},
    {.name = "ring_clear",
     .method = HTTP_DELETE,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_DELETE,
     .signs = RING_SIGNS("DELETE"),
     .begin = keeper_begin,
     .summary = "`/samples`: drops all generations, and all samples that the keeper knows.",
     .query = HTTP_PARAMETERS(REDIRECT),
     .body = "",
     .reply = "307 to the keeper; its reply is `{\"generation\": number}`",
     .errors = RING_ERRORS},
    {.name = "ring_leave",
     .method = HTTP_DELETE,
     .pattern = "/v1/rings/{bucket}/groups",
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE, /* as to join */
     .signs = RING_SIGNS("DELETE"),
     .object = "groups",
     .begin = keeper_begin,
     .summary = "A group of readers leaves.",
     .query = HTTP_PARAMETERS({"group", "name of the group"}, REDIRECT),
     .body = "",
     .reply = "307 to the keeper; its reply is `{\"generation\": number, \"joined\": false}`",
     .errors = RING_ERRORS},
    {.name = NULL},
};
