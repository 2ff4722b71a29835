/* The reply to a request that starts a job. */
#pragma once

#include "api/dfc.h"

/* {"id": "del-…"}; *id is the caller's to free. */
int job_id_of(const char *reply, char **id, struct dfc_error *err);
