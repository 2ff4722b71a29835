#include "target/http/put_spec.h"

#include <strings.h>

#include "common/clock.h"
#include "common/parse.h"
#include "target/cold/back.h"
#include "target/backend/meta.h"
#include "target/node/call.h"
#include "target/cold/cold.h"
#include "target/copies/copies.h"
#include "target/format/ec_manifest.h"
#include "target/node/reply.h"
#include "target/slices/write.h"
#include "target/copies/hidden.h"
#include "target/copies/hollow.h"
#include "target/copies/object_copy.h"
#include "target/http/object_routes.h"
#include "target/node/target.h"
#include "target/copies/unsettled.h"

/* --- what the headers say --------------------------------------------------------------------- */

struct meta {
    struct buf pairs;
    size_t count; /* of them, as the client sent them */
    struct error err;
};

static void collect_meta(void *ctx, const char *name, const char *value)
{
    struct meta *m = ctx;
    size_t prefix = strlen(OBJECT_META_PREFIX);
    if (m->err.code != 0 || strncasecmp(name, OBJECT_META_PREFIX, prefix) != 0)
        return;
    if (m->pairs.len + strlen(name) - prefix + strlen(value) + 2 > ATTR_META_MAX) {
        error_set(&m->err, E_INVALID, "user metadata has more than %d bytes", ATTR_META_MAX);
        return;
    }
    for (const char *at = name + prefix; *at != '\0'; at++)
        buf_putc(&m->pairs, *at >= 'A' && *at <= 'Z' ? (char)(*at + ('a' - 'A')) : *at);
    buf_putc(&m->pairs, '\0');
    buf_append(&m->pairs, value, strlen(value) + 1);
    m->count++;
}

static void put_pair(struct meta *m, const char *name, const char *value)
{
    buf_append(&m->pairs, name, strlen(name) + 1);
    buf_append(&m->pairs, value, strlen(value) + 1);
}

/* Kept, and given again with the bytes as they are; beside the user's own, which would be taken for
 * it. */
static void collect_encoding(struct http_request *req, struct meta *m)
{
    const char *value = http_header_list(req, "Content-Encoding");
    if (m->err.code == 0 && backend_meta_encoding(m->pairs.data, m->pairs.len) != NULL)
        error_set(&m->err, E_INVALID,
                  "user metadata '" OBJECT_BACKEND_ENCODING "': the name is the target's own; send "
                  "the header Content-Encoding");
    if (m->err.code != 0 || value == NULL || *value == '\0' || strcasecmp(value, "identity") == 0)
        return;
    if (strlen(value) >= BACKEND_ENCODING_MAX)
        error_set(&m->err, E_INVALID, "Content-Encoding has more than %d characters",
                  BACKEND_ENCODING_MAX - 1);
    else if (m->pairs.len + sizeof OBJECT_BACKEND_ENCODING + strlen(value) + 1 > ATTR_META_MAX)
        error_set(&m->err, E_INVALID, "user metadata and Content-Encoding have more than %d bytes",
                  ATTR_META_MAX);
    else
        put_pair(m, OBJECT_BACKEND_ENCODING, value);
}

/* What the bytes must have: Dfc-Checksum-Type and -Value, or Content-MD5. */
static int parse_expected(const struct http_request *req, struct checksum_value *sum,
                          const struct checksum_value **expect, struct error *err)
{
    const char *type_name = http_header(req, "Dfc-Checksum-Type");
    const char *value = http_header(req, "Dfc-Checksum-Value");
    const char *md5 = http_header(req, "Content-MD5");
    enum checksum_type type;
    *expect = NULL;
    if (md5 != NULL && (type_name != NULL || value != NULL))
        return error_set(err, E_INVALID, "Content-MD5 and Dfc-Checksum: send one of them");
    if (md5 != NULL && !checksum_parse_base64(CHECKSUM_MD5, md5, sum))
        return error_set(err, E_INVALID, "Content-MD5: '%.64s' is not the base64 of an MD5", md5);
    if (md5 != NULL)
        *expect = sum;
    if (type_name == NULL && value == NULL)
        return 0;
    if (type_name == NULL || value == NULL)
        return error_set(err, E_INVALID, "header %s is missing",
                         value == NULL ? "Dfc-Checksum-Value" : "Dfc-Checksum-Type");
    int code = checksum_from_name(type_name, &type, err);
    if (code == 0)
        code = checksum_parse(type, value, sum, err);
    if (code != 0)
        return error_recode(err, E_INVALID, "Dfc-Checksum");
    *expect = type != CHECKSUM_NONE ? sum : NULL;
    return 0;
}

bool put_has_conditions(const struct http_request *req)
{
    return http_header(req, "If-Match") != NULL || http_header(req, "If-None-Match") != NULL ||
           http_header(req, "If-Unmodified-Since") != NULL;
}

static int check_conditions(void *ctx, const struct attr *current, struct error *err)
{
    const struct object_call *call = ctx;
    int code = copies_are_several(call->bucket) ? 0 : object_call_check_owners(call, err);
    return code != 0 ? code : object_call_check_conditions(call, HTTP_PUT, current, err);
}

/* --- copies that other targets send ----------------------------------------------------------- */

static bool is_sent_as(const struct object_call *call, const char *what)
{
    const char *text = http_header(call->req, OBJECT_COPY_HEADER);
    return call->put.from_peer && text != NULL && strcmp(text, what) == 0;
}

bool put_is_move(const struct object_call *call)
{
    return is_sent_as(call, OBJECT_COPY_MOVE) || is_sent_as(call, OBJECT_COPY_HOLLOW);
}

bool put_is_stage(const struct object_call *call)
{
    return is_sent_as(call, OBJECT_COPY_STAGE);
}

bool put_is_copy(const struct object_call *call)
{
    return put_is_move(call) || put_is_stage(call);
}

static int parse_hollow(const struct object_call *call, struct object_moved *moved,
                        struct error *err)
{
    const char *size = http_header(call->req, HOLLOW_HEADER);
    if (!is_sent_as(call, OBJECT_COPY_HOLLOW))
        return 0;
    int code = size != NULL ? parse_u64(size, &moved->hollow, err) : 0;
    if (code == 0 && moved->hollow == 0)
        return error_set(err, E_INVALID, "without bytes it has the header " HOLLOW_HEADER);
    if (code == 0 && (moved->tombstone || http_content_length(call->req) > 0))
        return error_set(err, E_INVALID, "with " HOLLOW_HEADER " no bytes come, and no tombstone");
    return code;
}

static int parse_move(const struct object_call *call, struct object_moved *moved, struct error *err)
{
    const char *version = http_header(call->req, "Dfc-Version");
    const char *modified = http_header(call->req, OBJECT_MODIFIED_HEADER);
    uint64_t modified_ms = 0;
    if (version == NULL || modified == NULL)
        return error_set(err, E_INVALID,
                         "an object that is moved has Dfc-Version and " OBJECT_MODIFIED_HEADER);
    int code = version_parse(version, &moved->version, err);
    if (code == 0)
        code = parse_u64(modified, &modified_ms, err);
    moved->modified_ms = (int64_t)(modified_ms & INT64_MAX);
    moved->tombstone = http_header(call->req, OBJECT_TOMBSTONE_HEADER) != NULL;
    moved->pending = http_header(call->req, OBJECT_PENDING_HEADER) != NULL;
    moved->ranks = call->bucket->props.backend == NULL; /* with one pairs come with uploads */
    if (code == 0)
        code = parse_hollow(call, moved, err);
    return code != 0 ? error_recode(err, E_INVALID, OBJECT_COPY_HEADER) : 0;
}

/* What was the newest of all when it was sent need not be if it comes late: others may have owned
 * and written the name meanwhile, and have been forgotten (cluster/documents/layout.h). */
static int check_move(void *ctx, const struct attr *current, struct error *err)
{
    const struct object_call *call = ctx;
    (void)current;
    return sender_knows_owners(call->req, err);
}

static int put_move_spec(struct object_call *call, struct object_put_spec *spec,
                         struct object_moved *moved, struct error *err)
{
    int code = parse_move(call, moved, err);
    spec->durability = DURABILITY_SYNC;
    spec->checksum = spec->expect != NULL ? spec->expect->type : CHECKSUM_NONE;
    spec->moved = moved;
    if (spec->size == OBJECT_SIZE_UNKNOWN) /* an empty body need not say so */
        spec->size = 0;
    spec->condition = (struct object_condition){.check = check_move, .ctx = call};
    spec->job_id = http_header(call->req, HIDDEN_JOB_HEADER);
    if (spec->job_id != NULL)
        spec->condition = (struct object_condition){.check = hidden_check, .ctx = call->req};
    return code;
}

/* *durable, or call->put.rule. */
static int parse_copy(struct object_call *call, const struct checksum_value *sum, bool *durable,
                      struct error *err)
{
    const char *text = http_header(call->req, OBJECT_COPY_HEADER);
    int64_t length = http_content_length(call->req);
    if (text == NULL || length < 0)
        return error_set(err, E_INVALID, "a copy has a length and the header " OBJECT_COPY_HEADER);
    *durable = strcmp(text, OBJECT_COPY_DURABLE) == 0;
    call->put.rule = (struct copy_rule){.size = (uint64_t)length};
    if (sum != NULL)
        call->put.rule.checksum = *sum;
    if (*durable)
        return 0;
    int code = admit_parse_state_version(text, &call->put.rule.term, &call->put.rule.version, err);
    return code != 0 ? error_recode(err, E_INVALID, OBJECT_COPY_HEADER) : 0;
}

static int check_copy(void *ctx, const struct attr *current, struct error *err)
{
    struct object_call *call = ctx;
    int code = copies_are_several(call->bucket) ? 0 : object_call_check_owners(call, err);
    return code != 0 ? code : copy_rule_check(&call->put.rule, current, err);
}

static int put_copy_spec(struct object_call *call, struct object_put_spec *spec, struct error *err)
{
    bool durable = false;
    int code = parse_copy(call, spec->expect, &durable, err);
    if (code == 0)
        code = bucket_refuse_made(call->bucket, "copies", err);
    spec->pending = bucket_is_written_back(call->bucket);
    if (durable || spec->pending)
        spec->durability = DURABILITY_SYNC;
    if (!durable)
        spec->condition = (struct object_condition){.check = check_copy, .ctx = call};
    return code;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Of a bucket whose backend may have the last word the conditions are asked there (cold/write.c,
 * back_write.c). */
static bool asks_here(const struct object_call *call)
{
    return put_has_conditions(call->req) && !cold_writes_through(call) && !back_takes(call);
}

/* Before anybody can see it the name is marked: who sends it may die before all have it.  Not where
 * its bytes do not come, for nothing is answered from that. */
static int begin_here(const struct object_call *call, const struct object_put_spec *spec,
                      struct object_put **put, struct error *err)
{
    int code = object_put_begin(call->target->store, spec, put, err);
    if (code == 0 && copies_are_several(call->bucket) && spec->moved != NULL &&
        spec->moved->hollow == 0 && spec->job_id == NULL)
        unsettled_mark(call->target->copies->unsettled, call->bucket->id, call->name,
                       &spec->moved->version, clock_ms());
    return code;
}

static int put_begin_with(struct object_call *call, const struct meta *meta,
                          struct object_put **put, struct error *err)
{
    const struct http_request *req = call->req;
    struct checksum_value sum;
    const struct checksum_value *expect;
    if (http_header(req, "Content-Range") != NULL) /* kept, a part would pass for the whole */
        return error_set(err, E_INVALID, "PUT stores whole objects: no Content-Range");
    int code = parse_expected(req, &sum, &expect, err);
    if (code != 0)
        return code;
    int64_t length = http_content_length(req);
    struct object_put_spec spec = {
        .bucket_id = call->bucket->id,
        .name = call->name,
        .size = length >= 0 ? (uint64_t)length : OBJECT_SIZE_UNKNOWN,
        .durability = back_takes(call) ? DURABILITY_SYNC : call->bucket->props.durability,
        .checksum = call->bucket->props.checksum,
        .expect = expect,
        .content_type = http_header(req, "Content-Type"),
        .meta = meta->pairs.data,
        .meta_len = meta->pairs.len,
        .condition = {.check = asks_here(call) ? check_conditions : NULL, .ctx = call},
        .earlier = &call->earlier,
        .pending = back_takes(call),
    };
    struct object_moved moved = {.tombstone = false};
    struct ec_manifest manifest;
    spec.slices = call->put.from_peer ? http_header(req, EC_MANIFEST_HEADER) : NULL;
    if (spec.slices != NULL && ec_manifest_parse(spec.slices, &manifest, err) != 0)
        return error_recode(err, E_INVALID, EC_MANIFEST_HEADER);
    if (call->put.from_peer && !put_is_stage(call))
        code = put_is_move(call) ? put_move_spec(call, &spec, &moved, err)
                                 : put_copy_spec(call, &spec, err);
    if (code != 0)
        return code;
    if (!call->put.acts)
        return begin_here(call, &spec, put, err);
    call->put.condition = spec.condition;
    if (ec_upload_wanted(call))
        return ec_upload_begin(call, &spec, &call->put.ec, err);
    spec.condition = (struct object_condition){.check = NULL};
    code = object_put_begin(call->target->store, &spec, put, err);
    if (code == 0)
        code = copies_begin_put(call, spec.content_type, spec.meta, spec.meta_len, err);
    if (code != 0)
        object_put_abort(steal(*put));
    return code;
}

/* What the backend could not keep would be gone with the object's eviction.  What is moved or
 * staged has been looked at, and has the target's own names.  What other targets send may be an
 * object with more pairs, which an earlier build took. */
static int check_meta(const struct object_call *call, const struct meta *meta, struct error *err)
{
    if (meta->err.code != 0)
        return error_set(err, meta->err.code, "%s", meta->err.message);
    if (!call->put.from_peer && meta->count > OBJECT_META_PAIRS_MAX)
        return error_set(
            err, E_INVALID,
            "%zu headers of user metadata (Dfc-Meta-*), at most %d are taken: put more "
            "than one value into a header",
            meta->count, OBJECT_META_PAIRS_MAX);
    if (put_is_copy(call) || call->bucket->props.backend == NULL || meta->pairs.len == 0)
        return 0;
    return backend_meta_check(call->bucket->props.backend, meta->pairs.data, meta->pairs.len, err);
}

int put_open(struct object_call *call, struct object_put **put, struct error *err)
{
    int refused = call->put.from_peer ? 0 : bucket_refuse_write(call->bucket, "PUT", err);
    if (refused != 0)
        return refused;
    struct meta meta = {.pairs = BUF_INIT};
    http_each_header(call->req, collect_meta, &meta);
    if (!call->put.from_peer)
        collect_encoding(call->req, &meta);
    call->put.acts = copies_are_several(call->bucket) && !put_is_copy(call) && !call->put.passes;
    int code = check_meta(call, &meta, err);
    if (code == 0)
        code = put_begin_with(call, &meta, put, err);
    buf_done(&meta.pairs);
    return code;
}
