#include "cluster/props/ring_shape.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

static int set_field(const char *name, const char *value, struct ring_shape *out, struct error *err)
{
    int code = E_INVALID;
    if (strcmp(name, "cap") == 0)
        code = parse_u64(value, &out->cap, NULL);
    else if (strcmp(name, "keep") == 0)
        code = parse_u64(value, &out->keep, NULL);
    else if (strcmp(name, "bytes_max") == 0)
        code = parse_size(value, &out->bytes_max, NULL);
    return code == 0 ? 0
                     : error_set(err, E_INVALID,
                                 "field 'props.ring': '%.40s=%.40s' is none of cap=N, keep=N and "
                                 "bytes_max=SIZE",
                                 name, value);
}

static int from_text(const char *text, struct ring_shape *out, struct error *err)
{
    int code = 0;
    for (const char *at = text; code == 0; at += strcspn(at, ",") + 1) {
        _cleanup_free_ char *item = xstrndup(at, strcspn(at, ","));
        char *equals = strchr(item, '=');
        if (equals != NULL)
            *equals = '\0';
        code = set_field(item, equals != NULL ? equals + 1 : "", out, err);
        if (at[strcspn(at, ",")] == '\0')
            break;
    }
    return code;
}

static int from_object(json_t *value, struct ring_shape *out, struct error *err)
{
    static const char *const fields[] = {"cap", "keep", "bytes_max", NULL};
    int code = json_only_fields(value, "props.ring", fields, err);
    if (code == 0)
        code = json_get_u64(value, "props.ring", "cap", &out->cap, err);
    if (code == 0)
        code = json_get_u64(value, "props.ring", "keep", &out->keep, err);
    return code != 0 ? code : json_get_size(value, "props.ring", "bytes_max", &out->bytes_max, err);
}

/* The kept generations, the current one, and the one that is filled. */
static int check_room(const struct ring_shape *s, struct error *err)
{
    const uint64_t least = (s->keep + 2) * s->cap * RING_SAMPLE_LEAST;
    if (s->bytes_max >= least)
        return 0;
    return error_set(err, E_INVALID,
                     "field 'props.ring.bytes_max': %llu generations of %llu samples have at least "
                     "%llu bytes: raise bytes_max, or lower cap or keep",
                     (unsigned long long)s->keep + 2, (unsigned long long)s->cap,
                     (unsigned long long)least);
}

static int check(const struct ring_shape *s, struct error *err)
{
    if (s->cap < 1 || s->cap > RING_CAP_MAX)
        return error_set(err, E_INVALID,
                         "field 'props.ring.cap' is 1 to %llu samples: give it as cap=100",
                         (unsigned long long)RING_CAP_MAX);
    if (s->keep > RING_SHAPE_KEEP_MAX)
        return error_set(err, E_INVALID, "field 'props.ring.keep' is 0 to %llu generations",
                         (unsigned long long)RING_SHAPE_KEEP_MAX);
    if (s->bytes_max < RING_BYTES_MAX_LEAST || s->bytes_max > INT64_MAX)
        return error_set(err, E_INVALID, "field 'props.ring.bytes_max' is at least 1 MiB");
    return check_room(s, err);
}

int ring_shape_from_json(json_t *value, struct ring_shape *out, struct error *err)
{
    int code;
    if (json_is_string(value))
        code = from_text(json_string_value(value), out, err);
    else if (json_is_object(value))
        code = from_object(value, out, err);
    else
        code = error_set(err, E_JSON,
                         "field 'props.ring' is neither an object nor a text as cap=100,keep=1");
    return code != 0 ? code : check(out, err);
}

json_t *ring_shape_to_json(const struct ring_shape *shape)
{
    return json_pack("{s:I, s:I, s:I}", "cap", (json_int_t)shape->cap, "keep",
                     (json_int_t)shape->keep, "bytes_max", (json_int_t)shape->bytes_max);
}
