/* <AccessControlPolicy>: the reply of GetBucketAcl and GetObjectAcl, and the body of their PUTs.
 * Grants of S3 do not exist here, so the owner is the only grantee.  Pure; fuzzed. */
#pragma once

#include <stddef.h>

#include "common/buf.h"
#include "s3/element.h"
#include "s3/error.h"

void s3_acl_document(const struct s3_owner *owner, struct buf *out);
/* S3_OK: the body changes nothing, for it says what the owner has.  S3_ACL_NOT_SUPPORTED: it says
 * something else.  S3_MALFORMED_XML. */
enum s3_error s3_acl_check(const char *body, size_t len, const char *owner_id,
                           struct s3_failure *why);
