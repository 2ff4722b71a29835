#include "cluster/props/ec_shape.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

static int from_text(const char *text, struct ec_shape *out, struct error *err)
{
    const char *plus = strchr(text, '+');
    const char *colon = plus != NULL ? strchr(plus, ':') : NULL;
    if (plus != NULL) {
        const char *end = colon != NULL ? colon : plus + strlen(plus);
        _cleanup_free_ char *data = xprintf("%.*s", (int)(plus - text), text);
        _cleanup_free_ char *parity = xprintf("%.*s", (int)(end - plus - 1), plus + 1);
        if (parse_u64(data, &out->data, NULL) == 0 && parse_u64(parity, &out->parity, NULL) == 0 &&
            (colon == NULL || parse_size(colon + 1, &out->min_size, NULL) == 0))
            return 0;
    }
    return error_set(err, E_INVALID,
                     "field 'props.ec': '%.40s' is not DATA+PARITY or DATA+PARITY:MIN_SIZE, as 4+2 "
                     "or 4+2:64KiB",
                     text);
}

int ec_shape_from_json(json_t *value, struct ec_shape *out, struct error *err)
{
    int code;
    if (json_is_string(value))
        return from_text(json_string_value(value), out, err);
    if (!json_is_object(value))
        return error_set(err, E_JSON, "field 'props.ec' is neither an object nor a text as 4+2");
    if ((code = json_need_u64(value, "props.ec", "data", &out->data, err)) != 0 ||
        (code = json_need_u64(value, "props.ec", "parity", &out->parity, err)) != 0)
        return code;
    return json_get_u64(value, "props.ec", "min_size", &out->min_size, err);
}
