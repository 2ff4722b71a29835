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

static void put_part(struct buf *out, const struct s3_object_part *part)
{
    xml_put_open(out, "Part");
    xml_put_number(out, "PartNumber", part->number);
    xml_put_number(out, "Size", part->size);
    if (part->sum != NULL)
        s3_put_sum(out, part->sum);
    xml_put_close(out, "Part");
}

static void put_page(struct buf *out, const struct s3_object_parts *p)
{
    unsigned last = p->listed > 0 ? p->parts[p->listed - 1].number : p->page.after;
    xml_put_number(out, "PartNumberMarker", p->page.after);
    xml_put_number(out, "NextPartNumberMarker", last);
    xml_put_number(out, "MaxParts", p->page.max);
    xml_put_bool(out, "IsTruncated", last < p->count);
    for (size_t i = 0; i < p->listed; i++)
        put_part(out, &p->parts[i]);
}

static void put_parts(struct buf *out, const struct s3_attributes *a)
{
    if (a->parts == NULL)
        return;
    xml_put_open(out, "ObjectParts");
    xml_put_number(out, "PartsCount", a->parts->count);
    if (a->parts->is_listed)
        put_page(out, a->parts);
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

enum s3_error s3_attributes_page(const struct s3_request *r, struct s3_parts_page *out,
                                 struct s3_failure *why)
{
    *out = (struct s3_parts_page){.max = S3_ATTRIBUTE_PARTS_MAX};
    enum s3_error e = s3_read_number(s3_header(r, "x-amz-part-number-marker"),
                                     "x-amz-part-number-marker", &out->after, why);
    if (e == S3_OK)
        e = s3_read_number(s3_header(r, "x-amz-max-parts"), "x-amz-max-parts", &out->max, why);
    if (out->max > S3_ATTRIBUTE_PARTS_MAX)
        out->max = S3_ATTRIBUTE_PARTS_MAX;
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
