/* What an image of the job `burn` is made of: rows of a list, objects of a bucket, entries of an
 * older image. */
#include <string.h>

#include "target/archive/batch_fetch.h"
#include "target/archive/batch_spec.h"
#include "target/jobs/burn_ask.h"
#include "target/jobs/burn_parts.h"
#include "vdisc/csv.h"
#include "xaction/burn_spec.h"

enum { PIECE_BYTES = 64 << 10 };

static bool is_node(const struct cluster_state *s, const char *host)
{
    for (size_t i = 0; i < s->smap.count; i++) {
        const char *at = strstr(s->smap.nodes[i].public_url, "://");
        if (at != NULL && strlen(host) == strcspn(at + 3, "/") &&
            strncasecmp(at + 3, host, strlen(host)) == 0)
            return true;
    }
    return false;
}

/* The rights of whoever has started the job were asked for these two buckets. */
int burn_check_reference(void *ctx, const char *text, const struct reference *to, const char *host,
                         struct error *err)
{
    const struct burning *b = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(b->job->base.target->state);
    if (host != NULL && !is_node(s, host))
        return error_set(err, E_INVALID,
                         "'%.200s': '%s' is not a node of this cluster: an image refers to objects "
                         "of its own cluster alone",
                         text, host);
    if (strcmp(to->bucket, b->from) == 0 || strcmp(to->bucket, b->to) == 0)
        return 0;
    return error_set(err, E_INVALID,
                     "'%.200s': a job takes objects of the list's bucket '%s' and of the image's "
                     "bucket '%s' alone; burn it without --job",
                     text, b->from, b->to);
}

static int feed(struct burning *b, struct csv *csv, struct batch_fetch *f, struct error *err)
{
    struct job_stop *stop = &b->job->base.stop;
    uint64_t size = 0;
    int64_t modified_s;
    char piece[PIECE_BYTES];
    int code = batch_fetch_head(f, stop, &size, &modified_s, err);
    for (ssize_t n; code == 0 && size > 0; size -= (uint64_t)n) {
        n = batch_fetch_read(f, stop, piece, size < sizeof piece ? size : sizeof piece, err);
        if (n < 0)
            return (int)n;
        code = csv_feed(csv, piece, (size_t)n, err);
    }
    return code == 0 ? csv_end(csv, err) : code;
}

static int take_list(struct burning *b, struct error *err)
{
    struct burn_list list = {.plan = b->plan,
                             .rows_max = b->options.entries_max,
                             .check = burn_check_reference,
                             .ctx = b};
    const struct batch_entry entry = {.bucket = b->from, .object = b->job->spec->csv};
    struct csv *csv = csv_new(burn_list_row, &list);
    struct batch_fetch *f = batch_fetch_begin(b->job->base.target, &entry, BATCH_READ, NULL);
    int code = feed(b, csv, f, err);
    batch_fetch_end(f);
    csv_free(csv);
    return code == 0 ? 0 : error_wrap(err, "list '%s/%s'", b->from, b->job->spec->csv);
}

/* What an earlier run of this job has stored is no content of the image. */
static bool is_own(const struct burning *b, const char *name)
{
    const char *image = b->job->spec->image;
    return strcmp(b->from, b->to) == 0 &&
           (strcmp(name, image) == 0 || burn_rules_is_header(name, image));
}

static int take_object(void *ctx, const char *name, const struct burn_found *found,
                       struct error *err)
{
    struct burning *b = ctx;
    if (!is_own(b, name))
        burn_rules_add(b->plan, b->from, b->job->spec->prefix, name, found);
    int code = burn_rules_count(b->plan, b->options.entries_max, err);
    return code == 0 ? job_base_check(&b->job->base, err) : code;
}

static int take_older(struct burning *b, struct error *err)
{
    const struct burn_spec *s = b->job->spec;
    json_t *path;
    size_t i;
    int code = burn_image_open(b, s->from, &b->older, err);
    if (code != 0)
        return code;
    older_add(burn_image_entries(b->older), b->plan);
    json_array_foreach(s->remove, i, path)
    {
        plan_remove(b->plan, json_string_value(path));
    }
    return burn_rules_count(b->plan, b->options.entries_max, err);
}

int burn_take_rows(struct burning *b, struct error *err)
{
    const struct burn_spec *s = b->job->spec;
    int code = s->from != NULL ? take_older(b, err) : 0;
    if (code == 0 && s->csv != NULL)
        code = take_list(b, err);
    if (code == 0 && s->prefix != NULL)
        code = burn_ask_list(&b->job->base, b->from, s->prefix, take_object, b, err);
    return code == 0 ? burn_rules_not_empty(b->plan, s->allow_empty, err) : code;
}
