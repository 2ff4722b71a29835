#include "proxy/ais/ais_summary.h"

#include <stdio.h>
#include <string.h>

#include "access/guard.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "proxy/ais/job_text.h"
#include "proxy/ais/summaries.h"
#include "proxy/list/list.h"
#include "proxy/list/merge.h"
#include "proxy/primary/proxy.h"

enum { ID_CHARS = 32, ID_MAX = 64 };

/* One that sums up the pages of a list; of the request's arena, but for its token. */
struct summing {
    struct http_request *req;
    struct list_request list;
    struct bucket_sums sums;
    const char *key;
    char *token; /* of the next page; NULL: the first one */
    uint64_t until_ms;
    bool remote;
};

static void summing_ended(void *arg)
{
    struct summing *s = arg;
    free(s->token);
}

static void reply_sums(struct summing *s)
{
    _cleanup_json_ json_t *sums = bucket_sums_json(&s->sums, s->list.bucket, s->remote);
    if (http_method(s->req) == HTTP_HEAD) {
        _cleanup_free_ char *text = json_text(sums);
        http_reply_header(s->req, "Ais-Bucket-Summ", text);
        http_reply_empty(s->req, 200);
        return;
    }
    _cleanup_json_ json_t *list = json_pack("[O]", sums);
    http_reply_json(s->req, 200, list);
}

static void reply_later(struct summing *s)
{
    const struct proxy *p = http_user(s->req);
    summaries_put(p->summaries, s->key, &s->sums, s->token);
    http_reply_empty(s->req, 202);
}

static void next_page(struct summing *s);

static void paged(void *arg, const struct error *failure, const struct buf *page)
{
    struct summing *s = arg;
    struct error err = failure != NULL ? *failure : ERROR_INIT;
    char *next = NULL;
    if (failure != NULL || bucket_sums_add(&s->sums, page, &next, &err) != 0) {
        proxy_reply_error(s->req, &err);
        return;
    }
    free(s->token);
    s->token = next;
    if (next == NULL)
        reply_sums(s);
    else if (clock_ms() >= s->until_ms)
        reply_later(s);
    else
        next_page(s);
}

static void next_page(struct summing *s)
{
    s->list.token = s->token;
    list_start(s->req, &s->list);
}

/* --- the start -------------------------------------------------------------------------------- */

static bool has_backend(const struct http_request *req)
{
    const struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct bucket *b = bmd_bucket(&s->bmd, http_path_param(req, "bucket"));
    return b != NULL && b->props.backend != NULL;
}

static int check(struct http_request *req, const char *id, const char *prefix, struct error *err)
{
    struct proxy *p = http_user(req);
    const char *bucket = http_path_param(req, "bucket");
    int code = guard_ask(req, RIGHT_LIST, bucket, prefix, err);
    if (code == 0 && strlen(id) > ID_MAX)
        code = error_set(err, E_INVALID, "the id of a summary has at most %d bytes", ID_MAX);
    if (code != 0 || (code = list_check_text(prefix, "prefix", err)) != 0)
        return code;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    return bmd_bucket(&s->bmd, bucket) != NULL ? 0 : proxy_no_bucket(p, bucket, err);
}

static void sum_up(struct http_request *req, const char *id, const char *prefix, bool cached)
{
    const struct proxy *p = http_user(req);
    struct arena *a = http_arena(req);
    struct summing *s = arena_alloc(a, sizeof *s);
    *s = (struct summing){
        .req = req,
        .list = LIST_REQUEST_DEFAULT(http_path_param(req, "bucket")),
        .until_ms = clock_ms() + param_live(p->params.summary_turn),
        .remote = !cached && has_backend(req),
    };
    s->list.prefix = arena_strdup(a, prefix);
    s->list.limit = LIST_LIMIT_MAX;
    s->list.cached = cached;
    s->list.done = paged;
    s->list.arg = s;
    s->key = arena_printf(a, "%s %s %d %s", id, s->list.bucket, cached, prefix);
    summaries_take(p->summaries, s->key, &s->sums, &s->token);
    http_on_end(req, summing_ended, s);
    next_page(s);
}

int ais_summary_start(struct http_request *req, json_t *value, struct error *err)
{
    const char *id = "", *prefix = "";
    bool cached = false, present = false;
    int code;
    if ((code = json_get_str(value, "value", "uuid", &id, err)) != 0 ||
        (code = json_get_str(value, "value", "prefix", &prefix, err)) != 0 ||
        (code = json_get_bool(value, "value", "cached", &cached, err)) != 0 ||
        (code = json_get_bool(value, "value", "present", &present, err)) != 0 ||
        (code = check(req, id, prefix, err)) != 0)
        return code;
    char new_id[ID_CHARS];
    random_id("sum-", new_id);
    if (id[0] == '\0')
        job_text_reply(req, new_id);
    else
        sum_up(req, id, prefix, cached);
    return 0;
}

/* Python's "True", too. */
static int read_remote(const struct http_request *req, bool *out, struct error *err)
{
    const char *text = http_query(req, "bsumm_remote");
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        *out = text[0] == 'T';
    else if (parse_bool(text, out, err) != 0)
        return error_wrap(err, "parameter 'bsumm_remote'");
    return 0;
}

int ais_summary_head(struct http_request *req, struct error *err)
{
    const char *asked = http_query(req, "uuid");
    const char *id = asked != NULL ? asked : "";
    bool remote = false;
    int code = read_remote(req, &remote, err);
    if (code != 0 || (code = check(req, id, "", err)) != 0)
        return code;
    if (id[0] != '\0') {
        sum_up(req, id, "", !remote);
        return 0;
    }
    char new_id[ID_CHARS];
    random_id("sum-", new_id);
    http_reply_header(req, "Ais-Xaction-Id", new_id);
    http_reply_empty(req, 202);
    return 0;
}
