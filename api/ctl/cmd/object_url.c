/* object url. */
#include "api/ctl/commands.h"

#include "api/ctl/names/name.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

enum { LIFE_MS = 10 * 60 * 1000 };

static uint64_t seconds_of(const struct args *args)
{
    uint64_t ms = args->given[F_for] ? args->number[F_for] : LIFE_MS;
    return (ms + 999) / 1000;
}

static int print(struct ctl *ctl, const char *text)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, text, &doc);
    const char *url = json_string_value(json_object_get(doc, "url"));
    if (code == EXIT_OK && ctl->json)
        ctl_print_json(ctl, steal(doc));
    else if (code == EXIT_OK)
        fprintf(ctl->out, "%s\n", url != NULL ? url : "");
    return code;
}

int object_url(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    struct error e = ERROR_INIT;
    const char *method = args->given[F_method] ? args->text[F_method] : "GET";
    _cleanup_(object_name_done)
    struct object_name n = {0};
    _cleanup_free_ char *text = NULL;
    if (object_name_parse(args->words[0], &n, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (n.key[0] == '\0')
        return ctl_usage(ctl, "'%s' names no object: expected BUCKET/KEY", args->words[0]);
    if (dfc_object_url(ctl->client, n.bucket, n.key, method, seconds_of(args), &text, &err) !=
        DFC_OK)
        return ctl_fail(ctl, &err, "url");
    return print(ctl, text);
}
