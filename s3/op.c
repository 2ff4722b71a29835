#include "s3/op.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/parse.h"
#include "common/utf8.h"

static const struct s3_op ops[S3_OPS] = {
#define S3_OP(name, method, level, query, header, right, answer) \
    [S3_OP_##name] = {#name, method, S3_LEVEL_##level, query, header, RIGHT_##right, S3_##answer},
#include "s3/ops.def"
#undef S3_OP
};

const struct s3_op *s3_op(enum s3_op_id id)
{
    assert(id < S3_OPS);
    return &ops[id];
}

/* --- where: bucket and key -------------------------------------------------------------------- */

/* Bytes of `host` before ".DOMAIN", if it ends so; 0: it does not.  A port does not count. */
static size_t bucket_in_host(const char *host, const char *domain)
{
    size_t host_len = strcspn(host, ":"), domain_len = strlen(domain);
    if (*host == '[' || host_len < domain_len + 2)
        return 0;
    size_t before = host_len - domain_len - 1;
    bool matches = host[before] == '.' && strncasecmp(host + before + 1, domain, domain_len) == 0;
    return matches ? before : 0;
}

/* "": the host names no bucket. */
static const char *host_bucket(const struct s3_request *r, const struct s3_place *place,
                               struct arena *arena)
{
    const char *host = s3_header(r, "host");
    for (size_t i = 0; host != NULL && i < place->domain_count; i++) {
        size_t len = bucket_in_host(host, place->domains[i]);
        if (len == 0)
            continue;
        char *bucket = arena_strndup(arena, host, len);
        for (char *at = bucket; *at != '\0'; at++)
            *at = (char)tolower((unsigned char)*at);
        return bucket;
    }
    return "";
}

static const char *decode(const char *text, size_t len, struct arena *arena)
{
    char *out = arena_bytes(arena, len + 1);
    return parse_url_unescape(text, len, out, NULL) < 0 ? NULL : out;
}

static enum s3_error set_key(const char *text, struct arena *arena, struct s3_call *out,
                             struct s3_failure *why)
{
    out->key = decode(text, strlen(text), arena);
    if (out->key == NULL)
        return s3_fail(why, S3_INVALID_URI, NULL);
    if (strlen(out->key) > S3_KEY_MAX)
        return s3_fail(why, S3_KEY_TOO_LONG, NULL);
    if (!utf8_valid(out->key, strlen(out->key)))
        return s3_fail(why, S3_INVALID_URI, "The key is not UTF-8");
    return S3_OK;
}

/* `path` begins behind the slash that ends the host and the prefix. */
static enum s3_error set_bucket(const char *path, struct arena *arena, struct s3_call *out,
                                struct s3_failure *why)
{
    size_t len = strcspn(path, "/");
    out->bucket = decode(path, len, arena);
    if (out->bucket == NULL)
        return s3_fail(why, S3_INVALID_URI, NULL);
    if (len == 0 && *path != '\0')
        return s3_fail(why, S3_INVALID_BUCKET_NAME, NULL);
    return path[len] == '/' ? set_key(path + len + 1, arena, out, why) : S3_OK;
}

static enum s3_error find_names(const struct s3_request *r, const struct s3_place *place,
                                struct arena *arena, struct s3_call *out, struct s3_failure *why)
{
    size_t prefix = strlen(place->prefix);
    const char *path = r->path + prefix;
    if (strncmp(r->path, place->prefix, prefix) != 0 || (*path != '/' && *path != '\0'))
        return s3_fail(why, S3_INVALID_URI, NULL);
    path += *path == '/';
    out->bucket = host_bucket(r, place, arena);
    out->is_virtual_host = *out->bucket != '\0';
    enum s3_error e =
        out->is_virtual_host ? set_key(path, arena, out, why) : set_bucket(path, arena, out, why);
    if (e != S3_OK)
        return e;
    size_t len = strlen(out->bucket);
    if (len > S3_BUCKET_MAX || !utf8_valid(out->bucket, len))
        return s3_fail(why, S3_INVALID_BUCKET_NAME, NULL);
    return S3_OK;
}

/* --- what: the row ---------------------------------------------------------------------------- */

static enum s3_level level_of(const struct s3_call *c)
{
    if (*c->key != '\0')
        return S3_LEVEL_OBJECT;
    return *c->bucket != '\0' ? S3_LEVEL_BUCKET : S3_LEVEL_SERVICE;
}

/* "acl", or "list-type=2".  Of parameters with one name the first counts. */
static bool has_mark(const struct s3_query *q, const char *mark)
{
    size_t len = strcspn(mark, "=");
    for (size_t i = 0; i < q->count; i++) {
        const struct s3_field *f = &q->fields[i];
        if (strncmp(f->name, mark, len) == 0 && f->name[len] == '\0')
            return mark[len] == '\0' || strcmp(f->value, mark + len + 1) == 0;
    }
    return false;
}

static bool row_fits(const struct s3_op *op, const struct s3_request *r, const struct s3_call *c)
{
    return op->level == level_of(c) && strcmp(op->method, r->method) == 0 &&
           (*op->query == '\0' || has_mark(&c->query, op->query)) &&
           (*op->header == '\0' || s3_header(r, op->header) != NULL);
}

static bool is_subresource(const struct s3_op *op)
{
    return *op->query != '\0' && strchr(op->query, '=') == NULL;
}

/* A subresource of this level that is in the query, other than `found`'s own; NULL: none. */
static const char *other_subresource(const struct s3_op *found, const struct s3_call *c)
{
    for (size_t i = 0; i < S3_OPS; i++) {
        const struct s3_op *op = &ops[i];
        if (op->level == found->level && is_subresource(op) &&
            strcmp(op->query, found->query) != 0 && has_mark(&c->query, op->query))
            return op->query;
    }
    return NULL;
}

static enum s3_error find_row(const struct s3_request *r, struct s3_call *c, struct s3_failure *why)
{
    size_t i = 0;
    while (i < S3_OPS && !row_fits(&ops[i], r, c))
        i++;
    if (i == S3_OPS)
        return s3_fail(why, S3_METHOD_NOT_ALLOWED, NULL);
    const char *other = other_subresource(&ops[i], c);
    if (other != NULL && is_subresource(&ops[i]))
        return s3_fail(why, S3_INVALID_ARGUMENT, "The query names two subresources: %s and %s",
                       ops[i].query, other);
    if (other != NULL && strcmp(r->method, "OPTIONS") != 0)
        return s3_fail(why, S3_METHOD_NOT_ALLOWED, "The subresource %s does not take this method",
                       other);
    c->op = (enum s3_op_id)i;
    return S3_OK;
}

enum s3_error s3_op_find(const struct s3_request *r, const struct s3_place *place,
                         struct arena *arena, struct s3_call *out, struct s3_failure *why)
{
    *out = (struct s3_call){.bucket = "", .key = ""};
    enum s3_error e = find_names(r, place, arena, out, why);
    if (e == S3_OK)
        e = s3_query_parse(r->query, arena, &out->query, why);
    return e == S3_OK ? find_row(r, out, why) : e;
}

/* --- names of new buckets --------------------------------------------------------------------- */

static bool is_small_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_ipv4(const char *name)
{
    unsigned dots = 0;
    for (; *name != '\0'; name++) {
        if (*name == '.')
            dots++;
        else if (*name < '0' || *name > '9')
            return false;
    }
    return dots == 3;
}

static bool is_reserved(const char *name)
{
    static const char *const beginnings[] = {"xn--", "sthree-", "amzn-s3-demo-"};
    static const char *const ends[] = {"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i]);
        if (len > end && strcmp(name + len - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* The parts between dots are labels of DNS. */
static bool has_bad_label(const char *name)
{
    static const char *const bad[] = {"..", ".-", "-."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (strstr(name, bad[i]) != NULL)
            return true;
    }
    return false;
}

enum s3_error s3_bucket_name_check(const char *name, struct s3_failure *why)
{
    size_t len = strlen(name);
    if (len < 3 || len > 63)
        return s3_fail(why, S3_INVALID_BUCKET_NAME, "A bucket's name has 3 to 63 characters");
    for (size_t i = 0; i < len; i++) {
        if (!is_small_or_digit(name[i]) && name[i] != '.' && name[i] != '-')
            return s3_fail(why, S3_INVALID_BUCKET_NAME,
                           "A bucket's name has small letters, digits, '.' and '-'");
    }
    if (!is_small_or_digit(name[0]) || !is_small_or_digit(name[len - 1]))
        return s3_fail(why, S3_INVALID_BUCKET_NAME,
                       "A bucket's name begins and ends with a letter or digit");
    if (has_bad_label(name) || is_ipv4(name) || is_reserved(name))
        return s3_fail(why, S3_INVALID_BUCKET_NAME,
                       "A bucket's name has no '..', '.-' or '-.', is no IPv4 address, and is not "
                       "reserved");
    return S3_OK;
}
