/* /v1/uploads/{bucket}/{object...}: objects that are sent in parts (docs/design/uploads.md).  A
 * begin is sent to the target that acts for the object, all else to the target in the upload's
 * id. */
#pragma once

#include "net/http/server.h"

extern const struct http_route upload_routes[];
