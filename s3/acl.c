#include "s3/acl.h"

#include "s3/xml_write.h"

#define XSI "http://www.w3.org/2001/XMLSchema-instance"

void s3_acl_document(const struct s3_owner *owner, struct buf *out)
{
    xml_put_root(out, "AccessControlPolicy", XML_S3_NAMESPACE);
    s3_put_owner(out, "Owner", owner);
    xml_put_open(out, "AccessControlList");
    xml_put_open(out, "Grant");
    buf_puts(out, "<Grantee xmlns:xsi=\"" XSI "\" xsi:type=\"CanonicalUser\">");
    xml_put_element(out, "ID", owner->id);
    xml_put_element(out, "DisplayName", owner->name);
    xml_put_close(out, "Grantee");
    xml_put_element(out, "Permission", "FULL_CONTROL");
    xml_put_close(out, "Grant");
    xml_put_close(out, "AccessControlList");
    xml_put_close(out, "AccessControlPolicy");
}
