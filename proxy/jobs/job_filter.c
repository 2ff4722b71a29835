#include "proxy/jobs/job_filter.h"

#include <string.h>

#include "common/buf.h"
#include "xaction/kinds.h"

static int refuse_kind(const char *kind, struct error *err)
{
    _cleanup_(buf_done)
    struct buf kinds = BUF_INIT;
    const struct xaction_kind *k;
    for (size_t i = 0; (k = xaction_kind_at(i)) != NULL; i++)
        buf_printf(&kinds, "%s%s", i > 0 ? ", " : "", k->shown);
    return error_set(err, E_INVALID, "parameter 'kind': '%.64s' is no kind of job: use one of %s",
                     kind, buf_str(&kinds));
}

int job_filter_kind(struct job_filter *f, const char *kind, struct error *err)
{
    const struct xaction_kind *known = xaction_kind_asked(kind);
    if (known == NULL)
        return refuse_kind(kind, err);
    f->kind = known->name;
    return 0;
}

static int check_text(const char *pattern, struct error *err)
{
    if (strlen(pattern) > JOB_FILTER_REGEX_MAX)
        return error_set(err, E_INVALID, "parameter 'regex' is longer than %d bytes",
                         JOB_FILTER_REGEX_MAX);
    for (const char *c = pattern; *c != '\0'; c++) {
        bool escaped = *c == '\\' && c[1] != '\0';
        if (*c == '{' || (escaped && c[1] >= '1' && c[1] <= '9'))
            return error_set(err, E_INVALID,
                             "parameter 'regex': '%s': intervals and back references are not taken",
                             pattern);
        c += escaped;
    }
    return 0;
}

int job_filter_regex(struct job_filter *f, const char *pattern, struct error *err)
{
    struct error why = ERROR_INIT;
    int code = check_text(pattern, err);
    if (code != 0)
        return code;
    f->patterns = patterns_new();
    if (patterns_add(f->patterns, pattern, strlen(pattern), 0, &why) != 0)
        return error_set(err, E_INVALID, "parameter 'regex': '%s': %s", pattern, why.message);
    f->description = pattern_search_new(f->patterns);
    return 0;
}

void job_filter_done(struct job_filter *f)
{
    pattern_search_free(f->description);
    patterns_free(f->patterns);
    *f = (struct job_filter){0};
}

static bool description_has(const struct job_filter *f, const struct job *job)
{
    const char *text = job->description != NULL ? job->description : "";
    uint32_t found[2];
    pattern_find(f->description, text, strlen(text), found);
    return found[0] != PATTERN_NONE;
}

bool job_filter_takes(const struct job_filter *f, const struct job *job, const char *state)
{
    return (f->kind == NULL || strcmp(job->kind, f->kind) == 0) &&
           (f->state == NULL || strcmp(state, f->state) == 0) &&
           (f->description == NULL || description_has(f, job));
}
