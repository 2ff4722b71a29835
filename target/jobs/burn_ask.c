#include "target/jobs/burn_ask.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "net/client/client.h"
#include "target/archive/batch_fetch.h"
#include "target/archive/batch_spec.h"

enum { PAGE = 1000, PAGE_BYTES_MAX = 16 << 20 };

/* --- an object -------------------------------------------------------------------------------- */

static void keep_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text != NULL ? text : "");
}

static void begin(struct burn_answer *a)
{
    *a = (struct burn_answer){.etag = ""};
    a->found =
        (struct burn_found){.etag = a->etag, .checksum_type = a->type, .checksum = a->checksum};
}

/* {"size", "checksum": {"type", "value"}, "etag"}, as after a PUT. */
static int read_digest(struct buf *body, struct burn_answer *a, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *sum = NULL;
    const char *type = NULL, *value = NULL, *etag = NULL;
    int code;
    if ((code = json_parse(buf_str(body), body->len, &doc, err)) != 0 ||
        (code = json_need_u64(doc, "", "size", &a->found.size, err)) != 0 ||
        (code = json_need_str(doc, "", "etag", &etag, err)) != 0 ||
        (code = json_get_object(doc, "", "checksum", &sum, err)) != 0 ||
        (code = json_need_str(sum, "checksum", "type", &type, err)) != 0 ||
        (code = json_need_str(sum, "checksum", "value", &value, err)) != 0)
        return code;
    keep_text(a->etag, sizeof a->etag, etag);
    keep_text(a->type, sizeof a->type, type);
    keep_text(a->checksum, sizeof a->checksum, value);
    return 0;
}

/* As a client's HEAD; what may pass is waited for, as long as a client would. */
static int ask_head(struct job_base *j, const struct burn_ask *ask, struct burn_answer *a,
                    struct error *err)
{
    const struct batch_entry entry = {.bucket = ask->bucket, .object = ask->object};
    struct checksum_value sum;
    int64_t modified_s = 0;
    struct batch_fetch *f = batch_fetch_begin(j->target, &entry, BATCH_LOOK, NULL);
    int code = batch_fetch_head(f, &j->stop, &a->found.size, &modified_s, err);
    if (code == 0) {
        batch_fetch_checksum(f, &sum);
        keep_text(a->etag, sizeof a->etag, batch_fetch_etag(f));
        if (sum.type != CHECKSUM_NONE)
            keep_text(a->type, sizeof a->type, checksum_name(sum.type));
        if (sum.type != CHECKSUM_NONE)
            checksum_hex(&sum, a->checksum);
    }
    batch_fetch_end(f);
    return code;
}

/* A target may need long for that. */
static int ask_digest(struct job_base *j, const struct burn_ask *ask, struct burn_answer *a,
                      struct error *err)
{
    struct target *t = j->target;
    char match[BURN_ETAG_MAX + 16], separator = '?';
    const char *lines[] = {NULL, NULL};
    _cleanup_buf_ struct buf url = BUF_INIT;
    _cleanup_free_ char *node = NULL;
    struct copier_reply reply = {.status = 0};
    int code = batch_fetch_url(t, ask->bucket, ask->object, &node, &url, &separator, err);
    if (code != 0)
        return code;
    buf_printf(&url, "%cdigest=%s", separator, ask->digest);
    if (ask->etag != NULL) {
        snprintf(match, sizeof match, "If-Match: %s", ask->etag);
        lines[0] = match;
    }
    const struct http_call call = {.method = HTTP_GET,
                                   .url = buf_str(&url),
                                   .node = node,
                                   .headers = lines,
                                   .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT};
    code = object_copier_call(j->copier, &call, &reply, err); /* which the job's end ends */
    if (code == 0)
        code = read_digest(&reply.body, a, err);
    buf_done(&reply.body);
    return code;
}

static int ask_once(struct job_base *j, const struct burn_ask *ask, struct burn_answer *out,
                    struct error *err)
{
    begin(out);
    return ask->digest != NULL ? ask_digest(j, ask, out, err) : ask_head(j, ask, out, err);
}

int burn_ask(struct job_base *j, const struct burn_ask *ask, struct burn_answer *out,
             struct error *err)
{
    for (unsigned failures = 1;; failures++) {
        *err = ERROR_INIT;
        int code = ask_once(j, ask, out, err);
        if (!job_base_again(j, code, err, failures))
            return code != 0 && j->stop.wanted ? job_base_check(j, err) : code;
    }
}

/* --- a list ----------------------------------------------------------------------------------- */

static int ask_page(struct target *t, const char *bucket, const char *prefix, const char *token,
                    json_t **out, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct node *primary = s->primary != NULL ? smap_node(&s->smap, s->primary) : NULL;
    _cleanup_buf_ struct buf url = BUF_INIT;
    struct http_result r = {0};
    if (primary == NULL)
        return error_set(err, E_NOT_READY, "no primary proxy is known");
    buf_printf(&url, "%s/v1/objects/%s?limit=%d&prefix=", primary->control_url, bucket, PAGE);
    buf_put_url_escaped(&url, prefix, strlen(prefix), "");
    buf_puts(&url, "&token=");
    buf_put_url_escaped(&url, token, strlen(token), "");
    const struct http_call call = {
        .method = HTTP_GET, .url = buf_str(&url), .node = primary->id, .reply_max = PAGE_BYTES_MAX};
    int code = http_call_wait(t->control_client, &call, &r, err);
    if (code == 0)
        code = json_parse(buf_str(&r.body), r.body.len, out, err);
    http_result_done(&r);
    return code;
}

static int give(json_t *entry,
                int (*fn)(void *ctx, const char *name, const struct burn_found *found,
                          struct error *err),
                void *ctx, struct error *err)
{
    struct burn_found found = {.etag = ""};
    const char *name = NULL;
    json_t *sum = NULL;
    int code;
    if ((code = json_need_str(entry, "entries", "name", &name, err)) != 0 ||
        (code = json_get_u64(entry, "entries", "size", &found.size, err)) != 0 ||
        (code = json_get_i64(entry, "entries", "modified_ms", &found.modified_ms, err)) != 0 ||
        (code = json_get_object(entry, "entries", "checksum", &sum, err)) != 0)
        return code;
    found.checksum_type = json_string_value(json_object_get(sum, "type"));
    found.checksum = json_string_value(json_object_get(sum, "value"));
    return fn(ctx, name, &found, err);
}

static int ask_page_again(struct job_base *j, const char *bucket, const char *prefix,
                          const char *token, json_t **out, struct error *err)
{
    for (unsigned failures = 1;; failures++) {
        *err = ERROR_INIT;
        int code = ask_page(j->target, bucket, prefix, token, out, err);
        if (!job_base_again(j, code, err, failures))
            return code != 0 && j->stop.wanted ? job_base_check(j, err) : code;
    }
}

int burn_ask_list(struct job_base *j, const char *bucket, const char *prefix,
                  int (*fn)(void *ctx, const char *name, const struct burn_found *found,
                            struct error *err),
                  void *ctx, struct error *err)
{
    _cleanup_free_ char *token = xstrdup("");
    int code;
    do {
        _cleanup_json_ json_t *page = NULL;
        json_t *entries = NULL, *entry;
        const char *next = NULL;
        size_t i;
        if ((code = ask_page_again(j, bucket, prefix, token, &page, err)) != 0 ||
            (code = json_get_array(page, "", "entries", &entries, err)) != 0 ||
            (code = json_need_str(page, "", "next", &next, err)) != 0)
            return code;
        json_array_foreach(entries, i, entry)
        {
            if ((code = give(entry, fn, ctx, err)) != 0)
                return code;
        }
        free(token);
        token = xstrdup(next);
    } while (*token != '\0');
    return 0;
}
