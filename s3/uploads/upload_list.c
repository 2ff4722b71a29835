#include "s3/uploads/upload_list.h"

#include <string.h>

#include "s3/xml_write.h"

static const char *text_of(const struct s3_query *q, const char *name)
{
    const char *text = s3_query_get(q, name);
    return text != NULL ? text : "";
}

/* What both lists have: encoding-type, and the size of a page in the parameter `name`. */
static enum s3_error page_of(const struct s3_query *q, const char *name, bool *is_url_encoded,
                             unsigned *max, struct s3_failure *why)
{
    const char *encoding = s3_query_get(q, "encoding-type");
    *is_url_encoded = encoding != NULL;
    *max = S3_UPLOAD_LIST_MAX;
    if (encoding != NULL && strcmp(encoding, "url") != 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "encoding-type must be url");
    enum s3_error e = s3_read_number(s3_query_get(q, name), name, max, why);
    if (*max > S3_UPLOAD_LIST_MAX)
        *max = S3_UPLOAD_LIST_MAX;
    return e;
}

/* --- parts ------------------------------------------------------------------------------------ */

enum s3_error s3_parts_ask(const struct s3_query *q, struct s3_parts_asked *out,
                           struct s3_failure *why)
{
    *out = (struct s3_parts_asked){.upload_id = text_of(q, "uploadId")};
    enum s3_error e = page_of(q, "max-parts", &out->is_url_encoded, &out->max, why);
    return e == S3_OK ? s3_read_number(s3_query_get(q, "part-number-marker"), "part-number-marker",
                                       &out->after, why)
                      : e;
}

static void put_part(struct buf *out, const struct s3_listed_part *part)
{
    xml_put_open(out, "Part");
    xml_put_number(out, "PartNumber", part->number);
    s3_put_time(out, "LastModified", part->modified_ms);
    s3_put_etag(out, part->etag);
    xml_put_number(out, "Size", part->size);
    if (part->sum != NULL)
        s3_put_sum(out, part->sum);
    xml_put_close(out, "Part");
}

static void put_sum_kind(struct buf *out, const struct s3_sum_kind *kind)
{
    if (!kind->is_asked)
        return;
    xml_put_element(out, "ChecksumAlgorithm", s3_sum_algorithm(kind->type));
    xml_put_element(out, "ChecksumType", s3_sum_kind_text(kind));
}

void s3_parts_document(const struct s3_parts_asked *asked, const struct s3_parts *list,
                       struct buf *out)
{
    xml_put_root(out, "ListPartsResult", XML_S3_NAMESPACE);
    xml_put_element(out, "Bucket", list->bucket);
    s3_put_name(out, asked->is_url_encoded, "Key", list->key);
    xml_put_element(out, "UploadId", asked->upload_id);
    s3_put_owner(out, "Initiator", &list->initiator);
    s3_put_owner(out, "Owner", &list->owner);
    xml_put_element(out, "StorageClass", "STANDARD");
    xml_put_number(out, "PartNumberMarker", asked->after);
    if (list->count > 0)
        xml_put_number(out, "NextPartNumberMarker", list->parts[list->count - 1].number);
    xml_put_number(out, "MaxParts", asked->max);
    xml_put_bool(out, "IsTruncated", list->is_truncated);
    put_sum_kind(out, &list->kind);
    for (size_t i = 0; i < list->count; i++)
        put_part(out, &list->parts[i]);
    xml_put_close(out, "ListPartsResult");
}

/* --- uploads ---------------------------------------------------------------------------------- */

enum s3_error s3_uploads_ask(const struct s3_query *q, struct s3_uploads_asked *out,
                             struct s3_failure *why)
{
    *out = (struct s3_uploads_asked){.prefix = text_of(q, "prefix"),
                                     .delimiter = text_of(q, "delimiter"),
                                     .after_key = text_of(q, "key-marker"),
                                     .after_upload_id = text_of(q, "upload-id-marker")};
    return page_of(q, "max-uploads", &out->is_url_encoded, &out->max, why);
}

static void put_upload(struct buf *out, bool is_url_encoded, const struct s3_listed_upload *upload)
{
    xml_put_open(out, "Upload");
    s3_put_name(out, is_url_encoded, "Key", upload->key);
    xml_put_element(out, "UploadId", upload->upload_id);
    s3_put_owner(out, "Initiator", &upload->initiator);
    s3_put_owner(out, "Owner", &upload->owner);
    xml_put_element(out, "StorageClass", "STANDARD");
    s3_put_time(out, "Initiated", upload->begun_ms);
    put_sum_kind(out, &upload->sums);
    xml_put_close(out, "Upload");
}

static void put_next(struct buf *out, bool is_url_encoded, const struct s3_uploads *list)
{
    if (list->next_key == NULL)
        return;
    s3_put_name(out, is_url_encoded, "NextKeyMarker", list->next_key);
    xml_put_element(out, "NextUploadIdMarker", list->next_upload_id);
}

void s3_uploads_document(const struct s3_uploads_asked *asked, const struct s3_uploads *list,
                         struct buf *out)
{
    bool is_url_encoded = asked->is_url_encoded;
    xml_put_root(out, "ListMultipartUploadsResult", XML_S3_NAMESPACE);
    xml_put_element(out, "Bucket", list->bucket);
    s3_put_name(out, is_url_encoded, "KeyMarker", asked->after_key);
    xml_put_element(out, "UploadIdMarker", asked->after_upload_id);
    put_next(out, is_url_encoded, list);
    s3_put_name(out, is_url_encoded, "Prefix", asked->prefix);
    if (*asked->delimiter != '\0')
        s3_put_name(out, is_url_encoded, "Delimiter", asked->delimiter);
    if (is_url_encoded)
        xml_put_element(out, "EncodingType", "url");
    xml_put_number(out, "MaxUploads", asked->max);
    xml_put_bool(out, "IsTruncated", list->next_key != NULL);
    for (size_t i = 0; i < list->upload_count; i++)
        put_upload(out, is_url_encoded, &list->uploads[i]);
    for (size_t i = 0; i < list->prefix_count; i++) {
        xml_put_open(out, "CommonPrefixes");
        s3_put_name(out, is_url_encoded, "Prefix", list->prefixes[i]);
        xml_put_close(out, "CommonPrefixes");
    }
    xml_put_close(out, "ListMultipartUploadsResult");
}
