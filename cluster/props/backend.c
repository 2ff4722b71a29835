#include "cluster/props/backend.h"

#include <stddef.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/parse.h"

static const char digits_letters[] =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

enum { BUCKET_MAX = 255, PREFIX_MAX = 1024, WORD_MAX = 64 };

/* --- pieces ----------------------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_word(const char *text, size_t max, const char *more)
{
    size_t len = strlen(text);
    if (len == 0 || len > max)
        return false;
    for (; *text != '\0'; text++) {
        if (strchr(digits_letters, *text) == NULL && strchr(more, *text) == NULL)
            return false;
    }
    return true;
}

static const char *without_slashes(struct arena *a, const char *url)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    char *copy = arena_alloc(a, len + 1);
    memcpy(copy, url, len);
    copy[len] = '\0';
    return copy;
}

/* What is sent goes to exactly this host: nothing of it may be read in two ways. */
static int check_http_url(const char *what, const char *url, struct error *err)
{
    size_t scheme = begins_with(url, "http://") ? 7 : begins_with(url, "https://") ? 8 : 0;
    if (scheme == 0)
        return error_set(err, E_INVALID, "%s '%.100s' does not begin with http:// or https://",
                         what, url);
    size_t host = strcspn(url + scheme, "/?#");
    if (host == 0)
        return error_set(err, E_INVALID, "%s '%.100s' names no host", what, url);
    if (memchr(url + scheme, '@', host) != NULL)
        return error_set(err, E_INVALID,
                         "%s has a user or a password in it: keys come from the "
                         "targets' environment or files",
                         what);
    if (strpbrk(url, "?#") != NULL)
        return error_set(err, E_INVALID, "%s '%.100s' has a query or a fragment", what, url);
    for (const char *at = url; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f || *at == '\\' || *at == '"')
            return error_set(err, E_INVALID, "%s has a character that must be percent-encoded",
                             what);
    }
    return 0;
}

/* --- options of the query --------------------------------------------------------------------- */

struct options {
    const char *endpoint, *region, *style, *auth, *profile;
};

static const struct {
    const char *name;
    size_t offset;
} option_rows[] = {
    {"endpoint", offsetof(struct options, endpoint)}, {"region", offsetof(struct options, region)},
    {"style", offsetof(struct options, style)},       {"auth", offsetof(struct options, auth)},
    {"profile", offsetof(struct options, profile)},
};

enum { OPTIONS = sizeof option_rows / sizeof option_rows[0] };

static const char **option_of(struct options *o, size_t i)
{
    return (const char **)((char *)o + option_rows[i].offset);
}

static int unescape(struct arena *a, const char *what, const char *at, size_t len, const char **out,
                    struct error *err)
{
    char *text = arena_alloc(a, len + 1);
    struct error why = ERROR_INIT;
    if (parse_url_unescape(at, len, text, &why) < 0)
        return error_set(err, E_INVALID, "backend: %s: %s", what, why.message);
    *out = text;
    return 0;
}

static int take_option(struct arena *a, const char *pair, size_t len, struct options *o,
                       struct error *err)
{
    const char *equals = memchr(pair, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - pair) : len;
    for (size_t i = 0; i < OPTIONS; i++) {
        const char *name = option_rows[i].name;
        if (strlen(name) != name_len || memcmp(name, pair, name_len) != 0)
            continue;
        if (*option_of(o, i) != NULL)
            return error_set(err, E_INVALID, "backend: option '%s' is given twice", name);
        if (equals == NULL)
            return error_set(err, E_INVALID, "backend: option '%s' has no value", name);
        return unescape(a, name, equals + 1, len - name_len - 1, option_of(o, i), err);
    }
    return error_set(err, E_INVALID,
                     "backend: '%.*s' is no option: endpoint, region, style, auth, profile",
                     (int)(name_len < WORD_MAX ? name_len : WORD_MAX), pair);
}

static int take_options(struct arena *a, const char *query, struct options *o, struct error *err)
{
    for (const char *at = query; *at != '\0';) {
        size_t len = strcspn(at, "&");
        int code = len > 0 ? take_option(a, at, len, o, err) : 0;
        if (code != 0)
            return code;
        at += len + (at[len] == '&');
    }
    return 0;
}

static int pick_word(const char *option, const char *text, const char *yes, const char *no,
                     bool *out, struct error *err)
{
    if (text == NULL)
        return 0;
    *out = strcmp(text, yes) == 0;
    if (*out || strcmp(text, no) == 0)
        return 0;
    return error_set(err, E_INVALID, "backend: %s is %s or %s, not '%.40s'", option, yes, no, text);
}

/* --- s3 --------------------------------------------------------------------------------------- */

static const char *aws_endpoint(struct arena *a, const char *region)
{
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    buf_printf(&url, "https://s3.%s.amazonaws.com", region);
    return arena_strdup(a, buf_str(&url));
}

static int take_s3_options(const struct options *o, struct arena *a, struct backend_spec *s,
                           struct error *err)
{
    s->region = o->region != NULL ? o->region : "us-east-1";
    s->profile = o->profile != NULL ? o->profile : "";
    if (!is_word(s->region, WORD_MAX, "-_"))
        return error_set(err, E_INVALID, "backend: '%.80s' is no region", s->region);
    if (*s->profile != '\0' && !is_word(s->profile, WORD_MAX, "-_."))
        return error_set(err, E_INVALID, "backend: a profile has up to %d letters, digits, - _ .",
                         WORD_MAX);
    int code = o->endpoint != NULL ? check_http_url("backend: endpoint", o->endpoint, err) : 0;
    if (code != 0)
        return code;
    s->endpoint =
        o->endpoint != NULL ? without_slashes(a, o->endpoint) : aws_endpoint(a, s->region);
    s->path_style = o->endpoint != NULL || strchr(s->bucket, '.') != NULL;
    s->is_signed = true;
    code = pick_word("style", o->style, "path", "virtual", &s->path_style, err);
    return code != 0 ? code : pick_word("auth", o->auth, "signed", "none", &s->is_signed, err);
}

/* "a/b" and "a/b/" are "a/b/": the name of an object follows. */
static int take_prefix(struct arena *a, const char *at, size_t len, struct backend_spec *s,
                       struct error *err)
{
    const char *text;
    int code = unescape(a, "prefix", at, len, &text, err);
    if (code != 0)
        return code;
    size_t text_len = strlen(text);
    if (text_len > PREFIX_MAX)
        return error_set(err, E_INVALID, "backend: the prefix has more than %d bytes", PREFIX_MAX);
    if (!utf8_valid(text, text_len))
        return error_set(err, E_INVALID, "backend: the prefix is not UTF-8");
    if (text_len == 0 || text[text_len - 1] == '/') {
        s->prefix = text;
        return 0;
    }
    char *prefix = arena_alloc(a, text_len + 2);
    memcpy(prefix, text, text_len);
    memcpy(prefix + text_len, "/", 2);
    s->prefix = prefix;
    return 0;
}

/* "NAME/PREFIX?options", behind the scheme. */
static int take_bucket(const char *at, struct arena *a, struct backend_spec *s, struct options *o,
                       struct error *err)
{
    size_t name_len = strcspn(at, "/?"), path_len = strcspn(at, "?");
    int code = unescape(a, "bucket", at, name_len, &s->bucket, err);
    if (code != 0)
        return code;
    if (!is_word(s->bucket, BUCKET_MAX, "-_."))
        return error_set(err, E_INVALID, "backend: '%.80s' is no name of a bucket", s->bucket);
    if (name_len < path_len)
        code = take_prefix(a, at + name_len + 1, path_len - name_len - 1, s, err);
    if (code == 0 && at[path_len] == '?')
        code = take_options(a, at + path_len + 1, o, err);
    return code;
}

static int parse_s3(const char *url, struct arena *a, struct backend_spec *s, struct error *err)
{
    struct options o = {0};
    int code = take_bucket(url + strlen("s3://"), a, s, &o, err);
    return code != 0 ? code : take_s3_options(&o, a, s, err);
}

/* --- gcs -------------------------------------------------------------------------------------- */

static int parse_gcs(const char *url, struct arena *a, struct backend_spec *s, struct error *err)
{
    struct options o = {0};
    int code = take_bucket(url + strlen("gs://"), a, s, &o, err);
    if (code != 0)
        return code;
    if (o.region != NULL || o.style != NULL || o.profile != NULL)
        return error_set(err, E_INVALID, "backend: gs has no options but endpoint and auth");
    if (o.endpoint == NULL)
        o.endpoint = "https://storage.googleapis.com";
    s->endpoint = without_slashes(a, o.endpoint);
    s->is_signed = true;
    code = check_http_url("backend: endpoint", o.endpoint, err);
    return code != 0 ? code : pick_word("auth", o.auth, "signed", "none", &s->is_signed, err);
}

/* --- dfc -------------------------------------------------------------------------------------- */

static int parse_dfc(const char *url, struct arena *a, struct backend_spec *s, struct error *err)
{
    struct options o = {0};
    int code = take_bucket(url + strlen("dfc://"), a, s, &o, err);
    if (code != 0)
        return code;
    if (o.endpoint == NULL)
        return error_set(err, E_INVALID, "backend: dfc needs endpoint=URL, a proxy's");
    if (o.region != NULL || o.style != NULL || o.auth != NULL || o.profile != NULL)
        return error_set(err, E_INVALID, "backend: dfc has no option but endpoint");
    s->endpoint = without_slashes(a, o.endpoint);
    return check_http_url("backend: endpoint", o.endpoint, err);
}

/* --- http ------------------------------------------------------------------------------------- */

static int parse_http(const char *url, struct arena *a, struct backend_spec *s, struct error *err)
{
    int code = check_http_url("backend", url, err);
    if (code == 0)
        s->endpoint = without_slashes(a, url);
    return code;
}

/* --- all -------------------------------------------------------------------------------------- */

static const struct {
    const char *scheme, *provider;
    int (*parse)(const char *url, struct arena *a, struct backend_spec *s, struct error *err);
} providers[] = {
    {"s3://", "s3", parse_s3},       {"gs://", "gcs", parse_gcs},      {"dfc://", "dfc", parse_dfc},
    {"http://", "http", parse_http}, {"https://", "http", parse_http},
};

int backend_parse(const char *url, struct arena *a, struct backend_spec *out, struct error *err)
{
    *out = (struct backend_spec){
        .provider = "", .endpoint = "", .bucket = "", .prefix = "", .region = "", .profile = ""};
    if (strlen(url) > BACKEND_URL_MAX)
        return error_set(err, E_INVALID, "backend: the URL has more than %d bytes",
                         BACKEND_URL_MAX);
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++) {
        if (!begins_with(url, providers[i].scheme))
            continue;
        out->provider = providers[i].provider;
        return providers[i].parse(url, a, out, err);
    }
    return error_set(
        err, E_INVALID,
        "backend: '%.80s' does not begin with s3://, gs://, http://, https:// or dfc://", url);
}

int backend_check(const char *url, struct error *err)
{
    struct backend_spec spec;
    struct arena *a = arena_new(1024);
    int code = backend_parse(url, a, &spec, err);
    arena_free(a);
    return code;
}

bool backend_is_written(const char *url)
{
    return begins_with(url, "s3://") || begins_with(url, "gs://");
}

bool backend_is_listed(const char *url)
{
    return backend_is_written(url);
}

bool backend_is_signed(const char *url)
{
    struct backend_spec spec;
    struct arena *a = arena_new(1024);
    bool is_signed = backend_parse(url, a, &spec, NULL) == 0 && spec.is_signed;
    arena_free(a);
    return is_signed;
}

bool backend_same_objects(const char *a, const char *b)
{
    struct backend_spec x, y;
    struct arena *arena = arena_new(1024);
    bool same = backend_parse(a, arena, &x, NULL) == 0 && backend_parse(b, arena, &y, NULL) == 0 &&
                strcmp(x.provider, y.provider) == 0 && strcmp(x.bucket, y.bucket) == 0 &&
                strcmp(x.prefix, y.prefix) == 0 &&
                (strcmp(x.provider, "http") != 0 || strcmp(x.endpoint, y.endpoint) == 0);
    arena_free(arena);
    return same;
}

/* --- the object form -------------------------------------------------------------------------- */

static int bucket_url_from_json(json_t *doc, const char *provider, struct buf *out,
                                struct error *err)
{
    static const char *const fields[] = {"provider", "bucket", "prefix",  "endpoint", "region",
                                         "style",    "auth",   "profile", NULL};
    const char *bucket, *prefix = "";
    int code = json_only_fields(doc, "backend", fields, err);
    if (code != 0 || (code = json_need_str(doc, "backend", "bucket", &bucket, err)) != 0 ||
        (code = json_get_str(doc, "backend", "prefix", &prefix, err)) != 0)
        return code;
    buf_printf(out, "%s://", strcmp(provider, "gcs") == 0 ? "gs" : provider);
    buf_put_url_escaped(out, bucket, strlen(bucket), "");
    if (*prefix != '\0')
        buf_putc(out, '/');
    buf_put_url_escaped(out, prefix, strlen(prefix), "/");
    char separator = '?';
    for (size_t i = 0; i < OPTIONS; i++) {
        const char *value = NULL;
        if ((code = json_get_str(doc, "backend", option_rows[i].name, &value, err)) != 0)
            return code;
        if (value == NULL)
            continue;
        buf_printf(out, "%c%s=", separator, option_rows[i].name);
        buf_put_url_escaped(out, value, strlen(value), ":/");
        separator = '&';
    }
    return 0;
}

static int http_url_from_json(json_t *doc, struct buf *out, struct error *err)
{
    static const char *const fields[] = {"provider", "url", NULL};
    const char *url;
    int code = json_only_fields(doc, "backend", fields, err);
    if (code == 0 && (code = json_need_str(doc, "backend", "url", &url, err)) == 0 &&
        (code = check_http_url("field 'backend.url'", url, err)) == 0)
        buf_puts(out, url);
    return code;
}

int backend_url_from_json(json_t *doc, struct buf *out, struct error *err)
{
    const char *provider;
    int code = json_need_str(doc, "backend", "provider", &provider, err);
    if (code != 0)
        return code;
    if (strcmp(provider, "s3") == 0 || strcmp(provider, "gcs") == 0 || strcmp(provider, "dfc") == 0)
        return bucket_url_from_json(doc, provider, out, err);
    if (strcmp(provider, "http") == 0 || strcmp(provider, "https") == 0)
        return http_url_from_json(doc, out, err);
    return error_set(err, E_INVALID,
                     "field 'backend.provider': '%.40s' is not s3, gcs, http or dfc", provider);
}
