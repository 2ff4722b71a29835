#include "api/ctl/archive/object_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define RANGE_MIN ((uint64_t)64 << 10)
#define RANGE_MAX ((uint64_t)4 << 20)

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

struct object_reader {
    struct dfc_client *client;
    char *bucket, *key, *what;
    struct dfc_object_info *info;
    uint64_t size;
    uint64_t at; /* the next byte that is read */
    unsigned char *data;
    uint64_t begin, len; /* of data, in the object */
    uint64_t range;      /* bytes of the next fetch */
    struct dfc_error failed;
};

int object_reader_open(struct dfc_client *client, const char *bucket, const char *key,
                       struct object_reader **out, struct dfc_error *err)
{
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    int rc = dfc_head(client, bucket, key, &info, err);
    if (rc != DFC_OK)
        return rc;
    struct object_reader *r = xcalloc(1, sizeof *r);
    *r = (struct object_reader){
        .client = client,
        .bucket = xstrdup(bucket),
        .key = xstrdup(key),
        .what = xprintf("'%s/%s'", bucket, key),
        .size = info->size,
        .range = RANGE_MIN,
    };
    r->info = steal(info);
    *out = r;
    return DFC_OK;
}

void object_reader_close(struct object_reader *r)
{
    if (r == NULL)
        return;
    dfc_free(r->data);
    free(r->bucket);
    free(r->key);
    dfc_object_info_free(r->info);
    free(r->what);
    free(r);
}

void object_reader_failure(const struct object_reader *r, struct dfc_error *err)
{
    if (r->failed.result != DFC_OK)
        *err = r->failed;
}

/* Forward, ranges double; elsewhere they begin small again. */
static int fetch(struct object_reader *r, struct error *err)
{
    bool forward = r->data != NULL && r->at == r->begin + r->len;
    void *data = NULL;
    size_t len = 0;
    r->range = !forward ? RANGE_MIN : r->range < RANGE_MAX ? r->range * 2 : RANGE_MAX;
    uint64_t left = r->size - r->at;
    const struct dfc_get_options options = {
        .offset = (int64_t)r->at,
        .length = left < r->range ? left : r->range,
        .if_match = r->info->etag[0] != '\0' ? r->info->etag : NULL,
    };
    if (dfc_get_memory(r->client, r->bucket, r->key, &options, &data, &len, NULL, &r->failed) !=
        DFC_OK)
        return error_set(err, E_NET, "%s", r->failed.message);
    dfc_free(r->data);
    r->data = data;
    r->begin = r->at;
    r->len = len;
    return len > 0 ? 0 : error_set(err, E_LENGTH, "%s ends early", r->what);
}

static ssize_t reader_read(void *ctx, void *to, size_t max, struct error *err)
{
    struct object_reader *r = ctx;
    if (r->at == r->size)
        return 0;
    bool here = r->data != NULL && r->at >= r->begin && r->at < r->begin + r->len;
    int rc = here ? 0 : fetch(r, err);
    if (rc != 0)
        return rc;
    uint64_t left = r->begin + r->len - r->at;
    size_t n = left < max ? (size_t)left : max;
    memcpy(to, r->data + (r->at - r->begin), n);
    r->at += n;
    return (ssize_t)n;
}

static int reader_seek(void *ctx, uint64_t offset, struct error *err)
{
    struct object_reader *r = ctx;
    (void)err;
    r->at = offset;
    return 0;
}

struct unarchiver_source object_reader_source(struct object_reader *r)
{
    return (struct unarchiver_source){
        .read = reader_read, .seek = reader_seek, .ctx = r, .size = r->size, .what = r->what};
}
