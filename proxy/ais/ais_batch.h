/* /v1/ml/moss[/{bucket}]: Get-Batch.  The document becomes that of a native batch (moss.h), which a
 * target assembles; the bytes stream through this proxy. */
#pragma once

#include "net/http/handler.h"

void ais_batch_begin(struct http_request *req);
