#include "s3/location.h"

#include <string.h>

#include "s3/document.h"
#include "s3/xml_write.h"

static enum s3_error take_region(void *ctx, const char *text, struct s3_failure *why)
{
    const char *region = ctx;
    if (*text == '\0' || strcmp(text, region) == 0)
        return S3_OK;
    return s3_fail(why, S3_INVALID_LOCATION,
                   "The location constraint '%.32s' is not this region, '%s'", text, region);
}

static const struct document_leaf leaves[] = {
    {"CreateBucketConfiguration", "LocationConstraint", take_region},
    {"Location", "Name", NULL},
    {"Location", "Type", NULL},
    {"Bucket", "Type", NULL},
    {"Bucket", "DataRedundancy", NULL},
    {"Tag", "Key", NULL},
    {"Tag", "Value", NULL},
    {.name = NULL},
};

static const struct document document = {
    .root = "CreateBucketConfiguration", .depth = 4, .leaves = leaves};

enum s3_error s3_location_check(const char *body, size_t len, const char *region,
                                struct s3_failure *why)
{
    return len == 0 ? S3_OK : document_read(&document, body, len, (void *)(uintptr_t)region, why);
}

void s3_location_document(const char *region, struct buf *out)
{
    xml_put_root(out, "LocationConstraint", XML_S3_NAMESPACE);
    if (strcmp(region, S3_DEFAULT_REGION) != 0)
        xml_put_text(out, region);
    xml_put_close(out, "LocationConstraint");
}
