/* sort start. */
#include "api/ctl/commands.h"

#include "api/ctl/job_wait.h"
#include "api/ctl/spec.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

static int print_started(struct ctl *ctl, const char *id)
{
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", "id", id));
    else
        fprintf(ctl->out, "%s\n", id);
    return EXIT_OK;
}

int sort_start(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    _cleanup_json_ json_t *spec = NULL;
    _cleanup_free_ char *id = NULL;
    if (spec_read(args->words[0], &spec, &e) != 0 || spec_apply_flags(spec, args, &e) != 0)
        return ctl_fail_common(ctl, &e, e.code == E_IO ? EXIT_FAILED : EXIT_USAGE);
    if (args->given[F_timeout] && !args->given[F_wait])
        return ctl_usage(ctl, "--timeout goes with --wait");
    _cleanup_free_ char *text = json_text(spec);
    if (dfc_sort_start(ctl->client, text, &id, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "sort");
    if (!args->given[F_wait])
        return print_started(ctl, id);
    ctl_remark(ctl, "%s", id);
    return job_wait_end(ctl, id, args->number[F_timeout]);
}
