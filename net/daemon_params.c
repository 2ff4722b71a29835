#include "net/daemon_params.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/daemon_sources.h"

json_t *daemon_params_json(const struct daemon_params *p)
{
    json_t *list = params_describe(p->rows, p->values, p->live);
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        json_object_set_new(one, "source", json_string(daemon_sources_name(p->sources, i)));
        if (strcmp(json_string_value(json_object_get(one, "name")), "log_level") != 0)
            continue;
        json_object_set_new(one, "value", json_string(log_level_now()));
        json_object_set_new(one, "live", json_true());
    }
    return json_pack("{s:o}", "params", list);
}

static bool is_private(const char *name)
{
    static const char *const ends[] = {"_file", "_key", "_cert", "_ca"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (len > end && strcmp(name + len - end, ends[i]) == 0)
            return true;
    }
    return false;
}

static void hide(const char *name, json_t *value)
{
    if (name != NULL && is_private(name) && json_string_length(value) > 0)
        json_string_set(value, "…");
}

void daemon_params_hide(json_t *doc)
{
    size_t i;
    const char *name;
    json_t *one;
    json_array_foreach(json_object_get(doc, "params"), i, one)
        hide(json_string_value(json_object_get(one, "name")), json_object_get(one, "value"));
    json_object_foreach(doc, name, one) hide(name, one);
}

static int set_log_level(const struct daemon_params *p, const char *text, struct error *err)
{
    enum log_level level;
    if (log_level_from_name(text, &level) != 0)
        return error_set(err, E_INVALID,
                         "parameter 'log_level': '%.64s' is none of debug, info, warn, error, off",
                         text);
    log_set_level(level);
    daemon_sources_set_elsewhere(p->sources, "log_level");
    return 0;
}

/* As it would stand on the command line. */
static int value_text(json_t *value, char **out, struct error *err)
{
    bool plain = json_is_string(value) || json_is_integer(value) || json_is_boolean(value);
    if (!plain)
        return error_set(err, E_JSON, "field 'value' must be text, an integer or a boolean");
    *out = json_is_string(value) ? xstrdup(json_string_value(value))
                                 : json_dumps(value, JSON_ENCODE_ANY);
    return 0;
}

int daemon_params_act(const struct daemon_params *p, const char *body, size_t len,
                      struct error *err)
{
    static const char *const fields[] = {"action", "name", "value", NULL};
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *text = NULL;
    const char *action;
    const char *name;
    int r;
    if ((r = json_parse(body, len, &doc, err)) != 0 ||
        (r = json_only_fields(doc, "", fields, err)) != 0 ||
        (r = json_need_str(doc, "", "action", &action, err)) != 0 ||
        (r = json_need_str(doc, "", "name", &name, err)) != 0)
        return r;
    if (strcmp(action, "setparam") != 0)
        return error_set(err, E_INVALID, "field 'action': '%.64s' is not setparam", action);
    if ((r = value_text(json_object_get(doc, "value"), &text, err)) != 0)
        return r;
    r = strcmp(name, "log_level") == 0 ? set_log_level(p, text, err)
                                       : daemon_sources_set(p->sources, name, text, err);
    if (r == 0)
        log_info("parameter changed until the end of this run", lstr("name", name),
                 lstr("value", text));
    return r;
}

void daemon_params_set(struct http_request *req, const struct daemon_params *p, const char *body,
                       size_t len)
{
    struct error err = ERROR_INIT;
    if (daemon_params_act(p, body, len, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    _cleanup_json_ json_t *doc = daemon_params_json(p);
    http_reply_json(req, 200, doc);
}
