#include "api/same_bytes.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

char *same_bytes_etag(struct dfc_client *c, const char *bucket, const char *object, uint64_t size,
                      const char *checksum)
{
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    struct dfc_error err;
    if (checksum[0] == '\0' || dfc_head(c, bucket, object, &info, &err) != DFC_OK)
        return NULL;
    _cleanup_free_ char *now = xprintf("%s:%s", info->checksum_type, info->checksum);
    return info->size == size && strcmp(now, checksum) == 0 ? xstrdup(info->etag) : NULL;
}
