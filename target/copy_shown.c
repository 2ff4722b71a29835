#include "target/copy_shown.h"

#include <string.h>
#include <unistd.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "io/file.h"
#include "target/object.h"
#include "target/target.h"

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

static json_t *shown(const struct object *o)
{
    char version[VERSION_TEXT_MAX], hex[2 * CHECKSUM_MAX + 1];
    const struct attr *a = &o->attr;
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

static void show_run(void *arg)
{
    struct http_request *req = arg;
    struct error err = ERROR_INIT;
    uint64_t bucket_id;
    if (parse_u64(http_path_param(req, "bucket_id"), &bucket_id, &err) != 0 ||
        show(req, bucket_id, &err) != 0)
        http_reply_error(req, &err);
}

static void show_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    struct error err = ERROR_INIT;
    if (pool_submit(t->movers, show_run, req, &err) != 0) /* reading all of it takes its time */
        http_reply_error(req, &err);
}

const struct http_route copy_shown_routes[] = {
    {.name = "copy_shown",
     .method = HTTP_GET,
     .pattern = "/v1/copies/{bucket_id}/{object...}",
     .nets = NET_DATA,
     .begin = show_begin,
     .summary = "What of this name is on this target's disk.",
     .query = "verify=true: its bytes are read, and compared with the checksum",
     .body = "",
     .reply = "`{\"found\", \"version\", \"tombstone\", \"size\", \"modified_ms\", \"checksum\": "
              "{\"type\", \"value\"}, \"intact\"}`",
     .errors = "invalid_argument object_reserved corrupt mountpath_disabled io_error"},
    {.name = NULL},
};
