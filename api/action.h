/* Bodies of requests that several files send. */
#pragma once

#include "api/dfc.h"

/* {"action": "rename", "name": new_name}; *body is the caller's to free. */
int action_rename(const char *new_name, char **body, struct dfc_error *err);
