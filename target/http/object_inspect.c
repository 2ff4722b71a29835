#include "target/http/object_inspect.h"

#include <string.h>
#include <unistd.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "ec/code.h"
#include "io/file.h"
#include "target/format/ec_manifest.h"
#include "target/store/object.h"
#include "target/node/target.h"

enum { PIECE = 256 << 10 };

/* Are the bytes those that the attribute's checksum is of? */
static int check_bytes(const struct object *o, bool *intact, struct error *err)
{
    struct checksum_value sum;
    _cleanup_free_ char *piece = xmalloc(PIECE);
    struct checksum *c = checksum_new(o->attr.checksum.type);
    int code = 0;
    for (uint64_t at = 0; at < o->attr.size && code == 0; at += PIECE) {
        size_t len = o->attr.size - at < PIECE ? (size_t)(o->attr.size - at) : PIECE;
        code = file_pread_full(o->fd, piece, len, at, err);
        if (code == 0)
            checksum_update(c, piece, len);
    }
    checksum_final(c, &sum);
    checksum_free(c);
    *intact = code == 0 && checksum_equal(&sum, &o->attr.checksum);
    return code;
}

/* Of a manifest what it stands for. */
static json_t *ec_shown(const struct object *o)
{
    struct ec_manifest m;
    char tag[24];
    if (o->attr.slices == NULL || ec_manifest_parse(o->attr.slices, &m, NULL) != 0)
        return NULL;
    snprintf(tag, sizeof tag, "%016llx", (unsigned long long)m.tag);
    return json_pack("{s:I, s:I, s:s}", "data", (json_int_t)m.layout.k, "parity",
                     (json_int_t)m.layout.m, "tag", tag);
}

static json_t *shown(const struct object *o)
{
    char version[VERSION_TEXT_MAX], hex[2 * CHECKSUM_MAX + 1];
    struct attr as_seen = o->attr;
    const struct attr *a = ec_manifest_show(&as_seen, NULL) == 0 ? &as_seen : &o->attr;
    json_t *doc =
        json_pack("{s:b, s:s, s:b, s:I, s:I}", "found", 1, "version",
                  version_format(&a->version, version), "tombstone", (int)attr_is_tombstone(a),
                  "size", (json_int_t)a->size, "modified_ms", (json_int_t)a->modified_ms);
    if (a->checksum.type != CHECKSUM_NONE) {
        checksum_hex(&a->checksum, hex);
        json_object_set_new(
            doc, "checksum",
            json_pack("{s:s, s:s}", "type", checksum_name(a->checksum.type), "value", hex));
    }
    json_t *ec = ec_shown(o);
    if (ec != NULL)
        json_object_set_new(doc, "ec", ec);
    return doc;
}

static int show(struct http_request *req, uint64_t bucket_id, struct error *err)
{
    struct target *t = http_user(req);
    struct object o;
    _cleanup_json_ json_t *doc = NULL;
    bool intact;
    int code = object_open_held(t->store, bucket_id, http_path_param(req, "object"), &o, err);
    if (code != 0 && code != E_OBJECT_NOT_FOUND)
        return code;
    doc = code == 0 ? shown(&o) : json_pack("{s:b}", "found", 0);
    bool verify = code == 0 && http_query(req, "verify") != NULL && !attr_is_tombstone(&o.attr) &&
                  o.attr.checksum.type != CHECKSUM_NONE;
    int read = verify ? check_bytes(&o, &intact, err) : 0;
    if (code == 0)
        close(o.fd);
    if (read != 0)
        return read;
    if (verify)
        json_object_set_new(doc, "intact", json_boolean(intact));
    http_reply_json(req, 200, doc);
    return 0;
}

/* --- slices ----------------------------------------------------------------------------------- */

/* Is it here?  Then it is described. */
static json_t *slice_shown(struct target *t, uint64_t bucket_id, const char *name, unsigned index,
                           bool verify)
{
    struct object o;
    struct error err = ERROR_INIT;
    bool intact = true;
    int code = object_open(t->store, bucket_id, name, &o, &err);
    if (code == E_OBJECT_NOT_FOUND)
        return NULL;
    json_t *doc = json_pack("{s:I}", "slice", (json_int_t)index);
    if (code == 0) {
        json_object_set_new(doc, "size", json_integer((json_int_t)o.attr.size));
        code = verify ? check_bytes(&o, &intact, &err) : 0;
        close(o.fd);
    }
    if (code != 0)
        json_object_set_new(
            doc, "error",
            json_pack("{s:s, s:s}", "code", error_name(err.code), "message", err.message));
    else if (verify)
        json_object_set_new(doc, "intact", json_boolean(intact));
    return doc;
}

static int show_slices(struct http_request *req, uint64_t bucket_id, struct error *err)
{
    const char *text = http_query(req, "tag"), *count_text = http_query(req, "slices");
    bool verify = http_query(req, "verify") != NULL;
    uint64_t tag, count = 0;
    int code = ec_tag_parse(text, strlen(text), &tag, err);
    if (code == 0 && count_text != NULL)
        code = parse_u64(count_text, &count, err);
    if (code != 0)
        return code;
    json_t *list = json_array();
    for (unsigned i = 0; i < count && i < EC_SLICES_MAX; i++) {
        char name[EC_SLICE_NAME_MAX];
        json_t *slice = slice_shown(http_user(req), ec_slices_bucket(bucket_id),
                                    ec_slice_name(tag, i, name), i, verify);
        if (slice != NULL)
            json_array_append_new(list, slice);
    }
    _cleanup_json_ json_t *doc = json_pack("{s:o}", "slices", list);
    http_reply_json(req, 200, doc);
    return 0;
}

static void show_run(void *arg)
{
    struct http_request *req = arg;
    struct error err = ERROR_INIT;
    uint64_t bucket_id;
    int code = parse_u64(http_path_param(req, "bucket_id"), &bucket_id, &err);
    if (code == 0 && http_query(req, "tag") != NULL)
        code = show_slices(req, bucket_id, &err);
    else if (code == 0)
        code = show(req, bucket_id, &err);
    if (code != 0)
        http_reply_error(req, &err);
}

static void show_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    struct error err = ERROR_INIT;
    if (pool_submit(t->movers, show_run, req, &err) != 0) /* reading all of it takes its time */
        http_reply_error(req, &err);
}

const struct http_route object_inspect_routes[] = {
    {.name = "object_inspect",
     .method = HTTP_GET,
     .pattern = "/v1/copies/{bucket_id}/{object...}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = show_begin,
     .summary = "What of this name is on this target's disk.",
     .query =
         HTTP_PARAMETERS({"verify", "true: its bytes are read, and compared with the checksum"},
                         {"tag", "in place of the name: the slices of this tag"},
                         {"slices", "of how many of them it is said which are here"}),
     .body = "",
     .reply = "`{\"found\", \"version\", \"tombstone\", \"size\", \"modified_ms\", \"checksum\": "
              "{\"type\", \"value\"}, \"intact\", \"ec\": {\"data\", \"parity\", \"tag\"} of an "
              "object in slices}`; of slices `{\"slices\": [{\"slice\", \"size\", \"intact\", "
              "\"error\"}]}`",
     .errors = "invalid_argument object_reserved corrupt mountpath_disabled io_error"},
    {.name = NULL},
};
