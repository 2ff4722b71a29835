#include "s3/delete_reply.h"

#include "s3/xml_write.h"

static void put_outcome(struct buf *out, const struct s3_delete_outcome *o)
{
    const char *element = o->failure.error == S3_OK ? "Deleted" : "Error";
    xml_put_open(out, element);
    xml_put_element(out, "Key", o->key);
    if (o->version != NULL)
        xml_put_element(out, "VersionId", o->version);
    if (o->failure.error != S3_OK) {
        xml_put_element(out, "Code", s3_error_code(o->failure.error));
        xml_put_element(out, "Message", o->failure.message);
    }
    xml_put_close(out, element);
}

void s3_delete_document(const struct s3_delete_outcome *outcomes, size_t count, bool is_quiet,
                        struct buf *out)
{
    xml_put_root(out, "DeleteResult", XML_S3_NAMESPACE);
    for (size_t i = 0; i < count; i++) {
        if (!is_quiet || outcomes[i].failure.error != S3_OK)
            put_outcome(out, &outcomes[i]);
    }
    xml_put_close(out, "DeleteResult");
}
