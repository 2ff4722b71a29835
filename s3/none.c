#include "s3/none.h"

#include "s3/xml_write.h"

static const struct row {
    const char *root;
    const char *element, *text; /* the only element; NULL: there is none */
} rows[S3_OPS] = {
    [S3_OP_GetBucketVersioning] = {.root = "VersioningConfiguration"},
    [S3_OP_GetBucketLogging] = {.root = "BucketLoggingStatus"},
    [S3_OP_GetBucketNotificationConfiguration] = {.root = "NotificationConfiguration"},
    [S3_OP_GetBucketRequestPayment] = {"RequestPaymentConfiguration", "Payer", "BucketOwner"},
    [S3_OP_GetBucketAccelerateConfiguration] = {.root = "AccelerateConfiguration"},
};

bool s3_none_document(enum s3_op_id op, struct buf *out)
{
    const struct row *row = &rows[op];
    if (row->root == NULL)
        return false;
    xml_put_root(out, row->root, XML_S3_NAMESPACE);
    if (row->element != NULL)
        xml_put_element(out, row->element, row->text);
    xml_put_close(out, row->root);
    return true;
}
