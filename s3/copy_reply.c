#include "s3/copy_reply.h"

#include "s3/xml_write.h"

static void begin(const char *root, const struct s3_copied *copied, struct buf *out)
{
    xml_put_root(out, root, XML_S3_NAMESPACE);
    s3_put_time(out, "LastModified", copied->modified_ms);
    s3_put_etag(out, copied->etag);
}

void s3_copied_document(const struct s3_copied *copied, struct buf *out)
{
    begin("CopyObjectResult", copied, out);
    s3_put_object_sum(out, copied->sum);
    xml_put_close(out, "CopyObjectResult");
}

void s3_copied_part_document(const struct s3_copied *copied, struct buf *out)
{
    begin("CopyPartResult", copied, out);
    if (copied->sum != NULL)
        s3_put_sum(out, &copied->sum->value);
    xml_put_close(out, "CopyPartResult");
}
