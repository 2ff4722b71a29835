/* sort start. */
#include "api/ctl/commands.h"

#include "api/ctl/job_wait.h"
#include "api/ctl/spec.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

int sort_start(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    _cleanup_json_ json_t *spec = NULL;
    _cleanup_free_ char *id = NULL;
    if (spec_read(args->words[0], &spec, &e) != 0 || spec_apply_flags(spec, args, &e) != 0)
        return ctl_fail_common(ctl, &e, e.code == E_IO ? EXIT_FAILED : EXIT_USAGE);
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    _cleanup_free_ char *text = json_text(spec);
    if (dfc_sort_start(ctl->client, text, &id, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "sort");
    return job_started(ctl, args, id);
}
