#include "common/param.h"

#include <errno.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/pages/roff.h"
#include "common/suggest.h"

/* A value of any type, before it is stored. */
struct param_value {
    uint64_t number; /* size, duration, count; 0 or 1 for boolean */
    const char *text;
};

/* As shown in the table for docs/, and in the help. */
static const char *const param_type_names[] = {
    [PARAM_size] = "size",       [PARAM_duration] = "duration", [PARAM_count] = "count",
    [PARAM_percent] = "percent", [PARAM_boolean] = "boolean",   [PARAM_text] = "text",
};
static const char *const param_type_units[] = {
    [PARAM_size] = "SIZE",       [PARAM_duration] = "TIME",  [PARAM_count] = "N",
    [PARAM_percent] = "PERCENT", [PARAM_boolean] = "yes|no", [PARAM_text] = "TEXT",
};

static const struct param_row *param_find(const struct param_row *rows, const char *name)
{
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        if (strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

/* "95%" or "95" */
static int percent_parse(const char *text, uint64_t *out, struct error *err)
{
    size_t len = strlen(text);
    _cleanup_free_ char *digits = xstrndup(text, len > 0 && text[len - 1] == '%' ? len - 1 : len);
    uint64_t number = 0;
    if (parse_u64(digits, &number, NULL) != 0 || number > 100)
        return error_set(err, E_INVALID, "'%s' is not a percentage: 0%% to 100%%", text);
    *out = number;
    return 0;
}

static int value_parse(enum param_type type, const char *text, struct param_value *v,
                       struct error *err)
{
    bool flag = false;
    int rc = 0;
    switch (type) {
    case PARAM_size:
        return parse_size(text, &v->number, err);
    case PARAM_duration:
        return parse_duration_ms(text, &v->number, err);
    case PARAM_count:
        return parse_u64(text, &v->number, err);
    case PARAM_percent:
        return percent_parse(text, &v->number, err);
    case PARAM_boolean:
        rc = parse_bool(text, &flag, err);
        v->number = flag;
        return rc;
    case PARAM_text:
        v->text = text;
        return 0;
    }
    return error_set(err, E_INTERNAL, "parameter type %d", (int)type);
}

/* A bound of the table, "" being none.  Numbers end at INT64_MAX, for they also travel as JSON.
 * A bound that does not parse is a bug, which params_defaults finds at the start. */
static int bound_parse(const struct param_row *row, const char *bound, uint64_t none, uint64_t *out,
                       struct error *err)
{
    struct param_value v = {.number = none};
    int rc = bound[0] != '\0' ? value_parse(row->type, bound, &v, err) : 0;
    *out = v.number;
    return rc;
}

/* The bounds that the table has: nobody means the largest number that fits. */
static int out_of_bounds(const struct param_row *row, const char *text, bool above,
                         struct error *err)
{
    bool both = row->min_text[0] != '\0' && row->max_text[0] != '\0';
    if (row->max_text[0] == '\0' && above)
        return error_set(err, E_INVALID, "'%s' is too large", text);
    return error_set(err, E_INVALID, "'%s' is out of bounds: %s%s%s%s%s", text,
                     row->min_text[0] != '\0' ? "at least " : "", row->min_text, both ? ", " : "",
                     row->max_text[0] != '\0' ? "at most " : "", row->max_text);
}

static int value_check(const struct param_row *row, const struct param_value *v, const char *text,
                       struct error *err)
{
    uint64_t min = 0, max = 0;
    if (row->type == PARAM_text || row->type == PARAM_boolean)
        return 0;
    int rc = bound_parse(row, row->min_text, 0, &min, err);
    if (rc == 0)
        rc = bound_parse(row, row->max_text, INT64_MAX, &max, err);
    if (rc == 0 && (v->number < min || v->number > max))
        rc = out_of_bounds(row, text, v->number > max, err);
    return rc;
}

static void value_store(const struct param_row *row, void *values, const struct param_value *v)
{
    char *field = (char *)values + row->offset;
    if (row->type == PARAM_text) {
        char *copy = xstrdup(v->text);
        char *old;
        memcpy(&old, field, sizeof old);
        memcpy(field, &copy, sizeof copy);
        free(old);
    } else if (row->type == PARAM_boolean) {
        __atomic_store_n((bool *)(void *)field, v->number != 0, __ATOMIC_RELAXED);
    } else {
        __atomic_store_n((uint64_t *)(void *)field, v->number, __ATOMIC_RELAXED);
    }
}

static struct param_value value_load(const struct param_row *row, const void *values)
{
    const char *field = (const char *)values + row->offset;
    struct param_value v = {0};
    if (row->type == PARAM_text)
        memcpy(&v.text, field, sizeof v.text);
    else if (row->type == PARAM_boolean)
        v.number = param_live(*(const bool *)(const void *)field);
    else
        v.number = param_live(*(const uint64_t *)(const void *)field);
    return v;
}

static int value_take(const struct param_row *row, const char *text, struct param_value *v,
                      struct error *err)
{
    struct param_value less;
    size_t digits = strspn(text, "0123456789");
    int rc = value_parse(row->type, text, v, err);
    /* It would parse if its number were smaller. */
    if (rc != 0 && digits > 0 && row->max_text[0] != '\0' &&
        value_parse(row->type, text + digits - 1, &less, NULL) == 0)
        return out_of_bounds(row, text, true, err);
    return rc == 0 ? value_check(row, v, text, err) : rc;
}

static int row_set(const struct param_row *row, void *values, const char *text, const char *source,
                   struct error *err)
{
    struct param_value v = {0};
    int rc = value_take(row, text, &v, err);
    if (rc != 0)
        return error_wrap(err, "%s: parameter '%s'", source, row->name);
    value_store(row, values, &v);
    return 0;
}

static struct suggestion meant_by(const struct param_row *rows, const char *name)
{
    struct suggestion best = SUGGESTION_INIT;
    for (const struct param_row *row = rows; row->name != NULL; row++)
        suggest(&best, name, row->name);
    return best;
}

/* E_NOT_FOUND, and what may have been meant. */
static int unknown(const struct param_row *rows, const char *name, struct error *err)
{
    struct suggestion best = meant_by(rows, name);
    return error_set(err, E_NOT_FOUND, "no parameter is called '%.64s'%s%s%s", name,
                     best.text != NULL ? "; did you mean '" : "",
                     best.text != NULL ? best.text : "", best.text != NULL ? "'?" : "");
}

int params_set(const struct param_row *rows, void *values, const char *name, const char *text,
               const char *source, struct error *err)
{
    const struct param_row *row = param_find(rows, name);
    if (row != NULL)
        return row_set(row, values, text, source, err);
    unknown(rows, name, err);
    return error_recode(err, E_INVALID, "%s", source);
}

int params_defaults(const struct param_row *rows, void *values, struct error *err)
{
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        int rc = row_set(row, values, row->default_text, "default", err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* The text of a JSON value in the notation of the command line; NULL where it has none. */
static char *json_value_text(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return xstrdup(json_string_value(value));
    case JSON_INTEGER:
        return xprintf("%lld", (long long)json_integer_value(value));
    case JSON_TRUE:
        return xstrdup("true");
    case JSON_FALSE:
        return xstrdup("false");
    default:
        return NULL;
    }
}

int params_from_json(const struct param_row *rows, void *values, json_t *obj, const char *source,
                     struct error *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(obj))
        return error_set(err, E_INVALID, "%s: not a JSON object", source);
    json_object_foreach(obj, name, value)
    {
        _cleanup_free_ char *text = json_value_text(value);
        if (text == NULL)
            return error_set(err, E_INVALID,
                             "%s: parameter '%s' is neither text nor integer nor boolean", source,
                             name);
        int rc = params_set(rows, values, name, text, source, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static char *env_name(const char *name)
{
    char *env = xprintf("DFC_%s", name);
    for (char *c = env; *c != '\0'; c++) {
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    }
    return env;
}

int params_from_env(const struct param_row *rows, void *values, struct error *err)
{
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        _cleanup_free_ char *name = env_name(row->name);
        const char *text = getenv(name);
        _cleanup_free_ char *source = xprintf("environment %s", name);
        int rc = text != NULL ? row_set(row, values, text, source, err) : 0;
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int params_from_file(const struct param_row *rows, void *values, const char *path,
                            struct error *err)
{
    json_error_t why;
    errno = 0;
    _cleanup_json_ json_t *obj = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (obj == NULL && json_error_code(&why) == json_error_cannot_open_file)
        return error_errno(err, errno, "open '%s'", path);
    if (obj == NULL)
        return error_set(err, E_INVALID, "%s: line %d, column %d: %s", path, why.line, why.column,
                         why.text);
    return params_from_json(rows, values, obj, path, err);
}

/* "http-body-memory" */
static void put_dashed(struct buf *out, const char *name)
{
    for (; *name != '\0'; name++)
        buf_putc(out, *name == '_' ? '-' : *name);
}

/* One option of the command line: "--name=value", "--name value", or "--name" of a boolean. */
struct option {
    char *typed;       /* "--mountpath-lost-ok", as the user wrote it */
    char *name;        /* "mountpath_lost_ok" */
    const char *value; /* NULL where there is none */
};

static void option_done(struct option *o)
{
    free(o->typed);
    free(o->name);
}

/* Is the next word the option's value?  A boolean needs none, and another option is none. */
static bool takes_next(const struct param_row *rows, const char *name, const char *next)
{
    const struct param_row *row = param_find(rows, name);
    bool boolean = row != NULL && row->type == PARAM_boolean;
    return next != NULL && !(boolean && strncmp(next, "--", 2) == 0);
}

static int option_take(const struct param_row *rows, int argc, char **argv, int *at,
                       struct option *o, struct error *err)
{
    const char *word = argv[*at];
    if (strncmp(word, "--", 2) != 0 || word[2] == '\0')
        return error_set(err, E_INVALID, "command line: '%s' is not an option", word);
    const char *equals = strchr(word, '=');
    o->typed = xstrndup(word, equals != NULL ? (size_t)(equals - word) : strlen(word));
    o->name = xstrdup(o->typed + 2);
    for (char *c = o->name; *c != '\0'; c++) {
        if (*c == '-')
            *c = '_';
    }
    *at += 1;
    if (equals != NULL)
        o->value = equals + 1;
    else if (takes_next(rows, o->name, *at < argc ? argv[*at] : NULL))
        o->value = argv[(*at)++];
    return 0;
}

typedef int option_fn(const struct param_row *rows, void *values, const struct option *o,
                      struct error *err);

static int lacks_value(const struct option *o, struct error *err)
{
    return error_set(err, E_INVALID, "command line: '%s' lacks a value", o->typed);
}

static int option_config(const struct param_row *rows, void *values, const struct option *o,
                         struct error *err)
{
    if (strcmp(o->name, "config") != 0)
        return 0;
    return o->value != NULL ? params_from_file(rows, values, o->value, err) : lacks_value(o, err);
}

/* "; did you mean --public-port?" */
static char *option_hint(const struct param_row *rows, const char *name)
{
    struct suggestion best = meant_by(rows, name);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    if (best.text != NULL) {
        buf_puts(&text, "; did you mean --");
        put_dashed(&text, best.text);
        buf_putc(&text, '?');
    }
    return xstrdup(buf_str(&text));
}

static int option_set(const struct param_row *rows, void *values, const struct option *o,
                      struct error *err)
{
    if (strcmp(o->name, "config") == 0)
        return 0;
    const struct param_row *row = param_find(rows, o->name);
    if (row == NULL) {
        _cleanup_free_ char *hint = option_hint(rows, o->name);
        return error_set(err, E_INVALID, "command line: there is no option '%.64s'%s", o->typed,
                         hint);
    }
    if (o->value == NULL && row->type != PARAM_boolean)
        return lacks_value(o, err);
    struct param_value v = {0};
    int rc = value_take(row, o->value != NULL ? o->value : "true", &v, err);
    if (rc != 0)
        return error_wrap(err, "command line: %s", o->typed);
    value_store(row, values, &v);
    return 0;
}

static int options_each(const struct param_row *rows, void *values, int argc, char **argv,
                        option_fn *fn, struct error *err)
{
    for (int at = 1; at < argc;) {
        _cleanup_(option_done)
        struct option o = {0};
        int rc = option_take(rows, argc, argv, &at, &o, err);
        if (rc == 0)
            rc = fn(rows, values, &o, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static bool options_ask_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return true;
    }
    return false;
}

int params_load(const struct param_row *rows, void *values, int argc, char **argv, _Bool *help,
                struct error *err)
{
    *help = options_ask_help(argc, argv);
    int rc = params_defaults(rows, values, err);
    if (rc != 0 || *help)
        return rc;
    rc = options_each(rows, values, argc, argv, option_config, err);
    if (rc == 0)
        rc = params_from_env(rows, values, err);
    if (rc == 0)
        rc = options_each(rows, values, argc, argv, option_set, err);
    return rc;
}

static void mark_source(const struct param_row *rows, enum param_source *sources, const char *name,
                        enum param_source source)
{
    const struct param_row *row = param_find(rows, name);
    if (row != NULL && sources[row - rows] < source)
        sources[row - rows] = source;
}

static int mark_option(const struct param_row *rows, void *sources, const struct option *o,
                       struct error *err)
{
    (void)err;
    mark_source(rows, sources, o->name, PARAM_FROM_COMMAND_LINE);
    if (strcmp(o->name, "config") != 0 || o->value == NULL)
        return 0;
    _cleanup_json_ json_t *obj = json_load_file(o->value, JSON_REJECT_DUPLICATES, NULL);
    const char *name;
    json_t *value;
    json_object_foreach(obj, name, value) mark_source(rows, sources, name, PARAM_FROM_FILE);
    return 0;
}

void params_sources(const struct param_row *rows, int argc, char **argv, enum param_source *sources)
{
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        _cleanup_free_ char *name = env_name(row->name);
        sources[row - rows] = getenv(name) != NULL ? PARAM_FROM_ENVIRONMENT : PARAM_FROM_DEFAULT;
    }
    (void)options_each(rows, sources, argc, argv, mark_option, NULL);
}

void params_free(const struct param_row *rows, void *values)
{
    const struct param_value none = {0};
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        if (row->type == PARAM_text)
            value_store(row, values, &none);
    }
}

static json_t *value_json(const struct param_row *row, const struct param_value *v)
{
    if (row->type == PARAM_text)
        return json_string(v->text);
    return row->type == PARAM_boolean ? json_boolean(v->number)
                                      : json_integer((json_int_t)v->number);
}

json_t *params_json(const struct param_row *rows, const void *values)
{
    json_t *obj = json_object();
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        struct param_value v = value_load(row, values);
        json_object_set_new(obj, row->name, value_json(row, &v));
    }
    return obj;
}

static bool is_live(const char *const *live, const char *name)
{
    for (; live != NULL && *live != NULL; live++) {
        if (strcmp(*live, name) == 0)
            return true;
    }
    return false;
}

json_t *params_describe(const struct param_row *rows, const void *values, const char *const *live)
{
    json_t *list = json_array();
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        struct param_value v = value_load(row, values);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:b, s:s}", "name", row->name, "type",
                            param_type_names[row->type], "value", value_json(row, &v), "default",
                            row->default_text, "min", row->min_text, "max", row->max_text, "live",
                            (int)is_live(live, row->name), "help", row->help));
    }
    return list;
}

static bool same_value(const struct param_row *row, const void *a, const void *b)
{
    struct param_value x = value_load(row, a), y = value_load(row, b);
    return row->type == PARAM_text ? strcmp(x.text, y.text) == 0 : x.number == y.number;
}

void params_take(const struct param_row *rows, void *values, const void *last, const void *now,
                 const char *const *live,
                 void (*fn)(void *ctx, const struct param_row *row, _Bool taken), void *ctx)
{
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        if (same_value(row, last, now))
            continue;
        bool taken = is_live(live, row->name) && row->type != PARAM_text;
        struct param_value v = value_load(row, now);
        if (taken)
            value_store(row, values, &v);
        fn(ctx, row, taken);
    }
}

int params_set_live(const struct param_row *rows, void *values, const char *const *live,
                    const char *name, const char *text, struct error *err)
{
    const struct param_row *row = param_find(rows, name);
    if (row == NULL)
        return unknown(rows, name, err);
    if (is_live(live, name) && row->type != PARAM_text) {
        struct param_value v = {0};
        int rc = value_take(row, text, &v, err);
        if (rc != 0)
            return error_wrap(err, "parameter '%s'", name);
        value_store(row, values, &v);
        return 0;
    }
    _cleanup_(buf_done)
    struct buf option = BUF_INIT;
    put_dashed(&option, name);
    return error_set(err, E_UNSUPPORTED,
                     "parameter '%s' does not change while the daemon runs: start it again with "
                     "--%s=…",
                     name, buf_str(&option));
}

static void put_bounds(struct buf *out, const struct param_row *row)
{
    if (row->min_text[0] != '\0')
        buf_printf(out, ", at least %s", row->min_text);
    if (row->max_text[0] != '\0')
        buf_printf(out, ", at most %s", row->max_text);
}

void params_help(const struct param_row *rows, struct buf *out)
{
    buf_puts(out, "  --config=FILE\n        JSON object with parameters by name\n");
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        buf_puts(out, "  --");
        put_dashed(out, row->name);
        buf_printf(out, row->type == PARAM_boolean ? "[=%s]\n" : "=%s\n",
                   param_type_units[row->type]);
        buf_printf(out, "        %s\n", row->help);
        buf_printf(out, "        default %s", row->default_text[0] ? row->default_text : "empty");
        put_bounds(out, row);
        buf_putc(out, '\n');
    }
}

void params_man(const struct param_row *rows, struct buf *out)
{
    roff_item(out, "--config=FILE");
    roff_text(out, "JSON object with parameters by name");
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        buf_puts(&text, "--");
        put_dashed(&text, row->name);
        buf_printf(&text, row->type == PARAM_boolean ? "[=%s]" : "=%s",
                   param_type_units[row->type]);
        roff_item(out, buf_str(&text));
        roff_text(out, row->help);
        buf_clear(&text);
        buf_printf(&text, "(default %s", row->default_text[0] ? row->default_text : "empty");
        put_bounds(&text, row);
        buf_putc(&text, ')');
        roff_text(out, buf_str(&text));
    }
}

void params_markdown(const struct param_row *rows, struct buf *out)
{
    buf_puts(out, "| parameter | type | default | min | max | meaning |\n");
    buf_puts(out, "|---|---|---|---|---|---|\n");
    for (const struct param_row *row = rows; row->name != NULL; row++) {
        buf_putc(out, '|');
        buf_put_cell(out, row->name, "`");
        buf_put_cell(out, param_type_names[row->type], "");
        buf_put_cell(out, row->default_text, "`");
        buf_put_cell(out, row->min_text, "`");
        buf_put_cell(out, row->max_text, "`");
        buf_put_cell(out, row->help, "");
        buf_putc(out, '\n');
    }
}
