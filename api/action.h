/* Bodies of requests that several files send. */
#pragma once

#include "api/dfc.h"

/* {"action": action, "name": name}; *body is the caller's to free. */
int action_body(const char *action, const char *name, char **body, struct dfc_error *err);
