/* <AccessControlPolicy>, the reply of GetBucketAcl and GetObjectAcl.  Grants of S3 do not exist
 * here, so the owner is the only grantee.  Pure. */
#pragma once

#include "common/buf.h"
#include "s3/element.h"

void s3_acl_document(const struct s3_owner *owner, struct buf *out);
