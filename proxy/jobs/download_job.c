/* The primary's part of the job `download` (xaction/download_spec.h). */
#include "common/mem.h"
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"
#include "xaction/download_spec.h"

static int check(json_t *value, char **description, struct error *err)
{
    _cleanup_(download_spec_freep)
    struct download_spec *spec = NULL;
    int code = download_spec_parse(value, &spec, err);
    if (code == 0)
        *description = xstrdup(spec->description);
    return code;
}

const struct job_kind download_kind = {
    .name = "download",
    .objects = &(const struct objects_rule){.all = true,
                                            .fills = true,
                                            .lenient = true,
                                            .instead = "download into a bucket without one",
                                            .check = check},
    .fits = objects_job_fits,
    .judge = objects_view_outcome,
};
