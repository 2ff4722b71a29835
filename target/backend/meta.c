#include "target/backend/meta.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "s3/uploads/part_sizes.h"
#include "target/format/attr.h"
#include "target/format/attr_tags.h"
#include "target/store/object.h"
#include "target/store/own_meta.h"

/* Entity tag and encoding of the backend have their place beside it. */
static_assert(BACKEND_META_MAX + BACKEND_ETAG_MAX + BACKEND_ENCODING_MAX + 64 <= ATTR_META_MAX,
              "what the target adds has room");

static bool is_ours(const char *name)
{
    return strcmp(name, OBJECT_BACKEND_ETAG) == 0 || strcmp(name, OBJECT_BACKEND_MODIFIED) == 0 ||
           strcmp(name, OBJECT_BACKEND_SENT) == 0 || own_meta_find(name) != NULL;
}

/* Any client of the backend may write them. */
static bool is_tags(const char *value)
{
    _cleanup_buf_ struct buf tags = BUF_INIT;
    return attr_tags_normalize(value, &tags, NULL) == 0;
}

static bool is_part_sizes(const char *value)
{
    struct part_sizes sizes;
    return part_sizes_parse(value, &sizes);
}

/* Pairs of the target's own that a backend keeps as user metadata. */
static const struct carried {
    const char *pair, *name;
    bool (*is_readable)(const char *value);
} carried[] = {
    {ATTR_TAGS, BACKEND_TAGS_NAME, is_tags},
    {ATTR_PARTS, BACKEND_PARTS_NAME, is_part_sizes},
};

enum { CARRIED = sizeof carried / sizeof carried[0] };

static const struct carried *carried_of_pair(const char *pair)
{
    for (size_t i = 0; i < CARRIED; i++) {
        if (strcmp(carried[i].pair, pair) == 0)
            return &carried[i];
    }
    return NULL;
}

static const struct carried *carried_of_name(const char *name)
{
    for (size_t i = 0; i < CARRIED; i++) {
        if (strcasecmp(carried[i].name, name) == 0)
            return &carried[i];
    }
    return NULL;
}

bool backend_meta_next(const char *pairs, size_t len, size_t *pos, const char **name,
                       const char **value)
{
    const struct attr all = {.meta = pairs, .meta_len = len};
    while (attr_meta_next(&all, pos, name, value)) {
        const struct carried *as = carried_of_pair(*name);
        if (as != NULL)
            *name = as->name;
        if (!is_ours(*name))
            return true;
    }
    return false;
}

bool backend_meta_kept(const char *pairs, size_t len, size_t *pos, const char **name,
                       const char **value)
{
    const struct attr all = {.meta = pairs, .meta_len = len};
    while (attr_meta_next(&all, pos, name, value)) {
        const struct own_meta *own = own_meta_find(*name);
        if (own == NULL || !own->is_kept)
            continue;
        *name = own->sent;
        return true;
    }
    return false;
}

const char *backend_meta_encoding(const char *pairs, size_t len)
{
    const struct attr all = {.meta = pairs, .meta_len = len};
    return attr_meta_find(&all, OBJECT_BACKEND_ENCODING);
}

/* --- out -------------------------------------------------------------------------------------- */

/* RFC 9110's token, in lower case, but for the underscore: Ceph (release 16) gives it back as a
 * hyphen. */
static bool is_name(const char *name)
{
    return *name != '\0' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^`|~") == strlen(name);
}

/* Signatures and proxies take several spaces for one, and those at the ends for none. */
static bool is_value(const char *value)
{
    size_t len = strlen(value);
    if (len == 0 || value[0] == ' ' || value[len - 1] == ' ' || strstr(value, "  ") != NULL)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < ' ' || value[i] > '~')
            return false;
    }
    return true;
}

static bool is_twice(const char *pairs, size_t end, const char *wanted)
{
    const struct attr before = {.meta = pairs, .meta_len = end};
    size_t pos = 0;
    const char *name, *value;
    while (attr_meta_next(&before, &pos, &name, &value)) {
        if (strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

static int check_pair(const struct backend_ops *ops, const char *name, const char *value,
                      struct error *err)
{
    bool is_encoding = strcmp(name, OBJECT_BACKEND_ENCODING) == 0;
    bool is_of_bytes = strcmp(name, ATTR_MD5) == 0 || strcmp(name, OBJECT_SUM) == 0 ||
                       strcmp(name, ATTR_PART_SUMS) == 0;
    const struct own_meta *own = own_meta_find(name);
    bool is_kept = own != NULL && own->is_kept;
    if (is_kept && !ops->keeps_headers)
        return error_set(err, E_UNSUPPORTED, "a backend of this kind is sent no %s", own->sent);
    if (is_encoding && strlen(value) >= BACKEND_ENCODING_MAX)
        return error_set(err, E_INVALID, "Content-Encoding has more than %d characters",
                         BACKEND_ENCODING_MAX - 1);
    if (carried_of_name(name) != NULL || (is_ours(name) && !is_encoding && !is_of_bytes &&
                                          !is_kept && carried_of_pair(name) == NULL))
        return error_set(err, E_INVALID,
                         "user metadata '%s': in a bucket with a backend the name is the target's "
                         "own",
                         name);
    if (!is_name(name))
        return error_set(
            err, E_INVALID,
            "user metadata: '%.64s' is no name that backends give back: letters, digits, '-' and "
            "'.'",
            name);
    if (!is_value(value))
        return error_set(err, E_INVALID,
                         "user metadata '%s': a backend takes printable ASCII, not empty, and with "
                         "single spaces between words",
                         name);
    return 0;
}

int backend_meta_check(const char *backend_url, const char *pairs, size_t len, struct error *err)
{
    struct backend_spec spec;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    const struct attr all = {.meta = pairs, .meta_len = len};
    const char *name, *value;
    if (len == 0) /* nothing is sent */
        return 0;
    int code = backend_parse(backend_url, a, &spec, err);
    if (code == 0 && !backend_ops_of(spec.provider)->takes_meta)
        code = error_set(err, E_UNSUPPORTED,
                         "a backend of the kind '%s' is sent no user metadata by this release",
                         spec.provider);
    if (code == 0 && len > BACKEND_META_MAX)
        code = error_set(err, E_INVALID,
                         "user metadata and tags have more than %d bytes, which is the limit of a "
                         "bucket with a backend",
                         BACKEND_META_MAX);
    for (size_t pos = 0, at = 0; code == 0 && attr_meta_next(&all, &pos, &name, &value); at = pos) {
        code = check_pair(backend_ops_of(spec.provider), name, value, err);
        if (code == 0 && is_twice(pairs, at, name))
            code = error_set(err, E_INVALID, "user metadata '%s' is there twice", name);
    }
    return code;
}

void backend_meta_carry(const struct backend_facts *facts, struct buf *out)
{
    buf_append(out, facts->meta, facts->meta_len);
    if (*facts->encoding == '\0')
        return;
    buf_append(out, OBJECT_BACKEND_ENCODING, sizeof OBJECT_BACKEND_ENCODING);
    buf_append(out, facts->encoding, strlen(facts->encoding) + 1);
}

/* --- in --------------------------------------------------------------------------------------- */

struct reading {
    const struct backend_ops *ops;
    struct backend_facts *out;
};

static const char *user_pair(const struct backend_ops *ops, const char *header)
{
    size_t prefix = strlen(ops->meta_prefix);
    bool is_user = strncasecmp(header, ops->meta_prefix, prefix) == 0 && header[prefix] != '\0';
    return is_user ? header + prefix : NULL;
}

/* One of the target's own.  The headers of tags and parts are those of another cluster. */
static const char *own_pair(const struct backend_ops *ops, const char *header)
{
    const char *user = user_pair(ops, header);
    const struct carried *as = user != NULL ? carried_of_name(user) : NULL;
    if (as != NULL)
        return as->pair;
    for (const struct own_meta *own = own_metas; ops->keeps_headers && own->name != NULL; own++) {
        if ((own->is_kept || carried_of_pair(own->name) != NULL) &&
            strcasecmp(own->given, header) == 0)
            return own->name;
    }
    return NULL;
}

static bool is_readable(const char *pair, const char *value)
{
    const struct carried *as = carried_of_pair(pair);
    return as == NULL || as->is_readable(value);
}

static void take_header(void *ctx, const char *header, const char *value)
{
    const struct reading *r = ctx;
    struct backend_facts *out = r->out;
    const char *own = own_pair(r->ops, header);
    const char *pair = own != NULL ? own : user_pair(r->ops, header);
    if (pair == NULL || !is_readable(pair, value))
        return;
    size_t name_size = strlen(pair) + 1, value_size = strlen(value) + 1;
    char *at = out->meta + out->meta_len;
    if (out->meta_lost || name_size + value_size > BACKEND_META_MAX - out->meta_len) {
        out->meta_lost = true;
        return;
    }
    for (size_t i = 0; i < name_size; i++) {
        char c = pair[i];
        at[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    if (own == NULL && is_ours(at))
        return;
    memcpy(at + name_size, value, value_size);
    out->meta_len += name_size + value_size;
}

void backend_meta_read(const struct backend_ops *ops, const struct http_head *head,
                       struct backend_facts *out)
{
    struct reading r = {.ops = ops, .out = out};
    if (ops->meta_prefix == NULL)
        return;
    head->each_header(head, take_header, &r);
    if (out->meta_lost)
        out->meta_len = 0;
}
