#include "proxy/http/job_rights.h"

#include <string.h>

#include "access/guard.h"
#include "plog/name.h"
#include "sort/spec/spec.h"
#include "xaction/burn_spec.h"
#include "xaction/download_spec.h"
#include "xaction/objects_spec.h"

/* Also of no names, the reply would tell whether the bucket exists. */
static int ask_names(struct http_request *req, enum right right, const char *bucket,
                     const struct objects_spec *spec, struct error *err)
{
    int code = guard_ask(req, right, bucket, NULL, err);
    for (size_t i = 0; i < spec->name_count && code == 0; i++)
        code = guard_ask(req, right, bucket, spec->names[i], err);
    return code;
}

static int ask_selection(struct http_request *req, enum right right, const char *bucket,
                         const struct objects_spec *spec, struct error *err)
{
    if (spec->which == OBJECTS_LIST)
        return ask_names(req, right, bucket, spec, err);
    bool below = spec->which == OBJECTS_PREFIX && spec->prefix != NULL;
    return guard_ask(req, right, bucket, below ? spec->prefix : "", err);
}

static int ask_download(struct http_request *req, const char *bucket, json_t *value,
                        struct error *err)
{
    _cleanup_(download_spec_freep)
    struct download_spec *spec = NULL;
    int code = download_spec_parse(value, &spec, err);
    return code != 0 ? code : guard_ask(req, RIGHT_WRITE, bucket, spec->prepend, err);
}

/* Files that are the operator's become the caller's. */
static int ask_promotion(struct http_request *req, const char *bucket,
                         const struct objects_spec *spec, struct error *err)
{
    int code = guard_ask(req, RIGHT_WRITE, bucket, spec->prepend, err);
    return code != 0 ? code : guard_ask(req, RIGHT_OPERATE, NULL, NULL, err);
}

/* A list may name any object of the two buckets, and so may an older image. */
static int ask_burn(struct http_request *req, const char *bucket, json_t *value, struct error *err)
{
    _cleanup_(burn_spec_freep)
    struct burn_spec *spec = NULL;
    int code = burn_spec_parse(value, &spec, err);
    const char *to = code == 0 && spec->to != NULL ? spec->to : bucket;
    bool below = code == 0 && spec->prefix != NULL && spec->from == NULL && spec->base == NULL;
    if (code == 0)
        code = guard_ask(req, RIGHT_READ, bucket, below ? spec->prefix : "", err);
    if (code == 0 && (spec->csv != NULL || spec->from != NULL || spec->base != NULL))
        code = guard_ask(req, RIGHT_READ, to, "", err);
    if (code == 0)
        code = guard_ask(req, RIGHT_WRITE, to, spec->stores ? "" : spec->image, err);
    return code;
}

/* Whoever writes a head chooses the container that is read, and then removed. */
static int ask_flatten(struct http_request *req, const char *bucket, json_t *value,
                       struct error *err)
{
    static const enum right of_containers[] = {RIGHT_READ, RIGHT_WRITE, RIGHT_DELETE};
    _cleanup_(objects_spec_freep)
    struct objects_spec *spec = NULL;
    int code = objects_spec_parse("flatten", value, &spec, err);
    if (code == 0)
        code = ask_selection(req, RIGHT_READ, bucket, spec, err);
    if (code == 0)
        code = ask_selection(req, RIGHT_WRITE, bucket, spec, err);
    for (size_t i = 0; i < sizeof of_containers / sizeof of_containers[0] && code == 0; i++)
        code = guard_ask(req, of_containers[i], bucket, PLOG_ROOT, err);
    return code;
}

static int ask_objects(struct http_request *req, const char *kind, const char *bucket,
                       json_t *value, struct error *err)
{
    _cleanup_(objects_spec_freep)
    struct objects_spec *spec = NULL;
    int code = objects_spec_parse(kind, value, &spec, err);
    if (code == 0 && spec->path != NULL)
        return ask_promotion(req, bucket, spec, err);
    bool deletes = strcmp(kind, "delete") == 0 || strcmp(kind, "evict") == 0;
    if (code == 0)
        code = ask_selection(req, deletes ? RIGHT_DELETE : RIGHT_READ, bucket, spec, err);
    const char *to = code == 0 ? objects_spec_to(spec, bucket) : NULL;
    if (to != NULL)
        code = guard_ask(req, RIGHT_WRITE, to, objects_spec_begins(spec), err);
    return code;
}

int job_rights_objects(struct http_request *req, const char *kind, const char *bucket,
                       json_t *value, struct error *err)
{
    if (http_caller(req) == NULL)
        return 0;
    int code = strcmp(kind, "download") == 0  ? ask_download(req, bucket, value, err)
               : strcmp(kind, "burn") == 0    ? ask_burn(req, bucket, value, err)
               : strcmp(kind, "flatten") == 0 ? ask_flatten(req, bucket, value, err)
                                              : ask_objects(req, kind, bucket, value, err);
    return code != 0 ? code : guard_ask(req, RIGHT_JOBS, NULL, NULL, err);
}

int job_rights_sort(struct http_request *req, json_t *request, struct error *err)
{
    _cleanup_(sort_spec_freep)
    struct sort_spec *spec = NULL;
    if (http_caller(req) == NULL)
        return 0;
    int code = sort_spec_parse(request, &spec, err);
    if (code == 0)
        code = guard_ask(req, RIGHT_READ, spec->input_bucket, "", err);
    if (code == 0)
        code = guard_ask(req, RIGHT_WRITE, spec->output_bucket, "", err);
    if (code == 0 && spec->ekm_bucket != NULL)
        code = guard_ask(req, RIGHT_READ, spec->ekm_bucket, spec->ekm_object, err);
    return code;
}
