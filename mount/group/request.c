#include "mount/group/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/parse.h"

static const char *const hows[] = {[GROUP_FETCH] = "fetch",
                                   [GROUP_CACHED] = "cached",
                                   [GROUP_CHECK] = "check",
                                   [GROUP_WARM] = "warm"};

struct piece_id group_request_piece(const struct group_request *r)
{
    _cleanup_free_ char *name =
        xprintf("%s\n%s\n%s", r->scope, r->object, entity_version(r->etag, r->checksum));
    const struct cache_entity entity = {.name = name, .set = "", .size = r->size};
    return piece_of(&entity, r->offset / PIECE_BYTES).id;
}

/* ---- the call ---- */

static void put(struct buf *b, char before, const char *name, const char *value)
{
    buf_printf(b, "%c%s=", before, name);
    buf_put_url_escaped(b, value, strlen(value), "");
}

char *group_request_url(const char *member_url, const struct group_request *r)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s%s", member_url, GROUP_PIECE_PATH);
    put(&b, '?', "bucket", r->bucket);
    put(&b, '&', "object", r->object);
    put(&b, '&', "etag", r->etag);
    put(&b, '&', "checksum", r->checksum);
    put(&b, '&', "scope", r->scope);
    buf_printf(&b, "&size=%" PRIu64 "&offset=%" PRIu64 "&length=%" PRIu64 "&how=%s", r->size,
               r->offset, r->length, hows[r->how]);
    return buf_steal(&b);
}

struct source {
    const char *(*query)(void *context, const char *name);
    void *context;
};

static int take_text(const struct source *s, const char *name, const char **out, struct error *err)
{
    *out = s->query(s->context, name);
    return *out != NULL ? 0 : error_set(err, E_INVALID, "parameter '%s' is missing", name);
}

static int take_number(const struct source *s, const char *name, uint64_t *out, struct error *err)
{
    const char *text;
    int rc = take_text(s, name, &text, err);
    if (rc == 0 && parse_u64(text, out, err) != 0)
        rc = error_wrap(err, "parameter '%s'", name);
    return rc;
}

static int take_how(const struct source *s, enum group_how *out, struct error *err)
{
    const char *text;
    int rc = take_text(s, "how", &text, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
        if (strcmp(text, hows[i]) == 0) {
            *out = (enum group_how)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "parameter 'how': '%.16s' is not fetch, cached, check or warm",
                     text);
}

int group_request_parse(const char *(*query)(void *context, const char *name), void *context,
                        struct group_request *r, struct error *err)
{
    const struct source s = {query, context};
    int rc;
    if ((rc = take_text(&s, "bucket", &r->bucket, err)) != 0 ||
        (rc = take_text(&s, "object", &r->object, err)) != 0 ||
        (rc = take_text(&s, "etag", &r->etag, err)) != 0 ||
        (rc = take_text(&s, "checksum", &r->checksum, err)) != 0 ||
        (rc = take_text(&s, "scope", &r->scope, err)) != 0 ||
        (rc = take_number(&s, "size", &r->size, err)) != 0 ||
        (rc = take_number(&s, "offset", &r->offset, err)) != 0 ||
        (rc = take_number(&s, "length", &r->length, err)) != 0 ||
        (rc = take_how(&s, &r->how, err)) != 0)
        return rc;
    if (entity_version(r->etag, r->checksum) == NULL)
        return error_set(err, E_INVALID,
                         "parameter 'etag': it is not a strong entity tag, and 'checksum' is not "
                         "of sums");
    if (r->length == 0 || r->offset >= r->size || r->length > r->size - r->offset ||
        r->length > PIECE_BYTES - r->offset % PIECE_BYTES)
        return error_set(err, E_INVALID,
                         "parameter 'length': the range is empty, outside of the object, or not "
                         "within one piece of %u bytes",
                         PIECE_BYTES);
    return 0;
}

/* ---- the proof ---- */

void group_sum(uint64_t offset, const void *data, uint64_t length, char out[static GROUP_SUM_CHARS])
{
    uint64_t sums[PIECE_PARTS + 1];
    size_t count = 0;
    for (uint64_t at = 0; at < length;) {
        uint64_t n = PIECE_PART - (offset + at) % PIECE_PART;
        n = n < length - at ? n : length - at;
        sums[count++] = piece_sum((const char *)data + at, (size_t)n);
        at += n;
    }
    snprintf(out, GROUP_SUM_CHARS, "\"%016" PRIx64 "\"", piece_sum(sums, count * sizeof *sums));
}
