#include "s3/uploads/upload_reply.h"

#include "s3/xml_write.h"

void s3_upload_begun_document(const char *bucket, const char *key, const char *upload_id,
                              struct buf *out)
{
    xml_put_root(out, "InitiateMultipartUploadResult", XML_S3_NAMESPACE);
    xml_put_element(out, "Bucket", bucket);
    xml_put_element(out, "Key", key);
    xml_put_element(out, "UploadId", upload_id);
    xml_put_close(out, "InitiateMultipartUploadResult");
}

void s3_upload_completed_document(const struct s3_completed *completed, struct buf *out)
{
    xml_put_root(out, "CompleteMultipartUploadResult", XML_S3_NAMESPACE);
    xml_put_element(out, "Location", completed->location);
    xml_put_element(out, "Bucket", completed->bucket);
    xml_put_element(out, "Key", completed->key);
    s3_put_etag(out, completed->etag);
    s3_put_object_sum(out, completed->sum);
    xml_put_close(out, "CompleteMultipartUploadResult");
}
