#include "cluster/base/json_items.h"

#include <stdio.h>

int json_present(const void *value, const char *path, const char *field, struct error *err)
{
    if (value != NULL)
        return 0;
    return error_set(err, E_JSON, "field '%s%s%s' is missing", path, path[0] != '\0' ? "." : "",
                     field);
}

int json_item(json_t *array, const char *path, size_t n, json_t **out, char item_path[static 64],
              struct error *err)
{
    snprintf(item_path, 64, "%s[%zu]", path, n);
    *out = json_array_get(array, n);
    if (json_is_object(*out))
        return 0;
    return error_set(err, E_JSON, "field '%s' must be an object", item_path);
}
