#include "proxy/jobs/bare_job.h"

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/jobs/job_make.h"
#include "proxy/jobs/standing_jobs.h"
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

static int get_rate(json_t *value, uint64_t *rate, struct error *err)
{
    int code = json_get_size(value, "value", "rate", rate, err);
    if (code == 0 && *rate > INT64_MAX)
        code = error_set(err, E_INVALID, "field 'value.rate' is too large");
    return code;
}

static int validate_spec(json_t *value, json_t **spec, struct error *err)
{
    static const char *const fields[] = {"checksums", "rate", NULL};
    bool checksums = false;
    uint64_t rate = VALIDATE_RATE_DEFAULT;
    int code = json_only_fields(value, "value", fields, err);
    if (code == 0)
        code = json_get_bool(value, "value", "checksums", &checksums, err);
    if (code == 0)
        code = get_rate(value, &rate, err);
    if (code == 0)
        *spec =
            json_pack("{s:b, s:I}", "checksums", (int)checksums, "rate_bytes_s", (json_int_t)rate);
    return code;
}

static int scrub_spec(json_t *value, json_t **spec, struct error *err)
{
    static const char *const fields[] = {"rate", NULL};
    uint64_t rate = UINT64_MAX;
    int code = json_only_fields(value, "value", fields, err);
    if (code == 0 && json_object_get(value, "rate") != NULL)
        code = get_rate(value, &rate, err);
    if (code == 0)
        *spec = rate == UINT64_MAX ? json_object()
                                   : json_pack("{s:I}", "rate_bytes_s", (json_int_t)rate);
    return code;
}

/* The kinds that take a value, and what becomes of it. */
static const struct {
    const char *kind;
    int (*spec)(json_t *value, json_t **spec, struct error *err);
} takers[] = {{"validate", validate_spec}, {"scrub", scrub_spec}};

static int make_spec(const char *kind, json_t *value, json_t **spec, struct error *err)
{
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
        if (strcmp(takers[i].kind, kind) == 0)
            return takers[i].spec(value, spec, err);
    }
    return json_object_size(value) == 0
               ? 0
               : error_set(err, E_INVALID, "field 'value': a job of the kind '%s' takes none",
                           kind);
}

static int make(const struct cluster_state *s, const char *kind, int64_t wall_ms, struct job **out,
                struct error *err)
{
    const struct standing_job *standing = standing_job_find(kind);
    if (standing != NULL && standing->make != NULL)
        return standing->make(s, wall_ms, out, err);
    return job_make(s, kind, wall_ms, out, err);
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
    if ((code = make_spec(kind->name, value != NULL ? value : none, &spec, err)) != 0 ||
        (code = make(s, kind->name, wall_ms, out, err)) != 0)
        return code;
    if (spec != NULL) {
        json_decref((*out)->spec);
        (*out)->spec = steal(spec);
    }
    return 0;
}
