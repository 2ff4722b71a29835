#include "api/ctl/grant_text.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* False: one of them is not UTF-8. */
static bool split(const char *rights, json_t *list)
{
    for (;;) {
        size_t len = strcspn(rights, ",");
        if (len > 0 && json_array_append_new(list, json_stringn(rights, len)) != 0)
            return false;
        if (rights[len] == '\0')
            return true;
        rights += len + 1;
    }
}

int grant_make(const char *rights, const char *bucket, const char *prefix, json_t **out,
               struct error *err)
{
    _cleanup_json_ json_t *list = json_array();
    if (!split(rights, list))
        return error_set(err, E_INVALID, "the rights of the grant are not UTF-8");
    if (json_array_size(list) == 0)
        return error_set(err, E_INVALID, "the grant has no rights: expected one such as list,read");
    *out = json_pack("{s:O, s:s*, s:s*}", "rights", list, "bucket", bucket, "prefix", prefix);
    return *out != NULL ? 0 : error_set(err, E_INVALID, "the grant is not UTF-8");
}

int grant_parse(const char *text, json_t **out, struct error *err)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL)
        return grant_make(text, NULL, NULL, out, err);
    const char *slash = strchr(colon, '/');
    size_t len = slash != NULL ? (size_t)(slash - colon) - 1 : strlen(colon + 1);
    if (len == 0)
        return error_set(err, E_INVALID, "'%s': no bucket follows the colon", text);
    _cleanup_free_ char *rights = xstrndup(text, (size_t)(colon - text));
    _cleanup_free_ char *bucket = xstrndup(colon + 1, len);
    return grant_make(rights, bucket, slash != NULL ? slash + 1 : NULL, out, err);
}
