#include "vdisc/reference.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"

#define ROOM "/v1/objects/"
#define SEGMENT_KEEP "!$&'()*+,;=@" /* pchar (RFC 3986 3.3) without ':', which ends a scheme */

void reference_done(struct reference *o)
{
    free(o->bucket);
    free(o->key);
    *o = (struct reference){0};
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A segment "." or ".." would be removed by whoever resolves the reference. */
static void put_segment(struct buf *out, const char *text, size_t len)
{
    bool dots = len <= 2 && len > 0 && memcmp(text, "..", len) == 0;
    if (!dots)
        buf_put_url_escaped(out, text, len, SEGMENT_KEEP);
    for (size_t i = 0; dots && i < len; i++)
        buf_puts(out, "%2E");
}

static void put_segments(struct buf *out, const char *key)
{
    for (const char *at = key;;) {
        size_t len = strcspn(at, "/");
        put_segment(out, at, len);
        if (at[len] == '\0')
            return;
        buf_putc(out, '/');
        at += len + 1;
    }
}

/* Bytes of the folders that both keys are in, with the last slash. */
static size_t common_folders(const char *a, const char *b)
{
    size_t common = 0;
    for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++) {
        if (a[i] == '/')
            common = i + 1;
    }
    return common;
}

void reference_put(struct buf *out, const char *bucket, const char *key, const struct reference *to)
{
    size_t common = common_folders(key, to->key);
    const char *rest = to->key + common;
    bool here = strcmp(bucket, to->bucket) == 0;
    /* An empty segment at the begin would make another reference of it. */
    if (!here || rest[0] == '/' || rest[0] == '\0') {
        buf_puts(out, ROOM);
        buf_puts(out, to->bucket);
        buf_putc(out, '/');
        put_segments(out, to->key);
        return;
    }
    for (const char *at = key + common; (at = strchr(at, '/')) != NULL; at++)
        buf_puts(out, "../");
    put_segments(out, rest);
}

/* --- reading ---------------------------------------------------------------------------------- */

static size_t scheme_length(const char *text)
{
    size_t n = strcspn(text, ":/?#");
    return text[n] == ':' && n > 0 ? n : 0;
}

/* Removes "." and ".." segments (RFC 3986 5.2.4) of a path that begins with a slash. */
static char *remove_dots(const char *path)
{
    char *out = xmalloc(strlen(path) + 2);
    size_t used = 0;
    for (const char *at = path; *at == '/';) {
        size_t len = strcspn(at + 1, "/");
        bool last = at[1 + len] == '\0';
        if (len == 2 && memcmp(at + 1, "..", 2) == 0) {
            while (used > 0 && out[--used] != '/')
                ;
        } else if (!(len == 1 && at[1] == '.')) {
            memcpy(out + used, at, 1 + len);
            used += 1 + len;
            at += 1 + len;
            continue;
        }
        if (last)
            out[used++] = '/';
        at += 1 + len;
    }
    out[used] = '\0';
    return out;
}

static int decode(const char *text, size_t len, char **out, struct error *err)
{
    *out = xmalloc(len + 1);
    int64_t n = parse_url_unescape(text, len, *out, err);
    return n < 0 ? (int)n : 0;
}

/* "/v1/objects/BUCKET/KEY" */
static int split_path(const char *path, struct reference *out, struct error *err)
{
    *out = (struct reference){0};
    const char *bucket = path + strlen(ROOM);
    const char *slash = strncmp(path, ROOM, strlen(ROOM)) == 0 ? strchr(bucket, '/') : NULL;
    if (slash == NULL || slash == bucket || slash[1] == '\0')
        return error_set(err, E_IMAGE_DAMAGED,
                         "'%.200s' is not the path of an object: expected " ROOM "BUCKET/KEY",
                         path);
    int rc = decode(bucket, (size_t)(slash - bucket), &out->bucket, err);
    if (rc == 0)
        rc = decode(slash + 1, strlen(slash + 1), &out->key, err);
    if (rc != 0)
        reference_done(out);
    return rc;
}

int reference_resolve(const char *bucket, const char *key, const char *reference,
                      struct reference *out, struct error *err)
{
    struct buf full = BUF_INIT;
    if (scheme_length(reference) > 0 || strncmp(reference, "//", 2) == 0)
        return error_set(err, E_UNSUPPORTED,
                         "the image refers to '%.200s': only objects of its own cluster are read",
                         reference);
    if (strpbrk(reference, "?#") != NULL || reference[0] == '\0')
        return error_set(err, E_IMAGE_DAMAGED, "the image refers to '%.200s', which is no object",
                         reference);
    if (reference[0] != '/') {
        const char *slash = strrchr(key, '/');
        _cleanup_free_ char *folder = xstrndup(key, slash != NULL ? (size_t)(slash - key) : 0);
        buf_printf(&full, ROOM "%s/", bucket);
        put_segments(&full, folder);
        if (slash != NULL)
            buf_putc(&full, '/');
    }
    buf_puts(&full, reference);
    _cleanup_free_ char *path = remove_dots(full.data);
    buf_done(&full);
    return split_path(path, out, err);
}

static int parse_plain(const char *text, const char *rest, struct reference *out, struct error *err)
{
    size_t len = strcspn(rest, "/");
    if (len == 0 || rest[len] == '\0' || rest[len + 1] == '\0')
        return error_set(err, E_INVALID, "'%.200s' names no object: expected SCHEME://BUCKET/KEY",
                         text);
    *out = (struct reference){.bucket = xstrndup(rest, len), .key = xstrdup(rest + len + 1)};
    return 0;
}

static int parse_http(const char *text, const char *rest, struct reference *out, char **host,
                      struct error *err)
{
    size_t len = strcspn(rest, "/?#");
    if (len == 0 || rest[len] != '/' || strpbrk(rest, "?#") != NULL ||
        memchr(rest, '@', len) != NULL)
        return error_set(err, E_INVALID,
                         "'%.200s' names no object: expected http://HOST:PORT" ROOM
                         "BUCKET/KEY, without a query",
                         text);
    _cleanup_free_ char *path = remove_dots(rest + len);
    int rc = split_path(path, out, err);
    if (rc != 0)
        return error_recode(err, E_INVALID, "'%.200s'", text);
    *host = xstrndup(rest, len);
    return 0;
}

int reference_parse(const char *text, struct reference *out, char **host, struct error *err)
{
    static const struct {
        const char *scheme;
        bool http;
    } rows[] = {{"dfc://", false}, {"s3://", false}, {"http://", true}, {"https://", true}};
    *host = NULL;
    *out = (struct reference){0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(rows[i].scheme);
        if (strncasecmp(text, rows[i].scheme, len) != 0)
            continue;
        return rows[i].http ? parse_http(text, text + len, out, host, err)
                            : parse_plain(text, text + len, out, err);
    }
    return error_set(err, E_INVALID,
                     "'%.200s' is no address of an object: expected dfc://BUCKET/KEY, "
                     "s3://BUCKET/KEY or http://HOST:PORT" ROOM "BUCKET/KEY",
                     text);
}
