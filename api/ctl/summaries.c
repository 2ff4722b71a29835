#include "api/ctl/summaries.h"

#include "api/ctl/commands.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "-";
}

static int ask_target(struct ctl *ctl, const char *what, json_t *node, summary_fn *fn, void *ctx,
                      json_t *missing)
{
    struct dfc_error err;
    const char *target = text_at(node, "id");
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (strcmp(text_at(node, "state"), "unreachable") == 0) {
        ctl_remark(ctl, "target '%s' is unreachable: its objects are not counted", target);
    } else if (dfc_node_show(ctl->client, target, what, &text, &err) != DFC_OK) {
        ctl_remark(ctl, "target '%s' does not report its objects: %s", target, err.message);
    } else {
        int code = ctl_parse(ctl, text, &doc);
        if (code == EXIT_OK)
            fn(ctx, target, doc);
        return code;
    }
    json_array_append_new(missing, json_string(target));
    return EXIT_OK;
}

int summaries_ask(struct ctl *ctl, const char *what, summary_fn *fn, void *ctx, json_t *missing)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_cluster(ctl, NULL, &doc);
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(doc, "nodes"), i, n)
    {
        if (code == EXIT_OK && strcmp(text_at(n, "role"), "target") == 0)
            code = ask_target(ctl, what, n, fn, ctx, missing);
    }
    return code;
}
