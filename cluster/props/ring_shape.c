#include "cluster/props/ring_shape.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

/* Properties of two words: the first one is what a ring has without it. */
static const struct choice {
    const char *name;
    const char *words[2];
    size_t offset;
} choices[] = {
    {"swap", {"full", "consumed"}, offsetof(struct ring_shape, consumed)},
    {"policy", {"block", "drop"}, offsetof(struct ring_shape, drops)},
};
enum { CHOICES = sizeof choices / sizeof *choices };

static bool *field_of(const struct choice *c, struct ring_shape *s)
{
    return (bool *)((char *)s + c->offset);
}

static int set_choice(const struct choice *c, const char *word, struct ring_shape *out,
                      struct error *err)
{
    const bool is_second = strcmp(word, c->words[1]) == 0;
    if (!is_second && strcmp(word, c->words[0]) != 0)
        return error_set(err, E_INVALID, "field 'props.ring.%s' is %s or %s, not '%.40s'", c->name,
                         c->words[0], c->words[1], word);
    *field_of(c, out) = is_second;
    return 0;
}

static int set_field(const char *name, const char *value, struct ring_shape *out, struct error *err)
{
    int code = E_INVALID;
    for (size_t i = 0; i < CHOICES; i++) {
        if (strcmp(name, choices[i].name) == 0)
            return set_choice(&choices[i], value, out, err);
    }
    if (strcmp(name, "cap") == 0)
        code = parse_u64(value, &out->cap, NULL);
    else if (strcmp(name, "keep") == 0)
        code = parse_u64(value, &out->keep, NULL);
    else if (strcmp(name, "bytes_max") == 0)
        code = parse_size(value, &out->bytes_max, NULL);
    return code == 0 ? 0
                     : error_set(err, E_INVALID,
                                 "field 'props.ring': '%.40s=%.40s' is none of cap=N, keep=N, "
                                 "bytes_max=SIZE, swap=full|consumed and policy=block|drop",
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
    static const char *const fields[] = {"cap", "keep", "bytes_max", "swap", "policy", NULL};
    int code = json_only_fields(value, "props.ring", fields, err);
    if (code == 0)
        code = json_get_u64(value, "props.ring", "cap", &out->cap, err);
    if (code == 0)
        code = json_get_u64(value, "props.ring", "keep", &out->keep, err);
    if (code == 0)
        code = json_get_size(value, "props.ring", "bytes_max", &out->bytes_max, err);
    for (size_t i = 0; i < CHOICES && code == 0; i++) {
        const char *word = NULL;
        code = json_get_str(value, "props.ring", choices[i].name, &word, err);
        if (code == 0 && word != NULL)
            code = set_choice(&choices[i], word, out, err);
    }
    return code;
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
    struct ring_shape s = *shape;
    json_t *doc = json_pack("{s:I, s:I, s:I}", "cap", (json_int_t)s.cap, "keep", (json_int_t)s.keep,
                            "bytes_max", (json_int_t)s.bytes_max);
    for (size_t i = 0; i < CHOICES; i++) {
        if (*field_of(&choices[i], &s)) /* earlier releases refuse a field that they do not know */
            json_object_set_new(doc, choices[i].name, json_string(choices[i].words[1]));
    }
    return doc;
}
