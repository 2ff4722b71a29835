#include "cluster/members/location.h"

#include <string.h>

static bool segment_is_special(const char *at, size_t len)
{
    return len == 0 || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.');
}

/* Would a client change this path?  An empty segment at the very end is a trailing slash: plain. */
static bool name_is_plain(const char *name)
{
    for (const char *at = name;;) {
        size_t len = strcspn(at, "/");
        bool last = at[len] == '\0';
        if (segment_is_special(at, len) && !(last && len == 0))
            return false;
        if (last)
            return true;
        at += len + 1;
    }
}

static void put_path(struct buf *out, const char *root, const char *bucket, const char *object)
{
    buf_puts(out, root);
    buf_put_url_escaped(out, bucket, strlen(bucket), "");
    buf_putc(out, '/');
    if (strcmp(object, ".") == 0)
        buf_puts(out, "%2E");
    else if (strcmp(object, "..") == 0)
        buf_puts(out, "%2E%2E");
    else
        buf_put_url_escaped(out, object, strlen(object), name_is_plain(object) ? "/" : "");
}

void location_put_object(struct buf *out, const char *bucket, const char *object)
{
    put_path(out, "/v1/objects/", bucket, object);
}

void location_put_upload(struct buf *out, const char *bucket, const char *object)
{
    put_path(out, "/v1/uploads/", bucket, object);
}

static bool is_dropped(const char *pair, size_t len, const char *const *drop)
{
    const char *equals = memchr(pair, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - pair) : len;
    for (; *drop != NULL; drop++) {
        if (strlen(*drop) == name_len && memcmp(*drop, pair, name_len) == 0)
            return true;
    }
    return false;
}

static void put_separator(struct buf *out, char *separator)
{
    buf_putc(out, *separator);
    *separator = '&';
}

void location_put_query(struct buf *out, const char *raw_query, const char *const *drop,
                        char *separator)
{
    for (const char *at = raw_query; *at != '\0';) {
        size_t len = strcspn(at, "&");
        if (len > 0 && !is_dropped(at, len, drop)) {
            put_separator(out, separator);
            buf_append(out, at, len);
        }
        at += len + (at[len] == '&');
    }
}

void location_put_version(struct buf *out, const struct cluster_state *s, uint64_t bucket_id,
                          char *separator)
{
    put_separator(out, separator);
    buf_printf(out, "dfcb=%llu&dfcv=%llu.%llu", (unsigned long long)bucket_id,
               (unsigned long long)s->term, (unsigned long long)s->version);
}

static void put_client_query(struct buf *out, const struct cluster_state *s, const struct bucket *b,
                             const char *raw_query)
{
    static const char *const ours[] = {"dfca", "dfcb", "dfcn", "dfcu", "dfcv", "redirect", NULL};
    char separator = '?';
    location_put_query(out, raw_query, ours, &separator);
    location_put_version(out, s, b->id, &separator);
}

void location_put_target(struct buf *out, const struct node *n, const struct cluster_state *s,
                         const struct bucket *b, const char *object, const char *raw_query)
{
    buf_puts(out, n->public_url);
    location_put_object(out, b->name, object);
    put_client_query(out, s, b, raw_query);
}

void location_put_upload_target(struct buf *out, const struct node *n,
                                const struct cluster_state *s, const struct bucket *b,
                                const char *object, const char *raw_query)
{
    buf_puts(out, n->public_url);
    location_put_upload(out, b->name, object);
    put_client_query(out, s, b, raw_query);
}

char *location_of_copy(const struct node *n, const struct cluster_state *s, const struct bucket *b,
                       const char *object)
{
    char separator = '?';
    struct buf url = BUF_INIT;
    buf_puts(&url, n->data_url);
    location_put_object(&url, b->name, object);
    location_put_version(&url, s, b->id, &separator);
    return buf_steal(&url);
}
