#include "proxy/jobs/bare_job.h"

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/jobs/job_kind.h"
#include "proxy/jobs/job_make.h"
#include "xaction/kinds.h"

static int refuse_kind(const char *name, struct error *err)
{
    _cleanup_(buf_done)
    struct buf bare = BUF_INIT;
    const struct xaction_kind *k;
    for (size_t i = 0; (k = xaction_kind_at(i)) != NULL; i++) {
        if (k->bare)
            buf_printf(&bare, "%s%s", bare.len > 0 ? " or " : "", k->shown);
    }
    return error_set(err, E_INVALID,
                     "field 'name': '%.64s' is no kind of job that is started by its name: %s",
                     name, buf_str(&bare));
}

static int make_spec(const struct job_kind *k, json_t *value, json_t **spec, struct error *err)
{
    if (k->spec != NULL)
        return k->spec(value, spec, err);
    return json_object_size(value) == 0
               ? 0
               : error_set(err, E_INVALID, "field 'value': a job of the kind '%s' takes none",
                           k->name);
}

/* The value may name what the documents do not have. */
static int check_fits(const struct job_kind *k, const struct cluster_state *s, struct job **job,
                      struct error *err)
{
    int code = k->fits != NULL ? k->fits(*job, s, err) : 0;
    if (code != 0)
        job_unref(steal(*job));
    return code;
}

int bare_job_make(const struct cluster_state *s, const char *data, size_t len, int64_t wall_ms,
                  struct job **out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_json_ json_t *none = json_object();
    _cleanup_json_ json_t *spec = NULL;
    json_t *value = NULL;
    const char *name = NULL;
    int code = json_parse_action(data, len, "start", &doc, &name, &value, err);
    if (code != 0)
        return code;
    const struct xaction_kind *kind = xaction_kind_asked(name);
    if (kind == NULL || !kind->bare)
        return refuse_kind(name, err);
    const struct job_kind *k = job_kind_find(kind->name);
    if ((code = make_spec(k, value != NULL ? value : none, &spec, err)) != 0)
        return code;
    code =
        k->make != NULL ? k->make(s, wall_ms, out, err) : job_make(s, k->name, wall_ms, out, err);
    if (code != 0)
        return code;
    if (spec != NULL) {
        json_decref((*out)->spec);
        (*out)->spec = steal(spec);
    }
    return check_fits(k, s, out, err);
}
