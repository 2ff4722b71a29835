#include "target/http/put_spec.h"

#include <strings.h>

#include "ais/dialect.h"
#include "cluster/documents/bucket_refuse.h"
#include "target/backend/meta.h"
#include "target/node/call.h"
#include "target/format/attr_tags.h"
#include "target/format/ec_manifest.h"
#include "target/node/reply.h"
#include "target/copies/object_copy.h"
#include "s3/sum_text.h"
#include "s3/uploads/object_sum.h"
#include "s3/uploads/part_sizes.h"
#include "s3/uploads/part_sums.h"
#include "target/node/target.h"
#include "target/node/write_path.h"
#include "target/store/own_meta.h"
#include "target/uploads/complete.h"

static bool is_made_durable(const struct http_request *req)
{
    const char *text = http_header(req, OBJECT_COPY_HEADER);
    return text != NULL && strcmp(text, OBJECT_COPY_MADE_DURABLE) == 0;
}

enum put_kind put_kind_of_peer(const struct http_request *req)
{
    const char *text = http_header(req, OBJECT_COPY_HEADER);
    if (text == NULL)
        return PUT_JOB;
    return strcmp(text, OBJECT_COPY_MOVE) == 0     ? PUT_MOVE
           : strcmp(text, OBJECT_COPY_HOLLOW) == 0 ? PUT_HOLLOW
           : strcmp(text, OBJECT_COPY_STAGE) == 0  ? PUT_STAGE
           : strcmp(text, OBJECT_COPY_UPLOAD) == 0 ? PUT_CLIENT
           : strcmp(text, OBJECT_COPY_MADE) == 0   ? PUT_CLIENT
           : strcmp(text, OBJECT_COPY_RING) == 0   ? PUT_CLIENT
           : is_made_durable(req)                  ? PUT_CLIENT
                                                   : PUT_JOB;
}

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

/* Would be taken for what the target itself keeps. */
static void refuse_own(struct meta *m)
{
    const struct attr all = {.meta = m->pairs.data, .meta_len = m->pairs.len};
    for (const struct own_meta *own = own_metas; own->name != NULL && m->err.code == 0; own++) {
        if (attr_meta_find(&all, own->name) != NULL)
            error_set(&m->err, E_INVALID, "user metadata '%s': the name is the target's own%s%s",
                      own->name, own->sent != NULL ? "; send the header " : "",
                      own->sent != NULL ? own->sent : "");
    }
}

static void add_own(struct meta *m, const struct own_meta *own, const char *value)
{
    if (m->pairs.len + strlen(own->name) + strlen(value) + 2 > ATTR_META_MAX)
        error_set(&m->err, E_INVALID, "user metadata and %s have more than %d bytes", own->sent,
                  ATTR_META_MAX);
    else
        attr_meta_add(&m->pairs, own->name, value);
}

/* Given again with the bytes as they are: nothing is ever decoded here. */
static void collect_encoding(struct http_request *req, struct meta *m)
{
    const char *value = http_header_list(req, "Content-Encoding");
    if (m->err.code != 0 || value == NULL || *value == '\0' || strcasecmp(value, "identity") == 0)
        return;
    if (strlen(value) >= BACKEND_ENCODING_MAX)
        error_set(&m->err, E_INVALID, "Content-Encoding has more than %d characters",
                  BACKEND_ENCODING_MAX - 1);
    else
        add_own(m, own_meta_find(OBJECT_BACKEND_ENCODING), value);
}

static void collect_tags(struct http_request *req, struct meta *m)
{
    _cleanup_buf_ struct buf tags = BUF_INIT;
    const char *value = http_header(req, OBJECT_TAGS_HEADER);
    if (m->err.code == 0 && value != NULL && attr_tags_normalize(value, &tags, &m->err) == 0 &&
        tags.len > 0)
        add_own(m, own_meta_find(ATTR_TAGS), buf_str(&tags));
}

static void collect_kept(struct http_request *req, struct meta *m)
{
    for (const struct own_meta *own = own_metas; own->name != NULL && m->err.code == 0; own++) {
        const char *value = own->is_kept ? http_header_list(req, own->sent) : NULL;
        if (value != NULL && *value != '\0')
            add_own(m, own, value);
    }
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

static int check_conditions(void *ctx, const struct attr *current, struct error *err)
{
    const struct object_call *call = ctx;
    int code = object_call_check_owners(call, err);
    return code != 0 ? code : object_call_check_conditions(call, HTTP_PUT, current, err);
}

/* --- copies that jobs of other targets send --------------------------------------------------- */

/* *durable, or call->put.rule. */
static int parse_copy(struct object_call *call, const struct checksum_value *sum, bool *durable,
                      struct error *err)
{
    const char *text = http_header(call->req, OBJECT_COPY_HEADER);
    int64_t length = http_content_length(call->req);
    if (text == NULL || length < 0)
        return error_set(err, E_INVALID, "a copy has a length and the header " OBJECT_COPY_HEADER);
    *durable = strcmp(text, OBJECT_COPY_DURABLE) == 0;
    call->put.rule =
        (struct copy_rule){.size = (uint64_t)length, .write_once = call->bucket->props.write_once};
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
    int code = object_call_check_owners(call, err);
    return code != 0 ? code : copy_rule_check(&call->put.rule, current, err);
}

static int put_copy_spec(struct object_call *call, struct object_put_spec *spec, struct error *err)
{
    bool durable = false;
    int code = parse_copy(call, spec->expect, &durable, err);
    if (code == 0)
        code = bucket_refuse_made(call->bucket, "copies", err);
    call->put.renames = durable;
    spec->pending = bucket_is_written_back(call->bucket);
    if (durable || spec->pending)
        spec->durability = DURABILITY_SYNC;
    if (!durable)
        spec->condition = (struct object_condition){.check = check_copy, .ctx = call};
    return code;
}

/* --- quotas ----------------------------------------------------------------------------------- */

static void end_claim(void *arg)
{
    quota_claim_end(arg);
}

/* The target that leads the name claims: what is moved, staged or passed on has been claimed, and a
 * rename adds nothing.  Members are claimed with their archive. */
static int claim_quota(struct object_call *call, uint64_t size, struct error *err)
{
    const struct call_put *p = &call->put;
    if (object_call_is_copy(call) || p->passes || p->renames || p->appends)
        return 0;
    int code = quota_claim_begin(call->target->quotas, call->bucket, call->name, size,
                                 &call->earlier, &call->put.claim, err);
    if (code == 0 && p->claim.quotas != NULL)
        http_on_end(call->req, end_claim, &call->put.claim);
    return code;
}

/* --- entity tags ------------------------------------------------------------------------------ */

/* A replica has what its leader has; a manifest has no bytes, and a backend a tag of its own. */
static bool wants_md5(const struct object_call *call, const struct object_put_spec *spec)
{
    const struct bucket_props *props = &call->bucket->props;
    if (spec->slices != NULL || call->put.passes || call->put.appends || call->put.in_parts)
        return false;
    if (call->put.kind == PUT_STAGE)
        return http_header(call->req, OBJECT_STAGE_MD5_HEADER) != NULL;
    return call->put.kind == PUT_CLIENT && props->etag == ETAG_MD5 && props->backend == NULL;
}

/* *wanted: whether it is to be computed.  As wants_md5(), but in every bucket. */
static int parse_sum(const struct object_call *call, struct s3_sum_text *out, bool *wanted,
                     struct error *err)
{
    const char *header = call->put.kind == PUT_STAGE    ? OBJECT_STAGE_SUM_HEADER
                         : call->put.kind == PUT_CLIENT ? OBJECT_SUM_HEADER
                                                        : NULL;
    const char *text = header != NULL ? http_header(call->req, header) : NULL;
    *wanted = text != NULL && !call->put.passes;
    if (text == NULL || s3_sum_text_parse(text, out))
        return 0;
    return error_set(err, E_INVALID, "%s: '%.64s' is no checksum of S3", header, text);
}

/* --- durability ------------------------------------------------------------------------------- */

static enum durability durability_of(const struct object_call *call)
{
    const bool is_wanted = call->put.kind == PUT_STAGE
                               ? http_header(call->req, OBJECT_STAGE_DURABLE_HEADER) != NULL
                               : call->put.kind == PUT_CLIENT && is_made_durable(call->req);
    return is_wanted ? DURABILITY_SYNC : bucket_durability(call->bucket);
}

/* --- uploads in parts ------------------------------------------------------------------------- */

static void unref_upload(void *arg)
{
    upload_unref(arg);
}

/* The file that has the bytes, where this target has put them together in place. */
static int take_file(struct object_call *call, struct object_put_spec *spec, struct error *err)
{
    const char *id = call->put.in_parts ? http_header(call->req, UPLOAD_ID_HEADER) : NULL;
    struct upload *u;
    if (id == NULL)
        return 0;
    if (call->path != &one_path)
        return error_set(err, E_STALE_MAP, "the bucket keeps its objects in another way by now");
    int code = upload_ready(call->target->uploads, id, spec->bucket_id, spec->name, &u, err);
    if (code != 0)
        return code;
    http_on_end(call->req, unref_upload, u);
    spec->file = &u->body;
    spec->size = u->body.size;
    return 0;
}

static void collect_tag(const struct object_call *call, const char *tag, struct meta *m)
{
    const struct own_meta row = {.name = ATTR_MD5, .sent = "the entity tag"};
    if (m->err.code == 0 && tag != NULL && call->bucket->props.backend == NULL)
        add_own(m, &row, tag);
}

static bool is_part_sizes(const struct object_call *call, const char *text)
{
    struct part_sizes sizes;
    (void)call;
    return part_sizes_parse(text, &sizes);
}

/* One of all bytes is computed, but for slices. */
static bool is_object_sum(const struct object_call *call, const char *text)
{
    struct s3_object_sum sum;
    return s3_object_sum_parse(text, &sum) && (sum.parts > 0 || call->path == &slices_path);
}

static bool is_part_sums(const struct object_call *call, const char *text)
{
    struct part_sums sums;
    (void)call;
    return part_sums_parse(text, &sums);
}

/* What the completion says of the parts; in the order in which they get room. */
static const struct of_parts {
    const char *header, *pair;
    bool (*is_right)(const struct object_call *call, const char *text);
    size_t leaves; /* bytes for what is known later: the checksum of all bytes */
} of_parts[] = {
    {UPLOAD_PARTS_HEADER, ATTR_PARTS, is_part_sizes, 0},
    {UPLOAD_SUM_HEADER, OBJECT_SUM, is_object_sum, 0},
    {UPLOAD_PART_SUMS_HEADER, ATTR_PART_SUMS, is_part_sums, sizeof OBJECT_SUM + S3_SUM_TEXT_MAX},
};

/* What has no room is left out: the object is there without it. */
static void collect_of_parts(const struct object_call *call, const struct of_parts *row,
                             struct meta *m)
{
    const char *text = http_header(call->req, row->header);
    const char *backend = call->bucket->props.backend;
    size_t before = m->pairs.len;
    if (text == NULL || !row->is_right(call, text) ||
        before + strlen(row->pair) + strlen(text) + 2 + row->leaves > ATTR_META_MAX)
        return;
    attr_meta_add(&m->pairs, row->pair, text);
    if (backend != NULL && backend_meta_check(backend, m->pairs.data, m->pairs.len, NULL) != 0)
        m->pairs.len = before;
}

static void collect_parts(const struct object_call *call, struct meta *m)
{
    for (size_t i = 0; m->err.code == 0 && i < sizeof of_parts / sizeof of_parts[0]; i++)
        collect_of_parts(call, &of_parts[i], m);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int put_open_with(struct object_call *call, const struct meta *meta, struct write_parts *out,
                         struct error *err)
{
    const struct http_request *req = call->req;
    struct checksum_value promised;
    const struct checksum_value *expect;
    struct s3_sum_text sum;
    bool wants_sum;
    if (http_header(req, "Content-Range") != NULL) /* kept, a part would pass for the whole */
        return error_set(err, E_INVALID, "PUT stores whole objects: no Content-Range");
    int code = parse_expected(req, &promised, &expect, err);
    if (code == 0)
        code = parse_sum(call, &sum, &wants_sum, err);
    if (code != 0)
        return code;
    int64_t length = http_content_length(req);
    struct object_put_spec spec = {
        .bucket_id = call->bucket->id,
        .name = call->name,
        .size = length >= 0 ? (uint64_t)length : OBJECT_SIZE_UNKNOWN,
        .durability = durability_of(call),
        .checksum = call->bucket->props.checksum,
        .expect = expect,
        .content_type = ais_speaks(req) ? NULL : http_header(req, "Content-Type"),
        .meta = meta->pairs.data,
        .meta_len = meta->pairs.len,
        .condition = {.check = object_call_has_conditions(call) ? check_conditions : NULL,
                      .ctx = call},
        .earlier = &call->earlier,
        .frees = bucket_makes_room(call->bucket),
    };
    struct ec_manifest manifest;
    spec.slices = call->put.kind != PUT_CLIENT ? http_header(req, EC_MANIFEST_HEADER) : NULL;
    if (spec.slices != NULL && ec_manifest_parse(spec.slices, &manifest, err) != 0)
        return error_recode(err, E_INVALID, EC_MANIFEST_HEADER);
    if (call->put.kind == PUT_JOB && (code = put_copy_spec(call, &spec, err)) != 0)
        return code;
    if (wants_md5(call, &spec))
        spec.md5 = call->target->hashers;
    if (wants_sum && spec.slices == NULL)
        spec.sum = &sum;
    if ((code = take_file(call, &spec, err)) != 0)
        return code;
    if ((code = claim_quota(call, spec.size, err)) != 0)
        return code;
    call->condition = spec.condition;
    return call->path->open(call, &spec, out, err);
}

/* What the backend could not keep would be gone with the object's eviction.  What is moved or
 * staged has been looked at, and has the target's own names.  What other targets send may be an
 * object with more pairs, which an earlier build took. */
static int check_meta(const struct object_call *call, const struct meta *meta, struct error *err)
{
    if (meta->err.code != 0)
        return error_set(err, meta->err.code, "%s", meta->err.message);
    if (call->put.kind == PUT_CLIENT && meta->count > OBJECT_META_PAIRS_MAX)
        return error_set(
            err, E_INVALID,
            "%zu headers of user metadata (Dfc-Meta-*), at most %d are taken: put more "
            "than one value into a header",
            meta->count, OBJECT_META_PAIRS_MAX);
    if (object_call_is_copy(call) || call->bucket->props.backend == NULL || meta->pairs.len == 0)
        return 0;
    return backend_meta_check(call->bucket->props.backend, meta->pairs.data, meta->pairs.len, err);
}

/* Of a ring's objects there is one, and its keeper alone writes it. */
static int refuse_ring(const struct object_call *call, struct error *err)
{
    const char *copy = http_header(call->req, OBJECT_COPY_HEADER);
    if (http_listener(call->req) == NET_DATA && copy != NULL && strcmp(copy, OBJECT_COPY_RING) == 0)
        return 0;
    return bucket_refuse_ring(call->bucket, "PUT", err);
}

/* In any case the caller's to clear. */
static int take_meta(struct object_call *call, struct meta *meta, struct error *err)
{
    bool by_client = call->put.kind == PUT_CLIENT;
    *meta = (struct meta){.pairs = BUF_INIT};
    int code = by_client ? refuse_ring(call, err) : 0;
    if (code == 0 && by_client)
        code = bucket_refuse_write(call->bucket, "PUT", err);
    if (code != 0)
        return code;
    if (by_client && !call->put.appends &&
        (http_query(call->req, "overwrite") != NULL || http_query(call->req, "create") != NULL))
        return error_set(err, E_INVALID,
                         "'overwrite' and 'create' are for 'member' and 'members': omit them");
    http_each_header(call->req, collect_meta, meta);
    if (call->put.appends && meta->count > 0)
        return error_set(err, E_INVALID,
                         "Dfc-Meta-*: a member has no metadata; that of the archive stays");
    if (by_client) {
        refuse_own(meta);
        collect_encoding(call->req, meta);
        collect_tags(call->req, meta);
        collect_kept(call->req, meta);
        if (call->put.in_parts) {
            collect_tag(call, http_header(call->req, UPLOAD_TAG_HEADER), meta);
            collect_parts(call, meta);
        }
    }
    return check_meta(call, meta, err);
}

/* What an object's attribute cannot have would be refused when all parts are there. */
static int check_texts(const struct object_call *call, const struct meta *meta, struct error *err)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    const struct attr texts = {.name = call->name,
                               .content_type = http_header(call->req, "Content-Type"),
                               .meta = meta->pairs.data,
                               .meta_len = meta->pairs.len};
    return attr_encode(&texts, raw, &len, err);
}

/* The longest tag that an upload may get has room, too. */
int put_check_headers(struct object_call *call, struct error *err)
{
    struct meta meta;
    struct s3_sum_text sum;
    bool wanted;
    int code = take_meta(call, &meta, err);
    if (code == 0) {
        collect_tag(call, "0123456789abcdef0123456789abcdef-10000", &meta);
        code = check_meta(call, &meta, err);
    }
    if (code == 0)
        code = check_texts(call, &meta, err);
    if (code == 0)
        code = parse_sum(call, &sum, &wanted, err);
    buf_done(&meta.pairs);
    return code;
}

int put_open(struct object_call *call, struct write_parts *out, struct error *err)
{
    struct meta meta;
    int code = take_meta(call, &meta, err);
    if (code == 0)
        code = put_open_with(call, &meta, out, err);
    buf_done(&meta.pairs);
    return code;
}
