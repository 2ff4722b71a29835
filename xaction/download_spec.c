#include "xaction/download_spec.h"

#include <string.h>

#include "cluster/documents/state.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "xaction/objects_spec.h"

enum { URL_MAX = 8192 };

void download_spec_free(struct download_spec *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++) {
        free(s->urls[i]);
        free(s->names[i]);
    }
    free(s->urls);
    free(s->names);
    template_free(s->url_template);
    free(s->prepend);
    free(s->description);
    free(s);
}

/* --- URLs ------------------------------------------------------------------------------------- */

static int check_url(const char *url, struct error *err)
{
    size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
    if (scheme == 0 || strlen(url) > URL_MAX)
        return error_set(err, E_SPEC, "'%.100s' is no URL that begins with http:// or https://",
                         url);
    size_t host = strcspn(url + scheme, "/?#");
    if (host == 0)
        return error_set(err, E_SPEC, "'%.100s' names no host", url);
    if (memchr(url + scheme, '@', host) != NULL)
        return error_set(err, E_SPEC, "the URL has a user or a password in it");
    for (const char *at = url; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f || *at == '\\' || *at == '"')
            return error_set(err, E_SPEC, "the URL has a character that must be percent-encoded");
    }
    return 0;
}

void download_source(const char *url, struct buf *out)
{
    buf_append(out, url, strcspn(url, "?#"));
}

/* prepend + the last segment of the path. */
static int name_of_url(const char *url, const char *prepend, struct buf *out, struct error *err)
{
    const char *path = strstr(url, "://") + 3;
    size_t len = strcspn(path, "?#");
    const char *slash = memchr(path, '/', len);
    char *text = xmalloc(len + 1);
    int64_t got = -1;
    for (const char *at = slash; at != NULL && at < path + len; at++) {
        if (*at == '/')
            slash = at;
    }
    if (slash != NULL)
        got = parse_url_unescape(slash + 1, (size_t)(path + len - slash - 1), text, NULL);
    if (got > 0)
        buf_printf(out, "%s%s", prepend, text);
    free(text);
    if (got <= 0)
        return error_set(err, E_NAME,
                         "'%.100s' has no last segment that could be a name; give it "
                         "as {\"url\", \"name\"}",
                         url);
    return object_name_check(buf_str(out), out->len, err);
}

/* --- list ------------------------------------------------------------------------------------- */

static int take_item(struct download_spec *s, json_t *item, struct error *err)
{
    static const char *const fields[] = {"url", "name", NULL};
    const char *url = json_string_value(item), *name = NULL;
    _cleanup_(buf_done)
    struct buf made = BUF_INIT;
    int r = 0;
    if (json_is_object(item) && ((r = json_only_fields(item, "value.list[]", fields, err)) != 0 ||
                                 (r = json_need_str(item, "value.list[]", "url", &url, err)) != 0 ||
                                 (r = json_get_str(item, "value.list[]", "name", &name, err)) != 0))
        return r;
    if (url == NULL)
        return error_set(err, E_JSON, "it must be a URL or an object");
    if ((r = check_url(url, err)) != 0)
        return r;
    if (name != NULL)
        buf_printf(&made, "%s%s", s->prepend, name);
    r = name != NULL ? object_name_check(buf_str(&made), made.len, err)
                     : name_of_url(url, s->prepend, &made, err);
    if (r != 0)
        return r;
    s->urls[s->count] = xstrdup(url);
    s->names[s->count++] = xstrdup(buf_str(&made));
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two downloads of one name would replace one another, in no order. */
static int check_twice(const struct download_spec *s, struct error *err)
{
    _cleanup_free_ char **sorted = xcalloc(s->count + 1, sizeof *sorted);
    for (size_t i = 0; i < s->count; i++)
        sorted[i] = s->names[i];
    qsort(sorted, s->count, sizeof *sorted, by_text);
    for (size_t i = 1; i < s->count; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return error_set(err, E_SPEC, "field 'value.list' makes '%.100s' twice", sorted[i]);
    }
    return 0;
}

static int parse_list(json_t *list, struct download_spec *s, struct error *err)
{
    size_t count = json_array_size(list);
    s->urls = xcalloc(count + 1, sizeof *s->urls);
    s->names = xcalloc(count + 1, sizeof *s->names);
    for (size_t i = 0; i < count; i++) {
        if (take_item(s, json_array_get(list, i), err) != 0)
            return error_wrap(err, "field 'value.list[%zu]'", i);
    }
    return check_twice(s, err);
}

/* --- template --------------------------------------------------------------------------------- */

/* All ranges must be in what becomes the name. */
static int check_names_differ(const struct download_spec *s, const char *first, struct error *err)
{
    const char *text = template_text(s->url_template);
    size_t path = strcspn(text, "?#"), last_slash = 0;
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    for (size_t i = 0; i < path; i++) {
        if (text[i] == '/')
            last_slash = i;
    }
    bool differ = strlen(template_prefix(s->url_template)) > last_slash;
    if (differ && template_count(s->url_template) > 1)
        differ =
            download_spec_item(s, 1, &url, &name, NULL) == 0 && strcmp(buf_str(&name), first) != 0;
    return differ ? 0
                  : error_set(err, E_SPEC,
                              "field 'value.template': a range outside the last segment of the "
                              "path gives several URLs one name; give them as a list");
}

static int parse_template(const char *text, struct download_spec *s, struct error *err)
{
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    if (template_parse(text, &s->url_template, err) != 0)
        return error_wrap(err, "field 'value.template'");
    enum template_kind kind = template_kind(s->url_template);
    if (kind == TEMPLATE_PREFIX || kind == TEMPLATE_FMT)
        return error_set(err, E_SPEC,
                         "field 'value.template': '%.100s' has no range with an end, "
                         "as https://host/s-{00..31}.tar has",
                         text);
    if (template_count(s->url_template) > OBJECTS_NAMES_MAX)
        return error_set(err, E_SPEC, "field 'value.template' makes more than %d names",
                         OBJECTS_NAMES_MAX);
    if (download_spec_item(s, 0, &url, &name, err) != 0)
        return error_wrap(err, "field 'value.template'");
    return check_names_differ(s, buf_str(&name), err);
}

/* --- all -------------------------------------------------------------------------------------- */

static int spec_parse(json_t *value, struct download_spec *s, struct error *err)
{
    static const char *const fields[] = {"list",     "template", "prepend",     "description",
                                         "parallel", "rate",     "allow_empty", NULL};
    const char *template = NULL, *prepend = "", *description = "";
    json_t *list = NULL;
    int r;
    if ((r = json_only_fields(value, "value", fields, err)) != 0 ||
        (r = json_get_array(value, "value", "list", &list, err)) != 0 ||
        (r = json_get_str(value, "value", "template", &template, err)) != 0 ||
        (r = json_get_str(value, "value", "prepend", &prepend, err)) != 0 ||
        (r = json_get_str(value, "value", "description", &description, err)) != 0 ||
        (r = json_get_bool(value, "value", "allow_empty", &s->allow_empty, err)) != 0 ||
        (r = objects_parse_speed(value, &s->parallel, &s->rate_bytes_s, err)) != 0)
        return r;
    s->prepend = xstrdup(prepend);
    s->description = xstrdup(description);
    if ((list != NULL) == (template != NULL))
        return error_set(err, E_SPEC, "one of 'list' and 'template' must be given");
    return list != NULL ? parse_list(list, s, err) : parse_template(template, s, err);
}

int download_spec_parse(json_t *value, struct download_spec **out, struct error *err)
{
    _cleanup_(download_spec_freep)
    struct download_spec *s = xcalloc(1, sizeof *s);
    int r = spec_parse(value, s, err);
    if (r == 0)
        *out = steal(s);
    return r;
}

uint64_t download_spec_count(const struct download_spec *s)
{
    return s->url_template != NULL ? template_count(s->url_template) : s->count;
}

int download_spec_item(const struct download_spec *s, uint64_t i, struct buf *url, struct buf *name,
                       struct error *err)
{
    buf_clear(url);
    buf_clear(name);
    if (s->url_template == NULL) {
        buf_puts(url, s->urls[i]);
        buf_puts(name, s->names[i]);
        return 0;
    }
    template_name(s->url_template, i, url);
    int code = check_url(buf_str(url), err);
    return code != 0 ? code : name_of_url(buf_str(url), s->prepend, name, err);
}
