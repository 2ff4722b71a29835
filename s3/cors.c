#include "s3/cors.h"

#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"
#include "s3/document.h"
#include "s3/xml_write.h"

struct reading {
    struct arena *arena;
    struct s3_cors *out;
    struct s3_cors_rule now; /* the rule that is read */
};

/* --- reading ---------------------------------------------------------------------------------- */

static void begin_rule(struct reading *r)
{
    r->now = (struct s3_cors_rule){.max_age_s = -1};
}

static enum s3_error add(struct reading *r, struct s3_texts *t, const char *text,
                         struct s3_failure *why)
{
    if (t->texts == NULL)
        t->texts = arena_alloc(r->arena, S3_CORS_TEXTS_MAX * sizeof t->texts[0]);
    if (t->count == S3_CORS_TEXTS_MAX)
        return s3_fail(why, S3_INVALID_REQUEST, "A rule has %d texts of one kind at most",
                       S3_CORS_TEXTS_MAX);
    t->texts[t->count++] = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error add_pattern(struct reading *r, struct s3_texts *t, const char *text,
                                 struct s3_failure *why)
{
    const char *star = strchr(text, '*');
    if (*text == '\0')
        return s3_fail(why, S3_MALFORMED_XML, NULL);
    if (star != NULL && strchr(star + 1, '*') != NULL)
        return s3_fail(why, S3_INVALID_REQUEST, "'%.64s' has more than one '*'", text);
    return add(r, t, text, why);
}

static enum s3_error take_origin(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    return add_pattern(r, &r->now.origins, text, why);
}

static enum s3_error take_header(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    return add_pattern(r, &r->now.headers, text, why);
}

static enum s3_error take_method(void *ctx, const char *text, struct s3_failure *why)
{
    static const char *const methods[] = {"GET", "PUT", "HEAD", "POST", "DELETE"};
    struct reading *r = ctx;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (strcmp(methods[i], text) == 0)
            return add(r, &r->now.methods, text, why);
    }
    return s3_fail(why, S3_INVALID_REQUEST, "The method '%.32s' is not supported", text);
}

static enum s3_error take_exposed(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    return add(r, &r->now.exposed, text, why);
}

static enum s3_error take_id(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    if (strlen(text) > 255 || r->now.id != NULL)
        return s3_fail(why, S3_MALFORMED_XML, "A rule has one ID of 255 bytes at most");
    r->now.id = arena_strdup(r->arena, text);
    return S3_OK;
}

static enum s3_error take_max_age(void *ctx, const char *text, struct s3_failure *why)
{
    struct reading *r = ctx;
    uint64_t age;
    if (r->now.max_age_s >= 0 || parse_u64(text, &age, NULL) != 0 || age > INT32_MAX)
        return s3_fail(why, S3_MALFORMED_XML, NULL);
    r->now.max_age_s = (int64_t)age;
    return S3_OK;
}

static enum s3_error end_rule(void *ctx, const char *name, struct s3_failure *why)
{
    struct reading *r = ctx;
    (void)name; /* there is nothing but rules on this level */
    if (r->now.origins.count == 0 || r->now.methods.count == 0)
        return s3_fail(why, S3_MALFORMED_XML, "A rule needs an origin and a method");
    if (r->out->count == S3_CORS_RULES_MAX)
        return s3_fail(why, S3_INVALID_REQUEST, "A bucket has %d rules at most", S3_CORS_RULES_MAX);
    r->out->rules[r->out->count++] = r->now;
    begin_rule(r);
    return S3_OK;
}

static const struct document_leaf leaves[] = {
    {"CORSRule", "ID", take_id},
    {"CORSRule", "AllowedOrigin", take_origin},
    {"CORSRule", "AllowedMethod", take_method},
    {"CORSRule", "AllowedHeader", take_header},
    {"CORSRule", "ExposeHeader", take_exposed},
    {"CORSRule", "MaxAgeSeconds", take_max_age},
    {.name = NULL},
};

static const struct document document = {
    .root = "CORSConfiguration", .depth = 3, .leaves = leaves, .leave = end_rule};

enum s3_error s3_cors_parse(const char *body, size_t len, struct arena *arena, struct s3_cors *out,
                            struct s3_failure *why)
{
    *out = (struct s3_cors){.rules = arena_alloc(arena, S3_CORS_RULES_MAX * sizeof out->rules[0])};
    struct reading r = {.arena = arena, .out = out};
    begin_rule(&r);
    enum s3_error e = document_read(&document, body, len, &r, why);
    return e == S3_OK && out->count == 0 ? s3_fail(why, S3_MALFORMED_XML, "There is no rule") : e;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_texts(struct buf *out, const char *name, const struct s3_texts *t)
{
    for (size_t i = 0; i < t->count; i++)
        xml_put_element(out, name, t->texts[i]);
}

void s3_cors_document(const struct s3_cors *c, struct buf *out)
{
    xml_put_root(out, "CORSConfiguration", XML_S3_NAMESPACE);
    for (size_t i = 0; i < c->count; i++) {
        const struct s3_cors_rule *rule = &c->rules[i];
        xml_put_open(out, "CORSRule");
        if (rule->id != NULL)
            xml_put_element(out, "ID", rule->id);
        put_texts(out, "AllowedMethod", &rule->methods);
        put_texts(out, "AllowedOrigin", &rule->origins);
        put_texts(out, "AllowedHeader", &rule->headers);
        put_texts(out, "ExposeHeader", &rule->exposed);
        if (rule->max_age_s >= 0)
            xml_put_number(out, "MaxAgeSeconds", (uint64_t)rule->max_age_s);
        xml_put_close(out, "CORSRule");
    }
    xml_put_close(out, "CORSConfiguration");
}

/* --- deciding --------------------------------------------------------------------------------- */

/* `pattern` may have one '*'.  Names of headers are compared in any case. */
static bool fits(const char *pattern, const char *text,
                 int (*compare)(const char *, const char *, size_t))
{
    const char *star = strchr(pattern, '*');
    size_t len = strlen(text);
    if (star == NULL)
        return strlen(pattern) == len && compare(pattern, text, len) == 0;
    size_t before = (size_t)(star - pattern), after = strlen(star + 1);
    return len >= before + after && compare(pattern, text, before) == 0 &&
           compare(star + 1, text + len - after, after) == 0;
}

static bool any_fits(const struct s3_texts *patterns, const char *text,
                     int (*compare)(const char *, const char *, size_t))
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (fits(patterns->texts[i], text, compare))
            return true;
    }
    return false;
}

static bool headers_fit(const struct s3_cors_rule *rule, const char *headers)
{
    _cleanup_free_ char *rest = xstrdup(headers);
    char *save = NULL;
    for (char *name = strtok_r(rest, ", \t", &save); name != NULL;
         name = strtok_r(NULL, ", \t", &save)) {
        if (!any_fits(&rule->headers, name, strncasecmp))
            return false;
    }
    return true;
}

const struct s3_cors_rule *s3_cors_match(const struct s3_cors *c, const char *origin,
                                         const char *method, const char *headers)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct s3_cors_rule *rule = &c->rules[i];
        if (any_fits(&rule->origins, origin, strncmp) &&
            any_fits(&rule->methods, method, strncmp) &&
            (headers == NULL || headers_fit(rule, headers)))
            return rule;
    }
    return NULL;
}

bool s3_cors_is_public(const struct s3_cors_rule *rule)
{
    for (size_t i = 0; i < rule->origins.count; i++) {
        if (strcmp(rule->origins.texts[i], "*") == 0)
            return true;
    }
    return false;
}
