#include "api/info.h"

#include <strings.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define META_PREFIX "Dfc-Meta-"

void dfc_object_info_free(struct dfc_object_info *info)
{
    if (info == NULL)
        return;
    for (size_t i = 0; i < info->meta_count; i++) {
        free((char *)info->meta[i].name);
        free((char *)info->meta[i].value);
    }
    free(info->meta);
    free(info->content_type);
    free(info->etag);
    free(info->version);
    free(info->checksum_type);
    free(info->checksum);
    free(info);
}

static char *text_of(const struct headers *h, const char *name)
{
    const char *value = headers_get(h, name);
    return xstrdup(value != NULL ? value : "");
}

static uint64_t size_of(const struct headers *h)
{
    uint64_t first, last, total;
    if (headers_parse_range(headers_get(h, "Content-Range"), &first, &last, &total))
        return total;
    uint64_t length = headers_get_u64(h, "Content-Length");
    return length != UINT64_MAX ? length : 0;
}

static int64_t modified_of(const struct headers *h)
{
    const char *text = headers_get(h, "Last-Modified");
    int64_t seconds;
    if (text == NULL || clock_parse_http(text, &seconds) != 0)
        return 0;
    return seconds * 1000;
}

static void info_add_meta(struct dfc_object_info *info, const char *name, const char *value)
{
    info->meta = xrealloc(info->meta, (info->meta_count + 1) * sizeof *info->meta);
    info->meta[info->meta_count++] =
        (struct dfc_meta){.name = xstrdup(name), .value = xstrdup(value)};
}

struct dfc_object_info *info_from_headers(const struct headers *h)
{
    struct dfc_object_info *info = xcalloc(1, sizeof *info);
    info->size = size_of(h);
    info->modified_ms = modified_of(h);
    info->content_type = text_of(h, "Content-Type");
    info->etag = text_of(h, "ETag");
    info->version = text_of(h, "Dfc-Version");
    info->checksum_type = text_of(h, "Dfc-Checksum-Type");
    info->checksum = text_of(h, "Dfc-Checksum-Value");
    struct header one;
    for (size_t at = 0; headers_next(h, &at, &one);) {
        if (strncasecmp(one.name, META_PREFIX, strlen(META_PREFIX)) == 0)
            info_add_meta(info, one.name + strlen(META_PREFIX), one.value);
    }
    return info;
}

static void replace(char **text, json_t *doc, const char *field)
{
    const char *value = json_string_value(json_object_get(doc, field));
    if (value == NULL)
        return;
    free(*text);
    *text = xstrdup(value);
}

struct dfc_object_info *info_from_put(const struct headers *h, const char *json, size_t len)
{
    struct dfc_object_info *info = info_from_headers(h);
    _cleanup_json_ json_t *doc = NULL;
    if (len == 0 || json_parse(json, len, &doc, NULL) != 0)
        return info;
    uint64_t size = 0;
    if (json_get_u64(doc, "", "size", &size, NULL) == 0)
        info->size = size;
    json_t *sum = json_object_get(doc, "checksum");
    replace(&info->checksum_type, sum, "type");
    replace(&info->checksum, sum, "value");
    replace(&info->version, doc, "version");
    replace(&info->etag, doc, "etag");
    return info;
}
