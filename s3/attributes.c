#include "s3/attributes.h"

#include <string.h>
#include <strings.h>

#include "s3/xml_write.h"

#define HEADER "x-amz-object-attributes"

static void put_etag(struct buf *out, const struct s3_attributes *a)
{
    xml_put_element(out, "ETag", a->etag); /* without quotes, unlike in other documents */
}

static void put_checksum(struct buf *out, const struct s3_attributes *a)
{
    if (a->sum == NULL)
        return;
    xml_put_open(out, "Checksum");
    s3_put_object_sum(out, a->sum);
    xml_put_close(out, "Checksum");
}

static void put_parts(struct buf *out, const struct s3_attributes *a)
{
    if (a->part_count == 0)
        return;
    xml_put_open(out, "ObjectParts");
    xml_put_number(out, "PartsCount", a->part_count);
    xml_put_close(out, "ObjectParts");
}

static void put_storage_class(struct buf *out, const struct s3_attributes *a)
{
    (void)a;
    xml_put_element(out, "StorageClass", "STANDARD");
}

static void put_size(struct buf *out, const struct s3_attributes *a)
{
    xml_put_number(out, "ObjectSize", a->size);
}

static const struct row {
    const char *name;
    enum s3_attribute bit;
    void (*put)(struct buf *out, const struct s3_attributes *a);
} rows[] = {
    {"ETag", S3_ATTRIBUTE_ETAG, put_etag},
    {"Checksum", S3_ATTRIBUTE_CHECKSUM, put_checksum},
    {"ObjectParts", S3_ATTRIBUTE_PARTS, put_parts},
    {"StorageClass", S3_ATTRIBUTE_STORAGE_CLASS, put_storage_class},
    {"ObjectSize", S3_ATTRIBUTE_SIZE, put_size},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static enum s3_error add(const char *name, size_t len, unsigned *out, struct s3_failure *why)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0) {
            *out |= rows[i].bit;
            return S3_OK;
        }
    }
    return s3_fail(why, S3_INVALID_ARGUMENT, "'%.*s' in " HEADER " is no attribute",
                   (int)(len < 64 ? len : 64), name);
}

/* Names with commas between, and blanks around each. */
static enum s3_error add_all(const char *text, unsigned *out, struct s3_failure *why)
{
    for (;;) {
        text += strspn(text, " \t");
        const char *end = text + strcspn(text, ",");
        const char *last = end;
        while (last > text && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        enum s3_error e = add(text, (size_t)(last - text), out, why);
        if (e != S3_OK || *end == '\0')
            return e;
        text = end + 1;
    }
}

enum s3_error s3_attributes_asked(const struct s3_request *r, unsigned *out, struct s3_failure *why)
{
    enum s3_error e = S3_OK;
    *out = 0;
    for (size_t i = 0; i < r->header_count && e == S3_OK; i++) {
        if (strcasecmp(r->headers[i].name, HEADER) == 0)
            e = add_all(r->headers[i].value, out, why);
    }
    if (e == S3_OK && *out == 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "The request needs the header " HEADER);
    return e;
}

void s3_attributes_document(unsigned asked, const struct s3_attributes *a, struct buf *out)
{
    xml_put_root(out, "GetObjectAttributesResponse", XML_S3_NAMESPACE);
    for (size_t i = 0; i < ROWS; i++) {
        if ((asked & rows[i].bit) != 0)
            rows[i].put(out, a);
    }
    xml_put_close(out, "GetObjectAttributesResponse");
}
