#include "api/ctl/yaml_json.h"

#include <yaml.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/parse.h"
#include "common/utf8.h"

#define DEPTH_MAX 32

struct reader {
    yaml_parser_t parser;
    struct error *err;
};

static int refuse(struct reader *r, const yaml_mark_t *mark, const char *what)
{
    return error_set(r->err, E_SPEC, "line %zu, column %zu: %s", mark->line + 1, mark->column + 1,
                     what);
}

static int next(struct reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return 0;
    const char *problem = r->parser.problem != NULL ? r->parser.problem : "not YAML";
    return refuse(r, &r->parser.problem_mark, problem);
}

/* ---- scalars ---- */

static bool one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(text, *words) == 0)
            return true;
    }
    return false;
}

static bool is_decimal(const char *text)
{
    if (*text == '-' || *text == '+')
        text++;
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && text[digits] == '\0' && (text[0] != '0' || digits == 1);
}

static bool is_real(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "+-0123456789.eE")] == '\0' &&
           strpbrk(text, "0123456789") != NULL && strpbrk(text, ".eE") != NULL;
}

static json_t *plain_value(const char *text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    int64_t whole;
    double real;
    if (one_of(text, nulls))
        return json_null();
    if (one_of(text, trues))
        return json_true();
    if (one_of(text, falses))
        return json_false();
    if (is_decimal(text) && parse_i64(text[0] == '+' ? text + 1 : text, &whole, NULL) == 0)
        return json_integer(whole);
    if (is_real(text) && parse_double(text, &real, NULL) == 0)
        return json_real(real);
    return json_string(text);
}

static int scalar(struct reader *r, const yaml_event_t *e, json_t **out)
{
    const char *text = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    if (!utf8_valid(text, len))
        return refuse(r, &e->start_mark, "the text is not UTF-8, or has a NUL");
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    *out = plain ? plain_value(text) : json_stringn(text, len);
    return 0;
}

/* ---- collections ---- */

static int value(struct reader *r, yaml_event_t *event, unsigned depth, json_t **out);

static int sequence(struct reader *r, unsigned depth, json_t **out)
{
    _cleanup_json_ json_t *list = json_array();
    for (;;) {
        yaml_event_t e;
        json_t *item = NULL;
        int rc = next(r, &e);
        if (rc != 0)
            return rc;
        bool end = e.type == YAML_SEQUENCE_END_EVENT;
        rc = end ? 0 : value(r, &e, depth + 1, &item);
        yaml_event_delete(&e);
        if (rc != 0)
            return rc;
        if (end)
            break;
        json_array_append_new(list, item);
    }
    *out = steal(list);
    return 0;
}

static int mapping_key(struct reader *r, const yaml_event_t *e, json_t *map)
{
    if (e->type != YAML_SCALAR_EVENT)
        return refuse(r, &e->start_mark, "a key must be a text");
    const char *key = (const char *)e->data.scalar.value;
    if (!utf8_valid(key, e->data.scalar.length))
        return refuse(r, &e->start_mark, "the key is not UTF-8, or has a NUL");
    if (json_object_get(map, key) != NULL)
        return refuse(r, &e->start_mark, "the key occurs here for the second time");
    return 0;
}

static int mapping_pair(struct reader *r, yaml_event_t *key, unsigned depth, json_t *map)
{
    yaml_event_t e;
    json_t *item = NULL;
    int rc = mapping_key(r, key, map);
    if (rc == 0)
        rc = next(r, &e);
    if (rc != 0)
        return rc;
    rc = value(r, &e, depth + 1, &item);
    yaml_event_delete(&e);
    if (rc == 0)
        json_object_set_new(map, (const char *)key->data.scalar.value, item);
    return rc;
}

static int mapping(struct reader *r, unsigned depth, json_t **out)
{
    _cleanup_json_ json_t *map = json_object();
    for (;;) {
        yaml_event_t e;
        int rc = next(r, &e);
        if (rc != 0)
            return rc;
        bool end = e.type == YAML_MAPPING_END_EVENT;
        rc = end ? 0 : mapping_pair(r, &e, depth, map);
        yaml_event_delete(&e);
        if (rc != 0)
            return rc;
        if (end)
            break;
    }
    *out = steal(map);
    return 0;
}

static bool has_anchor_or_tag(const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return e->data.scalar.anchor != NULL || e->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return e->data.sequence_start.anchor != NULL || e->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return e->data.mapping_start.anchor != NULL || e->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

static int value(struct reader *r, yaml_event_t *e, unsigned depth, json_t **out)
{
    if (depth > DEPTH_MAX)
        return refuse(r, &e->start_mark, "nested too deeply");
    if (has_anchor_or_tag(e))
        return refuse(r, &e->start_mark, "anchors and tags are not understood");
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return scalar(r, e, out);
    case YAML_SEQUENCE_START_EVENT:
        return sequence(r, depth, out);
    case YAML_MAPPING_START_EVENT:
        return mapping(r, depth, out);
    case YAML_ALIAS_EVENT:
        return refuse(r, &e->start_mark, "aliases are not understood");
    default:
        return refuse(r, &e->start_mark, "a value is missing");
    }
}

/* ---- the document ---- */

static int skip(struct reader *r, yaml_event_type_t expected, const char *otherwise)
{
    yaml_event_t e;
    int rc = next(r, &e);
    if (rc != 0)
        return rc;
    if (e.type != expected)
        rc = refuse(r, &e.start_mark, otherwise);
    yaml_event_delete(&e);
    return rc;
}

static int document(struct reader *r, json_t **out)
{
    yaml_event_t e;
    int rc = skip(r, YAML_STREAM_START_EVENT, "not YAML");
    if (rc == 0)
        rc = skip(r, YAML_DOCUMENT_START_EVENT, "the document is empty");
    if (rc == 0)
        rc = next(r, &e);
    if (rc != 0)
        return rc;
    rc = value(r, &e, 0, out);
    yaml_event_delete(&e);
    if (rc == 0)
        rc = skip(r, YAML_DOCUMENT_END_EVENT, "not YAML");
    if (rc == 0)
        rc = skip(r, YAML_STREAM_END_EVENT, "a second document begins");
    return rc;
}

int yaml_json_parse(const char *text, size_t len, json_t **out, struct error *err)
{
    struct error own;
    struct reader r = {.err = err != NULL ? err : &own};
    _cleanup_json_ json_t *doc = NULL;
    if (!yaml_parser_initialize(&r.parser))
        return error_set(r.err, E_NOMEM, "no memory for reading YAML");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    int rc = document(&r, &doc);
    yaml_parser_delete(&r.parser);
    if (rc == 0)
        *out = steal(doc);
    return rc;
}
