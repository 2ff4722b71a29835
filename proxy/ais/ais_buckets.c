/* The SDK says in a JSON body what is to be done: {"action", "name", "value"}.  Bodies of native
 * calls are made of it, and the native handlers do the rest. */
#include "proxy/ais/ais_buckets.h"

#include <stdio.h>
#include <string.h>

#include "access/guard.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/ais_summary.h"
#include "proxy/ais/group_form.h"
#include "proxy/ais/job_text.h"
#include "proxy/http/buckets.h"
#include "proxy/http/objects_start.h"
#include "proxy/primary/job_start.h"
#include "proxy/primary/proxy.h"

/* --- the bucket ------------------------------------------------------------------------------- */

static int create(struct http_request *req, json_t *value, struct error *err)
{
    static const char body[] = "{\"action\":\"create\"}";
    (void)value;
    (void)err;
    bucket_post(req, body, sizeof body - 1);
    return 0;
}

/* "ais/@#/NAME/": the SDK's path of a bucket without a namespace. */
static int new_name_of(struct http_request *req, const char **out, struct error *err)
{
    static const char before[] = "ais/@#/";
    const char *to = http_query(req, "bck_to");
    size_t len = to != NULL ? strlen(to) : 0, skip = sizeof before - 1;
    if (to == NULL || strncmp(to, before, skip) != 0 || len < skip + 2 || to[len - 1] != '/')
        return error_set(err, E_INVALID,
                         "parameter 'bck_to': '%.64s' is not the path of a bucket, ais/@#/NAME/",
                         to != NULL ? to : "");
    *out = arena_strndup(http_arena(req), to + skip, len - skip - 1);
    return 0;
}

static int rename_bucket(struct http_request *req, json_t *value, struct error *err)
{
    const char *name = NULL;
    (void)value;
    int code = new_name_of(req, &name, err);
    if (code != 0)
        return code;
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s}", "action", "rename", "name", name);
    _cleanup_free_ char *body = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    if (body == NULL)
        return error_set(err, E_INVALID, "parameter 'bck_to' is no UTF-8 text");
    bucket_post(req, body, strlen(body));
    return 0;
}

/* The native route has this right. */
static int ask_admin(struct http_request *req, struct error *err)
{
    return guard_ask(req, RIGHT_ADMIN, http_path_param(req, "bucket"), NULL, err);
}

static int destroy(struct http_request *req, json_t *value, struct error *err)
{
    static const char body[] = "{\"action\":\"destroy\"}";
    int code = ask_admin(req, err);
    (void)value;
    if (code == 0)
        bucket_delete_by(req, body, sizeof body - 1);
    return code;
}

/* --- many of its objects ---------------------------------------------------------------------- */

/* `made`: a form of proxy/ais/group_form.h has returned this, and `native`, which is dropped. */
static int start(struct http_request *req, const char *kind, int made, json_t *native,
                 struct error *err)
{
    _cleanup_json_ json_t *drop = native;
    return made != 0 ? made : objects_start(req, kind, native, job_text_reply, err);
}

static int delete_objects(struct http_request *req, json_t *value, struct error *err)
{
    json_t *native = NULL;
    int made = group_form_delete(value, &native, err);
    return start(req, "delete", made, native, err);
}

static int evict_objects(struct http_request *req, json_t *value, struct error *err)
{
    json_t *native = NULL;
    int made = group_form_delete(value, &native, err);
    return start(req, "evict", made, native, err);
}

static int prefetch_objects(struct http_request *req, json_t *value, struct error *err)
{
    json_t *native = NULL;
    int made = group_form_prefetch(value, &native, err);
    return start(req, "prefetch", made, native, err);
}

static int copy_objects(struct http_request *req, json_t *value, struct error *err)
{
    json_t *native = NULL;
    int made = group_form_copy(value, &native, err);
    return start(req, "copy", made, native, err);
}

static int archive_objects(struct http_request *req, json_t *value, struct error *err)
{
    json_t *native = NULL;
    int made = group_form_archive(value, http_path_param(req, "bucket"), &native, err);
    return start(req, "archive", made, native, err);
}

static int copy_bucket(struct http_request *req, json_t *value, struct error *err)
{
    const char *to = NULL;
    json_t *native = NULL;
    int made = new_name_of(req, &to, err);
    if (made == 0)
        made = group_form_copy_bucket(value, to, &native, err);
    return start(req, "copy", made, native, err);
}

/* --- what is to be done ----------------------------------------------------------------------- */

/* `value`: an object. */
struct action {
    const char *name;
    /* 0: it has replied or will; a code: the caller replies. */
    int (*run)(struct http_request *req, json_t *value, struct error *err);
};

static const struct action post_actions[] = {
    {"create-bck", create},
    {"move-bck", rename_bucket},
    {"copy-bck", copy_bucket},
    {"copy-listrange", copy_objects},
    {"prefetch-listrange", prefetch_objects},
    {NULL},
};
static const struct action put_actions[] = {
    {"archive", archive_objects},
    {NULL},
};
static const struct action delete_actions[] = {
    {"destroy-bck", destroy},
    {"delete-listrange", delete_objects},
    {"evict-listrange", evict_objects},
    {NULL},
};

static int run(struct http_request *req, const struct action *table, const char *data, size_t len,
               struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_json_ json_t *none = json_object();
    json_t *value = NULL;
    const char *name = NULL;
    int code = ais_read_action(data, len, &doc, &name, err);
    if (code == 0)
        code = json_get_object(doc, "", "value", &value, err);
    if (code != 0)
        return code;
    for (const struct action *a = table; a->name != NULL; a++) {
        if (strcmp(a->name, name) == 0)
            return a->run(req, value != NULL ? value : none, err);
    }
    code = ask_admin(req, err);
    return code != 0 ? code : ais_refuse_action(name, err);
}

static void run_body(struct http_request *req, const struct action *table, const char *data,
                     size_t len)
{
    struct error err = ERROR_INIT;
    if (ais_check_common(req, &err) != 0 || run(req, table, data, len, &err) != 0)
        http_reply_error(req, &err);
}

static void post_body(struct http_request *req, const char *data, size_t len)
{
    run_body(req, post_actions, data, len);
}

static void put_body(struct http_request *req, const char *data, size_t len)
{
    run_body(req, put_actions, data, len);
}

static void delete_body(struct http_request *req, const char *data, size_t len)
{
    run_body(req, delete_actions, data, len);
}

void ais_bucket_post_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, JOB_SPEC_MAX, post_body);
}

void ais_bucket_put_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, JOB_SPEC_MAX, put_body);
}

void ais_bucket_delete_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, JOB_SPEC_MAX, delete_body);
}

/* --- HEAD ------------------------------------------------------------------------------------- */

/* In AIStore's names, as far as we have them. */
static char *props_text(const struct bucket *b)
{
    const struct bucket_props *p = &b->props;
    _cleanup_json_ json_t *doc = json_pack(
        "{s:s, s:s, s:s, s:{s:b, s:I}, s:{s:b, s:I, s:I}, s:{s:s}}", "provider", "ais", "bid", "",
        "created", "", "mirror", "enabled", p->copies > 1, "copies", (json_int_t)p->copies, "ec",
        "enabled", p->ec_data > 0, "data_slices", (json_int_t)p->ec_data, "parity_slices",
        (json_int_t)p->ec_parity, "checksum", "type", checksum_name(p->checksum));
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)b->id);
    json_object_set_new(doc, "bid", json_string(text));
    snprintf(text, sizeof text, "%llu000000", (unsigned long long)b->created_ms);
    json_object_set_new(doc, "created", json_string(text));
    return json_dumps(doc, JSON_COMPACT | JSON_ENSURE_ASCII);
}

void ais_bucket_head_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    struct error err = ERROR_INIT;
    const char *name = http_path_param(req, "bucket");
    if (p == NULL)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct bucket *b = bmd_bucket(&s->bmd, name);
    if (ais_check_common(req, &err) != 0 || (b == NULL && proxy_no_bucket(p, name, &err) != 0)) {
        http_reply_error(req, &err);
        return;
    }
    _cleanup_free_ char *text = props_text(b);
    http_reply_header(req, "Ais-Bucket-Props", text);
    if (http_query(req, "bsumm_remote") == NULL)
        http_reply_empty(req, 200);
    else if (ais_summary_head(req, &err) != 0)
        http_reply_error(req, &err);
}
