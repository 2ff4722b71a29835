#include "target/http/upload_routes.h"

#include <string.h>
#include <strings.h>

#include "ais/dialect.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "target/http/put_spec.h"
#include "target/node/admit.h"
#include "target/node/call.h"
#include "target/node/header_lines.h"
#include "target/node/member.h"
#include "target/node/reply.h"
#include "target/node/target.h"
#include "target/store/own_meta.h"
#include "target/uploads/complete.h"

/* --- the state that the sender knows ---------------------------------------------------------- */

struct waiting {
    struct http_request *req;
    void (*begin)(struct http_request *req, void *arg);
    void *arg;
};

int upload_check_known(const struct http_request *req, struct error *err)
{
    const struct target *t = http_user(req);
    bool ahead;
    int code = sender_is_ahead(req, &ahead, err);
    return code == 0 && ahead
               ? error_set(err, E_NOT_READY, "target '%s' could not get cluster state %s", t->id,
                           http_query(req, "dfcv"))
               : code;
}

static void refreshed(void *arg)
{
    const struct waiting *w = arg;
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(w->req));
    if (upload_check_known(w->req, &err) != 0)
        http_reply_error(w->req, &err);
    else
        w->begin(w->req, w->arg);
    log_set_request(NULL);
}

void upload_begin_as_known(struct http_request *req,
                           void (*begin)(struct http_request *req, void *arg), void *arg)
{
    const struct target *t = http_user(req);
    struct error err = ERROR_INIT;
    bool ahead;
    if (sender_is_ahead(req, &ahead, &err) != 0) {
        http_reply_error(req, &err);
    } else if (ahead) {
        struct waiting *w = arena_alloc(http_arena(req), sizeof *w);
        *w = (struct waiting){.req = req, .begin = begin, .arg = arg};
        member_refresh(t->member, http_query(req, "dfcv"), refreshed, w);
    } else {
        begin(req, arg);
    }
}

void upload_set_error_form(struct http_request *req)
{
    if (ais_speaks(req))
        http_set_error_form(req, &ais_error_form);
}

/* --- which upload ----------------------------------------------------------------------------- */

int upload_of_request(const struct http_request *req, struct upload **out, struct error *err)
{
    struct target *t = http_user(req);
    const char *id = http_query(req, "upload"), *name = http_path_param(req, "bucket");
    if (id == NULL)
        return error_set(err, E_INVALID, "the query names no upload: ?upload=ID");
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b;
    int code = admit_find_bucket(s, name, http_query(req, "dfcb"), &b, err);
    if (code != 0)
        return code;
    return uploads_get(t->uploads, id, b->id, http_path_param(req, "object"), out, err);
}

int upload_number(const struct http_request *req, const char *name, uint64_t least, uint64_t most,
                  uint64_t *value, struct error *err)
{
    const char *text = http_query(req, name);
    int code = text != NULL ? parse_u64(text, value, err) : 0;
    if (code != 0)
        return error_recode(err, E_INVALID, "parameter '%s'", name);
    if (*value < least || *value > most)
        return error_set(err, E_INVALID, "parameter '%s' is not within %llu and %llu", name,
                         (unsigned long long)least, (unsigned long long)most);
    return 0;
}

static void unref_upload(void *arg)
{
    upload_unref(arg);
}

/* --- begin ------------------------------------------------------------------------------------ */

struct begin {
    struct object_call *call;
    struct upload_about about;
    struct buf headers;
};

static bool is_kept_header(const char *name)
{
    static const char *const names[] = {"Content-Type", "Content-Encoding", OBJECT_SUM_HEADER,
                                        OBJECT_TAGS_HEADER, UPLOAD_SUMS_HEADER};
    if (strncasecmp(name, OBJECT_META_PREFIX, strlen(OBJECT_META_PREFIX)) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    const struct own_meta *own = own_metas;
    while (own->name != NULL && !(own->is_kept && strcasecmp(name, own->sent) == 0))
        own++;
    return own->name != NULL;
}

struct keeping {
    struct buf *headers;
    bool is_sdk; /* it sends one Content-Type with everything */
};

static void keep_header(void *ctx, const char *name, const char *value)
{
    const struct keeping *k = ctx;
    if (!is_kept_header(name) || (k->is_sdk && strcasecmp(name, "Content-Type") == 0))
        return;
    buf_printf(k->headers, "%s: %s", name, value);
    buf_putc(k->headers, '\0');
}

static void begin_free(void *arg)
{
    struct begin *b = arg;
    buf_done(&b->headers);
}

static void begin_in_thread(void *arg)
{
    struct begin *b = arg;
    struct object_call *call = b->call;
    char id[UPLOAD_ID_CHARS + 1];
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    if (uploads_begin(call->target->uploads, &b->about, id, &err) != 0) {
        object_call_fail(call, "begin an upload of", &err);
    } else if (ais_speaks(call->req)) {
        http_reply_data(call->req, 200, "text/plain", id, strlen(id));
    } else {
        _cleanup_json_ json_t *doc = json_pack("{ss}", "upload", id);
        http_reply_json(call->req, 201, doc);
    }
    log_set_request(NULL);
}

static int check_sums(const struct http_request *req, struct error *err)
{
    const char *text = http_header(req, UPLOAD_SUMS_HEADER);
    struct s3_sum_kind kind;
    if (text == NULL || s3_sum_kind_parse(text, &kind))
        return 0;
    return error_set(err, E_INVALID,
                     UPLOAD_SUMS_HEADER ": '%.40s' is not like 'CRC32C COMPOSITE', with "
                                        "COMPOSITE or FULL_OBJECT",
                     text);
}

static void begin_admitted(struct object_call *call)
{
    struct error err = ERROR_INIT;
    struct begin *b = arena_alloc(http_arena(call->req), sizeof *b);
    *b = (struct begin){.call = call, .headers = BUF_INIT};
    http_on_end(call->req, begin_free, b);
    struct keeping keeping = {.headers = &b->headers, .is_sdk = ais_speaks(call->req)};
    http_each_header(call->req, keep_header, &keeping);
    b->about = (struct upload_about){.bucket_id = call->bucket->id,
                                     .object = arena_strdup(http_arena(call->req), call->name),
                                     .headers = b->headers.data,
                                     .headers_len = b->headers.len};
    int code = put_check_headers(call, &err);
    if (code == 0)
        code = check_sums(call->req, &err);
    if (code == 0)
        code = uploads_run(call->target->uploads, begin_in_thread, b, &err);
    if (code != 0)
        object_call_fail(call, "begin an upload of", &err);
}

/* --- complete --------------------------------------------------------------------------------- */

/* Of a row with a checksum SHA256, and blanks: each list has room, whatever body_max is. */
enum { LISTED_BYTES_MAX = 160, LIST_BYTES_MAX = PARTS_MAX * LISTED_BYTES_MAX };

struct complete_call {
    struct http_request *req;
    struct upload *upload;
    struct listed_part *list;
    size_t count;
};

/* The checksum, if the row has one. */
static int take_sum(json_t *item, const char *path, struct s3_sum_text *out, struct error *err)
{
    const char *text = "";
    int code = json_get_str(item, path, "sum", &text, err);
    if (code != 0 || *text == '\0' || (s3_sum_text_parse(text, out) && out->is_known))
        return code;
    return error_set(err, E_INVALID, "%s.sum: '%.80s' is no checksum of S3", path, text);
}

/* The SDK keeps no tags. */
static int take_listed(json_t *item, size_t at, bool is_sdk, struct listed_part *out,
                       struct error *err)
{
    static const char *const fields[] = {"part", "tag", "sum", NULL};
    uint64_t number = 0;
    const char *tag = NULL;
    struct s3_sum_text sum = {.is_known = false};
    struct checksum_value md5;
    char path[32];
    snprintf(path, sizeof path, "[%zu]", at);
    if (!json_is_object(item))
        return error_set(err, E_INVALID, "%s is not {\"part\": N, \"tag\": MD5}", path);
    int code = json_only_fields(item, path, fields, err);
    if (code == 0)
        code = json_need_u64(item, path, "part", &number, err);
    if (code == 0)
        code = is_sdk ? json_get_str(item, path, "tag", &tag, err)
                      : json_need_str(item, path, "tag", &tag, err);
    if (code == 0 && tag != NULL)
        code = checksum_parse(CHECKSUM_MD5, tag, &md5, err);
    if (code == 0)
        code = take_sum(item, path, &sum, err);
    if (code == 0 && (number < 1 || number > PARTS_MAX))
        code = error_set(err, E_INVALID, "%s.part: numbers are 1 to %d", path, PARTS_MAX);
    if (code != 0)
        return error_recode(err, E_INVALID, "list of parts");
    out->number = (unsigned)number;
    out->as_stored = tag == NULL;
    if (tag != NULL)
        memcpy(out->md5, md5.bytes, PART_MD5);
    out->has_sum = sum.is_known;
    out->sum = sum.value;
    return 0;
}

static int take_list(struct complete_call *c, const char *data, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = json_parse(data, len, &doc, err);
    if (code != 0)
        return code;
    size_t count = json_array_size(doc);
    if (!json_is_array(doc) || count > PARTS_MAX)
        return error_set(err, E_INVALID,
                         "the body is no list of at most %d parts: [{\"part\": N, \"tag\": MD5}]",
                         PARTS_MAX);
    c->list = arena_alloc(http_arena(c->req), (count + 1) * sizeof *c->list);
    for (size_t i = 0; i < count && code == 0; i++)
        code = take_listed(json_array_get(doc, i), i, ais_speaks(c->req), &c->list[i], err);
    c->count = count;
    return code;
}

/* What the PUT at the leader has of this request. */
static void put_conditions(struct http_request *req, struct header_lines *h)
{
    static const char *const names[] = {"If-Match", "If-None-Match", "If-Unmodified-Since",
                                        OBJECT_MISSING_HEADER};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = http_header_list(req, names[i]);
        if (value != NULL)
            header_lines_printf(h, "%s: %s", names[i], value);
    }
}

static void complete_in_thread(void *arg)
{
    struct complete_call *c = arg;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *reply = NULL;
    static const char *const none[] = {NULL};
    struct header_lines h;
    log_set_request(http_request_id(c->req));
    header_lines_begin(&h);
    put_conditions(c->req, &h);
    const struct completion completion = {.upload = c->upload,
                                          .list = c->list,
                                          .count = c->count,
                                          .headers = h.count > 0 ? h.lines : none,
                                          .sum = http_header(c->req, OBJECT_SUM_HEADER),
                                          .kind = http_header(c->req, UPLOAD_SUMS_HEADER)};
    if (upload_complete(&completion, &reply, &err) != 0)
        http_reply_error(c->req, &err);
    else
        http_reply_json(c->req, 200, reply);
    header_lines_end(&h);
    log_set_request(NULL);
}

static void complete_admitted(struct http_request *req, void *arg)
{
    struct target *t = http_user(req);
    struct complete_call *c = arg;
    struct error err = ERROR_INIT;
    int code = upload_of_request(req, &c->upload, &err);
    if (code == 0)
        http_on_end(req, unref_upload, c->upload);
    if (code == 0)
        code = uploads_run_long(t->uploads, complete_in_thread, c, &err);
    if (code != 0)
        http_reply_error(req, &err);
}

static void complete_body(struct http_request *req, const char *data, size_t len)
{
    struct complete_call *c = arena_alloc(http_arena(req), sizeof *c);
    struct error err = ERROR_INIT;
    *c = (struct complete_call){.req = req};
    if (take_list(c, data, len, &err) != 0)
        http_reply_error(req, &err);
    else
        upload_begin_as_known(req, complete_admitted, c);
}

static bool is_completing(void *ctx)
{
    (void)ctx;
    return true;
}

static void post_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    upload_set_error_form(req);
    if (http_query(req, "upload") != NULL) {
        http_be_patient(req, is_completing, NULL);
        http_collect_body(req,
                          t->params.body_max > LIST_BYTES_MAX ? t->params.body_max : LIST_BYTES_MAX,
                          complete_body);
        return;
    }
    struct object_call *call = object_call_new(req);
    call->begins_upload = true;
    object_call_start(call, begin_admitted);
}

/* --- abort ------------------------------------------------------------------------------------ */

struct abort_call {
    struct http_request *req;
    struct upload *upload;
};

static void abort_in_thread(void *arg)
{
    struct abort_call *a = arg;
    struct error err = ERROR_INIT;
    if (upload_abort(a->upload, &err) != 0)
        http_reply_error(a->req, &err);
    else
        http_reply_empty(a->req, 204);
}

static void abort_admitted(struct http_request *req, void *arg)
{
    (void)arg;
    struct target *t = http_user(req);
    struct abort_call *a = arena_alloc(http_arena(req), sizeof *a);
    struct error err = ERROR_INIT;
    *a = (struct abort_call){.req = req};
    int code = upload_of_request(req, &a->upload, &err);
    if (code == 0)
        http_on_end(req, unref_upload, a->upload);
    if (code == 0)
        code = uploads_run(t->uploads, abort_in_thread, a, &err);
    if (code != 0)
        http_reply_error(req, &err);
}

static void abort_begin(struct http_request *req)
{
    upload_set_error_form(req);
    upload_begin_as_known(req, abort_admitted, NULL);
}

/* --- the table -------------------------------------------------------------------------------- */

#define UPLOAD_PATTERN "/v1/uploads/{bucket}/{object...}"
#define FROM_PROXY                                                                  \
    {"dfcb", "the bucket's id, from a proxy's redirect"},                           \
        {"dfcv", "the state version, from there"},                                  \
        {"dfca", "with access control: the proxy's decision about this very call"}, \
    {                                                                               \
        "dfcd", "ais: the call is of AIStore's SDK"                                 \
    }
/* It follows a redirect itself, over TLS, and adds its query. */
#define FROM_SDK                                                                          \
    {"provider", "ais: from AIStore's SDK"}, {"uploadId", "not looked at: from the SDK"}, \
    {                                                                                     \
        "partNumber", "not looked at: from the SDK"                                       \
    }

const struct http_route upload_routes[] = {
    {.name = "upload_post",
     .method = HTTP_POST,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .signs = "upload-POST",
     .any_type = true,
     .begin = post_begin,
     .summary = "Begins an upload in parts, or completes the one that the query names.",
     .query = HTTP_PARAMETERS({"upload", "its id: to complete it"}, FROM_PROXY),
     .body = "begin: none, with the headers of a PUT, `Dfc-Upload-Sums`; complete: `[{\"part\": N, "
             "\"tag\": MD5, \"sum\": TEXT}]`, with `If-Match`, `If-None-Match`, `Dfc-Missing`, "
             "`Dfc-Sum`, `Dfc-Upload-Sums`; of the SDK a part without `tag` is taken as it is "
             "stored, however small",
     .reply = "begin: 201 `{\"upload\"}`, to the SDK 200 with the id alone; complete: 200 "
              "`{\"version\", \"etag\", \"size\", \"tag\", \"sum\"}`",
     .errors = "overloaded not_found mountpath_disabled not_ready invalid_part invalid_part_order "
               "part_too_small "
               "precondition_failed checksum_mismatch corrupt no_space quota_exceeded"},
    {.name = "upload_part",
     .method = HTTP_PUT,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .signs = "upload-PUT",
     .any_type = true,
     .begin = upload_part_begin,
     .summary = "Stores one part of an upload; one of the same number takes its place.",
     .query = HTTP_PARAMETERS({"upload", "its id"}, {"part", "1 to 10000"}, FROM_SDK, FROM_PROXY),
     .body = "the bytes, at most 5 GiB; `Content-MD5`, `Dfc-Sum`",
     .reply = "200 `{\"part\", \"tag\", \"size\", \"sum\"}`; `tag` is their MD5",
     .errors = "not_found mountpath_disabled not_ready too_large corrupt checksum_mismatch "
               "bad_length no_space"},
    {.name = "upload_parts",
     .method = HTTP_GET,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .signs = "upload-GET",
     .begin = upload_parts_begin,
     .summary = "The parts of an upload, by number.",
     .query = HTTP_PARAMETERS({"upload", "its id"}, {"after", "a number: only later ones"},
                              {"limit", "1 to 1000 (default 1000)"}, FROM_PROXY),
     .body = "",
     .reply = "`{\"parts\": [{\"part\", \"tag\", \"size\", \"time\", \"sum\"}], \"more\", "
              "\"sums\"}`; `time` in milliseconds since 1970",
     .errors = "not_found mountpath_disabled corrupt"},
    {.name = "upload_abort",
     .method = HTTP_DELETE,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .signs = "upload-DELETE",
     .begin = abort_begin,
     .summary = "Forgets an upload and its parts.",
     .query = HTTP_PARAMETERS({"upload", "its id"}, FROM_PROXY),
     .body = "",
     .reply = "204",
     .errors = "not_found mountpath_disabled not_ready"},
    {.name = NULL},
};
