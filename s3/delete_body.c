#include "s3/delete_body.h"

#include <string.h>

#include "common/parse.h"
#include "s3/document.h"
#include "s3/op.h"

struct reading {
    struct arena *arena;
    struct s3_delete_key *keys;
    struct s3_delete_key now; /* the <Object> that is read */
    size_t count;
    bool is_quiet;
};

/* Sets a field of the object; it may be there once. */
static enum s3_error set(struct reading *r, const char **field, const char *text,
                         struct s3_failure *why)
{
    if (*field != NULL)
        return s3_fail(why, S3_MALFORMED_XML, "An element is twice in one <Object>");
    *field = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error take_key(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (*text == '\0')
        return s3_fail(why, S3_MALFORMED_XML, "A <Key> is empty");
    if (strlen(text) > S3_KEY_MAX)
        return s3_fail(why, S3_KEY_TOO_LONG, NULL);
    return set(r, &r->now.key, text, why);
}

static enum s3_error take_version(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    return set(r, &r->now.version, text, why);
}

static enum s3_error take_etag(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return s3_fail(why, S3_MALFORMED_XML, "An <ETag> has a control character");
    }
    return set(r, &r->now.etag, text, why);
}

static enum s3_error take_quiet(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    return parse_bool(text, &r->is_quiet, NULL) == 0 ? S3_OK : s3_fail(why, S3_MALFORMED_XML, NULL);
}

static enum s3_error end_object(void *ctx, const char *name, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (strcmp(name, "Object") != 0)
        return S3_OK;
    if (r->now.key == NULL)
        return s3_fail(why, S3_MALFORMED_XML, "An <Object> has no <Key>");
    if (r->count == S3_DELETE_MAX)
        return s3_fail(why, S3_MALFORMED_XML, "A request deletes %d keys at most", S3_DELETE_MAX);
    r->keys[r->count++] = r->now;
    r->now = (struct s3_delete_key){.key = NULL};
    return S3_OK;
}

static const struct document_leaf leaves[] = {
    {"Delete", "Quiet", take_quiet},
    {"Object", "Key", take_key},
    {"Object", "VersionId", take_version},
    {"Object", "ETag", take_etag},
    {"Object", "LastModifiedTime", NULL},
    {"Object", "Size", NULL},
    {.name = NULL},
};

static const struct document document = {
    .root = "Delete", .depth = 3, .leaves = leaves, .leave = end_object};

enum s3_error s3_delete_parse(const char *body, size_t len, struct arena *arena,
                              struct s3_delete *out, struct s3_failure *why)
{
    struct reading r = {.arena = arena,
                        .keys = arena_alloc(arena, S3_DELETE_MAX * sizeof r.keys[0])};
    enum s3_error e = document_read(&document, body, len, &r, why);
    if (e == S3_OK && r.count == 0)
        e = s3_fail(why, S3_MALFORMED_XML, "The document names no key");
    *out = (struct s3_delete){.keys = r.keys, .count = r.count, .is_quiet = r.is_quiet};
    return e;
}
