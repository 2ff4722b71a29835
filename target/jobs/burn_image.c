/* An older image, read by the target that burns another one: its table and its header, both whole.
 * Both are bounded by vdisc_table_max, its entries by vdisc_entries_max; all is in memory until the
 * job's end. */
#include <string.h>

#include "common/mem.h"
#include "target/archive/batch_fetch.h"
#include "target/archive/batch_spec.h"
#include "target/jobs/burn_parts.h"

struct burn_image {
    struct burning *burning;
    const char *key;
    struct vdisc_table *table;
    uint8_t *header;
    uint64_t header_size;
    struct iso_reader reader;
    struct older *older;
};

/* --- bytes ------------------------------------------------------------------------------------ */

struct wanted {
    const char *bucket, *key;
    const char *etag; /* that it must have; NULL: any */
    uint64_t max;     /* bytes */
};

static int check_head(const struct wanted *w, const struct batch_fetch *f, uint64_t size,
                      struct error *err)
{
    if (w->etag != NULL && strcmp(w->etag, batch_fetch_etag(f)) != 0)
        return error_set(err, E_IMAGE_STALE,
                         "object '%s/%s' has been replaced since the image was burned (its tag was "
                         "%s)",
                         w->bucket, w->key, w->etag);
    if (size > w->max)
        return error_set(
            err, E_IMAGE_TOO_LARGE,
            "object '%s/%s' has %llu bytes, and vdisc_table_max of the target is %llu: "
            "burn it without --job, or raise vdisc_table_max",
            w->bucket, w->key, (unsigned long long)size, (unsigned long long)w->max);
    return 0;
}

static int read_fetch(struct job_base *j, const struct wanted *w, struct batch_fetch *f,
                      uint8_t **bytes, uint64_t *size, struct error *err)
{
    _cleanup_free_ uint8_t *to = NULL;
    int64_t modified_s;
    int code = batch_fetch_head(f, &j->stop, size, &modified_s, err);
    if (code == 0)
        code = check_head(w, f, *size, err);
    if (code != 0)
        return code;
    to = xmalloc(*size + 1);
    for (uint64_t at = 0; at < *size;) {
        const ssize_t n = batch_fetch_read(f, &j->stop, to + at, *size - at, err);
        if (n < 0)
            return (int)n;
        at += (uint64_t)n;
    }
    *bytes = steal(to);
    return 0;
}

/* All of an object; what may pass is waited for. */
static int read_object(struct job_base *j, const struct wanted *w, uint8_t **bytes, uint64_t *size,
                       struct error *err)
{
    const struct batch_entry entry = {.bucket = w->bucket, .object = w->key};
    for (unsigned failures = 1;; failures++) {
        *err = ERROR_INIT;
        struct batch_fetch *f = batch_fetch_begin(j->target, &entry, BATCH_READ, NULL);
        int code = read_fetch(j, w, f, bytes, size, err);
        batch_fetch_end(f);
        if (!job_base_again(j, code, err, failures))
            return code != 0 && j->stop.wanted ? job_base_check(j, err) : code;
    }
}

/* --- the image -------------------------------------------------------------------------------- */

static int name_object(void *ctx, uint32_t extent, char **bucket, char **key, struct error *err)
{
    const struct burn_image *i = ctx;
    const char *address = i->table->extents[extent].address;
    struct reference to = {0};
    _cleanup_free_ char *host = NULL;
    int code = strstr(address, "://") != NULL
                   ? reference_parse(address, &to, &host, err)
                   : reference_resolve(i->burning->to, i->key, address, &to, err);
    if (code == 0)
        code = burn_check_reference(i->burning, address, &to, host, err);
    if (code != 0) {
        reference_done(&to);
        return code;
    }
    *bucket = to.bucket;
    *key = to.key;
    return 0;
}

static int read_header(void *ctx, uint64_t offset, void *to, size_t len, struct error *err)
{
    const struct burn_image *i = ctx;
    if (offset > i->header_size || len > i->header_size - offset)
        return error_set(err, E_UNSUPPORTED,
                         "its names are in more than one object: burn it without --job");
    memcpy(to, i->header + offset, len);
    return 0;
}

static int check_job(void *ctx, struct error *err)
{
    const struct burn_image *i = ctx;
    return job_base_check(&i->burning->job->base, err);
}

static int load_table(struct burn_image *i, struct error *err)
{
    struct burning *b = i->burning;
    const uint64_t max = b->options.table_max;
    const struct wanted table = {.bucket = b->to, .key = i->key, .max = max};
    _cleanup_free_ uint8_t *bytes = NULL;
    uint64_t size = 0;
    int code = read_object(&b->job->base, &table, &bytes, &size, err);
    if (code == 0)
        code = vdisc_table_read(bytes, size, max, &i->table, err);
    if (code == 0 && i->table->count == 0)
        return error_set(err, E_IMAGE_DAMAGED, "it has no extent");
    return code;
}

static int load_header(struct burn_image *i, struct error *err)
{
    struct burning *b = i->burning;
    const char *etag = i->table->extents[0].etag;
    _cleanup_free_ char *bucket = NULL, *key = NULL;
    int code = name_object(i, 0, &bucket, &key, err);
    const struct wanted header = {.bucket = bucket,
                                  .key = key,
                                  .etag = etag[0] != '\0' ? etag : NULL,
                                  .max = b->options.table_max};
    return code == 0 ? read_object(&b->job->base, &header, &i->header, &i->header_size, err) : code;
}

static int load(struct burn_image *i, struct error *err)
{
    int code = load_table(i, err);
    if (code == 0)
        code = load_header(i, err);
    if (code != 0)
        return code;
    const struct iso_source source = {
        .read = read_header, .context = i, .size = vdisc_table_size(i->table)};
    const struct older_image image = {.table = i->table,
                                      .reader = &i->reader,
                                      .object = name_object,
                                      .check = check_job,
                                      .ctx = i,
                                      .entries_max = i->burning->options.entries_max};
    code = iso_reader_open(&i->reader, &source, err);
    return code == 0 ? older_load(&image, &i->older, err) : code;
}

int burn_image_open(struct burning *b, const char *key, struct burn_image **out, struct error *err)
{
    _cleanup_(burn_image_freep)
    struct burn_image *i = xcalloc(1, sizeof *i);
    i->burning = b;
    i->key = key;
    int code = load(i, err);
    if (code != 0)
        return error_wrap(err, "older image '%s/%s'", b->to, key);
    *out = steal(i);
    return 0;
}

const struct older *burn_image_entries(const struct burn_image *i)
{
    return i->older;
}

void burn_image_free(struct burn_image *i)
{
    if (i == NULL)
        return;
    older_free(i->older);
    vdisc_table_free(i->table);
    free(i->header);
    free(i);
}
