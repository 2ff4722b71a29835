#include "target/archive/member_read.h"

#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "io/reader.h"
#include "net/http/pipe.h"
#include "target/archive/archives.h"
#include "target/archive/member_list.h"
#include "target/archive/member_match.h"
#include "target/archive/member_table.h"
#include "target/archive/member_tar.h"
#include "target/archive/member_unpack.h"
#include "target/archive/unpackers.h"
#include "target/node/call.h"
#include "target/node/read_count.h"
#include "target/node/read_range.h"
#include "target/node/reply.h"
#include "target/node/target.h"
#include "target/slices/read.h"

enum { TRIES_MAX = 8 }; /* of an archive that is overwritten whenever its index is ready */

/* --- what is asked for ------------------------------------------------------------------------ */

static bool wants_tar(const struct object_call *call)
{
    const char *members = http_query(call->req, "members");
    return members != NULL && strcmp(members, "tar") == 0;
}

static int check_query(const struct object_call *call, struct error *err)
{
    const struct http_request *req = call->req;
    const char *member = http_query(req, "member"), *members = http_query(req, "members");
    bool ranged = http_query(req, "offset") != NULL || http_query(req, "length") != NULL;
    bool paged = http_query(req, "after") != NULL || http_query(req, "limit") != NULL;
    if (members != NULL && strcmp(members, "list") != 0 && strcmp(members, "tar") != 0)
        return error_set(err, E_INVALID, "parameter 'members' is '%s': it must be 'list' or 'tar'",
                         members);
    if (!wants_tar(call) && (http_query(req, "match") != NULL || http_query(req, "mode") != NULL))
        return error_set(err, E_INVALID, "parameters 'match' and 'mode' need members=tar");
    if (wants_tar(call) && (paged || http_method(req) != HTTP_GET))
        return error_set(err, E_INVALID, "members=tar is of GET, without after and limit");
    if (member != NULL && *member == '\0')
        return error_set(err, E_INVALID, "parameter 'member' is empty: it must name a member");
    if (member != NULL && (members != NULL || paged))
        return error_set(err, E_INVALID,
                         "parameter 'member' cannot be combined with members, after or limit");
    if (http_query(req, "digest") != NULL)
        return error_set(err, E_INVALID, "parameter 'digest' is of whole objects, not of members");
    if (ranged)
        return error_set(err, E_INVALID,
                         "parameters 'offset' and 'length' are of whole objects: send the header "
                         "Range for a part of a member");
    return 0;
}

static int find_member(const struct object_call *call, const struct member_table *t,
                       struct member_place *out, struct error *err)
{
    const char *name = http_query(call->req, "member");
    if (!member_table_find(t, name, strlen(name), out))
        return error_set(err, E_MEMBER_NOT_FOUND, "archive '%s/%s' has no member '%s'",
                         call->bucket->name, call->name, name);
    if (out->kind == MEMBER_FILE)
        return 0;
    return error_set(err, E_MEMBER_UNREADABLE,
                     "member '%s' of '%s/%s' is a %s: only plain files are served; read the "
                     "whole archive",
                     name, call->bucket->name, call->name, member_kind_name(out->kind));
}

/* --- replies ---------------------------------------------------------------------------------- */

/* What an error has, too: whoever reads through another target knows by it that the archive is
 * there (copies/read_through.h). */
static void put_archive(const struct object_call *call, const struct attr *a)
{
    char version[VERSION_TEXT_MAX];
    http_reply_header(call->req, "Dfc-Version", version_format(&a->version, version));
    http_reply_constant(call->req, ARCHIVE_HEADER, call->read.packed ? "packed" : "tar");
}

static void put_headers(const struct object_call *call, const struct attr *a)
{
    char date[32], etag[OBJECT_ETAG_MAX];
    object_call_etag(call, a, etag);
    http_reply_header(call->req, "ETag", etag);
    http_reply_header(call->req, "Last-Modified", clock_format_http(a->modified_ms / 1000, date));
    put_archive(call, a);
}

static void fail(struct object_call *call, const struct object *o, struct error *err)
{
    close(o->fd);
    put_archive(call, &o->attr);
    object_call_fail(call, "member of", err);
}

static void reply_list(struct object_call *call, const struct object *o,
                       const struct member_table *t)
{
    struct error err = ERROR_INIT;
    size_t limit;
    if (member_list_limit(http_query(call->req, "limit"), &limit, &err) != 0) {
        fail(call, o, &err);
        return;
    }
    _cleanup_buf_ struct buf page = BUF_INIT;
    member_list_put(&page, t, &o->attr.version, http_query(call->req, "after"), limit);
    close(o->fd);
    put_headers(call, &o->attr);
    http_reply_data(call->req, 200, "application/json", page.data, page.len);
}

static void put_content_range(struct http_request *req, const struct read_range *r, uint64_t size)
{
    char text[80];
    if (r != NULL)
        snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)r->offset,
                 (unsigned long long)(r->offset + r->length - 1), (unsigned long long)size);
    else
        snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
    http_reply_header(req, "Content-Range", text);
}

static int pick_range(const struct object_call *call, const struct attr *a, uint64_t size,
                      struct read_range *out, struct error *err)
{
    char etag[OBJECT_ETAG_MAX];
    bool get = http_method(call->req) == HTTP_GET;
    object_call_etag(call, a, etag);
    const struct read_question q = {.range = get ? http_header(call->req, "Range") : NULL,
                                    .if_range = http_header(call->req, "If-Range"),
                                    .size = size,
                                    .etag = etag};
    return read_range_pick(&q, out, err);
}

static const char content_type[] = "application/octet-stream";

/* `within`: the range of the archive. */
static void put_member_headers(const struct object_call *call, const struct attr *a,
                               const struct read_range *within)
{
    const struct read_range range = {.offset = within->offset - call->read.member_offset,
                                     .length = within->length};
    put_headers(call, a);
    http_reply_constant(call->req, "Accept-Ranges", "bytes");
    http_reply_constant(call->req, "Content-Type", content_type);
    if (within->status == 206)
        put_content_range(call->req, &range, call->read.member_size);
}

/* No slice need be read for no bytes. */
static void reply_slices(struct object_call *call, const struct object *o,
                         const struct read_range *within)
{
    close(o->fd);
    if (within->length > 0) {
        ec_read_reply(call, o, within, put_member_headers);
        return;
    }
    put_headers(call, &o->attr);
    http_reply_constant(call->req, "Accept-Ranges", "bytes");
    http_reply_data(call->req, within->status, content_type, "", 0);
}

/* What needs no bytes needs no thread. */
static void reply_packed(struct object_call *call, const struct object *o, struct reader *reader,
                         const struct member_place *m, const struct read_range *range)
{
    if (range->length > 0 && http_method(call->req) == HTTP_GET) {
        unpackers_reply(call->target->unpackers, call, o, reader, m, range, put_member_headers);
        return;
    }
    _cleanup_(bpipe_unrefp)
    struct bpipe *nothing = bpipe_new(1);
    bpipe_finish(nothing, NULL);
    close(o->fd);
    put_member_headers(call, &o->attr, range);
    http_reply_pipe(call->req, range->status, (int64_t)range->length, nothing);
}

static void reply_member(struct object_call *call, const struct object *o,
                         const struct member_place *m, struct reader **reader)
{
    struct error err = ERROR_INIT;
    struct read_range range;
    if (call->read.packed && member_unpack_check_size(o->attr.size, m->size, &err) != 0) {
        fail(call, o, &err);
        return;
    }
    if (pick_range(call, &o->attr, m->size, &range, &err) != 0) {
        put_content_range(call->req, NULL, m->size);
        fail(call, o, &err);
        return;
    }
    call->read.member_offset = call->read.packed ? 0 : m->offset;
    call->read.member_size = m->size;
    range.offset += call->read.member_offset;
    object_read_count(call, range.length, *reader);
    if (call->read.packed) {
        reply_packed(call, o, *reader, m, &range);
        return;
    }
    if (o->attr.slices != NULL) {
        reply_slices(call, o, &range);
        return;
    }
    put_member_headers(call, &o->attr, &range);
    http_reply_file(call->req, range.status, o->fd, range.offset, range.length, steal(*reader));
}

static void reply_tar(struct object_call *call, const struct object *o, struct shard *shard,
                      struct reader *reader)
{
    struct error err = ERROR_INIT;
    struct member_match *match;
    const char *text = http_query(call->req, "match"), *mode = http_query(call->req, "mode");
    if (member_match_new(mode != NULL ? mode : "", text != NULL ? text : "", &match, &err) != 0)
        fail(call, o, &err);
    else
        member_tar_reply(call->target->unpackers, call, o, reader, shard, match, put_headers);
}

static void reply(struct object_call *call, const struct object *o, struct shard *shard,
                  struct reader **reader)
{
    const struct member_table *t = shard_members(shard);
    struct error err = ERROR_INIT;
    struct member_place place;
    call->read.packed = member_table_packed(t);
    if (wants_tar(call))
        reply_tar(call, o, shard, *reader);
    else if (http_query(call->req, "members") != NULL)
        reply_list(call, o, t);
    else if (find_member(call, t, &place, &err) != 0)
        fail(call, o, &err);
    else
        reply_member(call, o, &place, reader);
}

/* --- the index -------------------------------------------------------------------------------- */

static void forget_shard(void *arg)
{
    struct object_call *call = arg;
    shard_unref(call->read.shard);
}

static void keep_shard(struct object_call *call, struct shard *s)
{
    if (call->read.shard == NULL)
        http_on_end(call->req, forget_shard, call);
    else
        shard_unref(call->read.shard);
    call->read.shard = shard_ref(s);
}

/* What was opened to make the index may be overwritten by now: the call begins anew, and has the
 * index with it, whatever else wants the memory. */
static void made(void *arg, struct shard *s, const struct error *why)
{
    struct object_call *call = arg;
    struct error err = why != NULL ? *why : ERROR_INIT;
    log_set_request(http_request_id(call->req));
    if (err.code == 0 && ++call->read.shard_tries > TRIES_MAX)
        error_set(&err, E_NOT_READY, "object '%s' is overwritten again and again; try again",
                  call->name);
    if (err.code != 0) {
        object_call_fail(call, "member of", &err);
    } else {
        keep_shard(call, s);
        call->serve(call);
    }
    log_set_request(NULL);
}

/* Or NULL.  The call is at its reply, and lets it go: a client may take hours for the bytes. */
static struct shard *take_kept(struct object_call *call, const struct object *o)
{
    const struct shard_key key = {.bucket_id = call->bucket->id,
                                  .name = o->attr.name,
                                  .version = o->attr.version,
                                  .size = o->attr.size};
    struct shard *s = call->read.shard;
    return s != NULL && shard_is(s, &key) ? steal(call->read.shard) : NULL;
}

void member_read_reply(struct object_call *call, const struct object *o, struct reader **reader)
{
    struct error err = ERROR_INIT;
    int code = check_query(call, &err);
    if (code == 0)
        code = object_call_check_conditions(call, http_method(call->req), &o->attr, &err);
    if (code == E_NOT_MODIFIED)
        put_headers(call, &o->attr);
    if (code != 0) {
        close(o->fd);
        object_call_fail(call, "member of", &err);
        return;
    }
    struct shard *shard = take_kept(call, o);
    if (shard == NULL &&
        !archives_find(call->target->archives, call->bucket->id, o, *reader, made, call, &shard))
        return;
    shard_unref(steal(call->read.shard)); /* of another version */
    reply(call, o, shard, reader);
    shard_unref(shard);
}
