#include "api/ctl/copy_object.h"

#include <string.h>

#include "api/failure.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "plog/type.h"

#define BLOCK_BYTES (4u << 20)

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

struct copy {
    struct dfc_client *client;
    const struct object_name *from;
    const struct dfc_object_info *info; /* of the version that is read */
    uint64_t at;
    char *block;
    size_t block_size;
    size_t block_at;
    struct checksum *sum; /* NULL: the source has none that is known here */
    struct dfc_error failure;
};

static void start_checksum(struct copy *c)
{
    enum checksum_type type;
    checksum_free(steal(c->sum));
    if (c->info->checksum[0] != '\0' &&
        checksum_from_name(c->info->checksum_type, &type, NULL) == 0 && type != CHECKSUM_NONE)
        c->sum = checksum_new(type);
}

static bool damaged(struct copy *c)
{
    struct checksum_value have, want;
    if (c->sum == NULL)
        return false;
    checksum_final(c->sum, &have);
    return checksum_parse(have.type, c->info->checksum, &want, NULL) != 0 ||
           !checksum_equal(&have, &want);
}

static int fail_read(struct copy *c, const char *why)
{
    failure_set(&c->failure, DFC_CORRUPT, E_CHECKSUM, "read '%s/%s': %s", c->from->bucket,
                c->from->key, why);
    return -1;
}

/* Two heads of one plog: the removal of one would drop the bytes of the other. */
static int refuse_plog(const struct object_name *from, struct dfc_error *err)
{
    return failure_set(
        err, DFC_INVALID, E_INVALID,
        "'%s/%s' is a plog, whose bytes are in other objects: copy it with 'dfcctl plog cp'",
        from->bucket, from->key);
}

static int read_block(struct copy *c)
{
    void *data;
    size_t size;
    const struct dfc_get_options options = {
        .offset = (int64_t)c->at,
        .length = BLOCK_BYTES,
        .if_match = c->info->etag[0] != '\0' ? c->info->etag : NULL,
    };
    free(steal(c->block));
    c->block_at = c->block_size = 0;
    if (dfc_get_memory(c->client, c->from->bucket, c->from->key, &options, &data, &size, NULL,
                       &c->failure) != DFC_OK)
        return -1;
    c->block = data;
    c->block_size = size;
    c->at += size;
    if (size == 0 || c->at > c->info->size)
        return fail_read(c, "the object has another length now");
    if (c->sum != NULL)
        checksum_update(c->sum, data, size);
    return c->at == c->info->size && damaged(c) ? fail_read(c, "its bytes do not have its checksum")
                                                : 0;
}

static ptrdiff_t copy_read(void *context, void *to, size_t room)
{
    struct copy *c = context;
    if (c->block_at == c->block_size) {
        if (c->at == c->info->size)
            return 0;
        if (read_block(c) != 0)
            return -1;
    }
    size_t left = c->block_size - c->block_at;
    size_t n = room < left ? room : left;
    memcpy(to, c->block + c->block_at, n);
    c->block_at += n;
    return (ptrdiff_t)n;
}

static int copy_rewind(void *context)
{
    struct copy *c = context;
    c->at = 0;
    c->block_at = c->block_size = 0;
    start_checksum(c);
    return 0;
}

int copy_object(struct dfc_client *client, const struct object_name *from,
                const struct object_name *to, dfc_progress *progress, void *progress_context,
                uint64_t *bytes, struct dfc_error *err)
{
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    int rc = dfc_head(client, from->bucket, from->key, &info, err);
    if (rc != DFC_OK)
        return rc;
    if (strcmp(info->content_type, PLOG_TYPE) == 0)
        return refuse_plog(from, err);
    struct copy c = {.client = client, .from = from, .info = info};
    const struct dfc_source source = {
        .read = copy_read, .rewind = copy_rewind, .context = &c, .size = (int64_t)info->size};
    const struct dfc_put_options options = {
        .content_type = info->content_type[0] != '\0' ? info->content_type : NULL,
        .meta = info->meta,
        .meta_count = info->meta_count,
        .progress = progress,
        .progress_context = progress_context,
    };
    start_checksum(&c);
    rc = dfc_put_source(client, to->bucket, to->key, &source, &options, NULL, err);
    if (rc == DFC_LOCAL && c.failure.result != 0) {
        *err = c.failure;
        rc = c.failure.result;
    }
    free(c.block);
    checksum_free(c.sum);
    *bytes = info->size;
    return rc;
}
