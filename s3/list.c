#include "s3/list.h"

#include <string.h>

#include "s3/element.h"
#include "s3/xml_write.h"

#define NULL_VERSION "null"

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* The parameter that a page begins behind. */
static const char *const afters[] = {
    [S3_LIST_V1] = "marker", [S3_LIST_V2] = "start-after", [S3_LIST_VERSIONS] = "key-marker"};

static enum s3_error check_version(const struct s3_list_asked *asked, struct s3_failure *why)
{
    if (asked->version == NULL)
        return S3_OK;
    if (*asked->after == '\0')
        return s3_fail(why, S3_INVALID_ARGUMENT, "A version-id-marker needs a key-marker");
    return strcmp(asked->version, NULL_VERSION) == 0
               ? S3_OK
               : s3_fail(why, S3_INVALID_ARGUMENT, "The only version of an object is 'null'");
}

enum s3_error s3_list_ask(const struct s3_query *q, enum s3_list_form form,
                          struct s3_list_asked *out, struct s3_failure *why)
{
    bool is_v2 = form == S3_LIST_V2;
    const char *encoding = s3_query_get(q, "encoding-type");
    const char *owner = s3_query_get(q, "fetch-owner");
    unsigned max = S3_LIST_KEYS_MAX;
    *out = (struct s3_list_asked){
        .form = form,
        .prefix = or_empty(s3_query_get(q, "prefix")),
        .delimiter = or_empty(s3_query_get(q, "delimiter")),
        .after = or_empty(s3_query_get(q, afters[form])),
        .token = is_v2 ? s3_query_get(q, "continuation-token") : NULL,
        .version = form == S3_LIST_VERSIONS ? s3_query_get(q, "version-id-marker") : NULL,
        .is_url_encoded = encoding != NULL,
        .with_owner = !is_v2 || (owner != NULL && strcmp(owner, "true") == 0)};
    enum s3_error e = s3_read_number(s3_query_get(q, "max-keys"), "max-keys", &max, why);
    if (e != S3_OK)
        return e;
    if (encoding != NULL && strcmp(encoding, "url") != 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "encoding-type must be url");
    if (out->token != NULL && *out->token == '\0')
        return s3_fail(why, S3_INVALID_ARGUMENT, "The continuation-token is empty");
    out->max_keys = max < S3_LIST_KEYS_MAX ? max : S3_LIST_KEYS_MAX;
    return check_version(out, why);
}

static void put_name(struct buf *out, const struct s3_list_asked *asked, const char *element,
                     const char *name)
{
    s3_put_name(out, asked->is_url_encoded, element, name);
}

static void put_v1(struct buf *out, const struct s3_list_asked *asked, const struct s3_list *list)
{
    put_name(out, asked, "Marker", asked->after);
    if (list->next != NULL)
        put_name(out, asked, "NextMarker", list->next);
}

static void put_v2(struct buf *out, const struct s3_list_asked *asked, const struct s3_list *list)
{
    xml_put_number(out, "KeyCount", list->entry_count + list->prefix_count);
    if (*asked->after != '\0')
        put_name(out, asked, "StartAfter", asked->after);
    if (asked->token != NULL)
        xml_put_element(out, "ContinuationToken", asked->token);
    if (list->next != NULL)
        xml_put_element(out, "NextContinuationToken", list->next);
}

/* A common prefix has no version. */
static bool is_key(const struct s3_list *list, const char *name)
{
    return list->entry_count > 0 && strcmp(list->entries[list->entry_count - 1].key, name) == 0;
}

static void put_versions(struct buf *out, const struct s3_list_asked *asked,
                         const struct s3_list *list)
{
    put_name(out, asked, "KeyMarker", asked->after);
    xml_put_element(out, "VersionIdMarker", or_empty(asked->version));
    if (list->next == NULL)
        return;
    put_name(out, asked, "NextKeyMarker", list->next);
    if (is_key(list, list->next))
        xml_put_element(out, "NextVersionIdMarker", NULL_VERSION);
}

/* What the documents differ in. */
static const struct form {
    const char *root, *entry;
    void (*put_place)(struct buf *out, const struct s3_list_asked *asked,
                      const struct s3_list *list);
} forms[] = {
    [S3_LIST_V1] = {"ListBucketResult", "Contents", put_v1},
    [S3_LIST_V2] = {"ListBucketResult", "Contents", put_v2},
    [S3_LIST_VERSIONS] = {"ListVersionsResult", "Version", put_versions},
};

static void put_entry(struct buf *out, const struct s3_list_asked *asked,
                      const struct s3_list *list, const struct s3_list_entry *entry)
{
    const char *element = forms[asked->form].entry;
    xml_put_open(out, element);
    put_name(out, asked, "Key", entry->key);
    if (asked->form == S3_LIST_VERSIONS) {
        xml_put_element(out, "VersionId", NULL_VERSION);
        xml_put_bool(out, "IsLatest", true);
    }
    s3_put_time(out, "LastModified", entry->modified_ms);
    s3_put_etag(out, entry->etag);
    xml_put_number(out, "Size", entry->size);
    if (asked->with_owner)
        s3_put_owner(out, "Owner", &(struct s3_owner){list->owner_id, list->owner_name});
    xml_put_element(out, "StorageClass", "STANDARD");
    xml_put_close(out, element);
}

void s3_list_document(const struct s3_list_asked *asked, const struct s3_list *list,
                      struct buf *out)
{
    xml_put_root(out, forms[asked->form].root, XML_S3_NAMESPACE);
    xml_put_element(out, "Name", list->bucket);
    put_name(out, asked, "Prefix", asked->prefix);
    if (*asked->delimiter != '\0')
        put_name(out, asked, "Delimiter", asked->delimiter);
    if (asked->is_url_encoded)
        xml_put_element(out, "EncodingType", "url");
    xml_put_number(out, "MaxKeys", asked->max_keys);
    xml_put_bool(out, "IsTruncated", list->next != NULL);
    forms[asked->form].put_place(out, asked, list);
    for (size_t i = 0; i < list->entry_count; i++)
        put_entry(out, asked, list, &list->entries[i]);
    for (size_t i = 0; i < list->prefix_count; i++) {
        xml_put_open(out, "CommonPrefixes");
        put_name(out, asked, "Prefix", list->prefixes[i]);
        xml_put_close(out, "CommonPrefixes");
    }
    xml_put_close(out, forms[asked->form].root);
}

void s3_list_buckets_document(const struct s3_list_bucket *buckets, size_t count,
                              const char *owner_id, const char *owner_name, struct buf *out)
{
    xml_put_root(out, "ListAllMyBucketsResult", XML_S3_NAMESPACE);
    s3_put_owner(out, "Owner", &(struct s3_owner){owner_id, owner_name});
    xml_put_open(out, "Buckets");
    for (size_t i = 0; i < count; i++) {
        xml_put_open(out, "Bucket");
        xml_put_element(out, "Name", buckets[i].name);
        s3_put_time(out, "CreationDate", buckets[i].created_ms);
        xml_put_close(out, "Bucket");
    }
    xml_put_close(out, "Buckets");
    xml_put_close(out, "ListAllMyBucketsResult");
}
