/* A parameter's value as it would stand on a command line: pure.  "64MiB", "1500ms", "95%". */
#pragma once

#include <jansson.h>

char *param_text(const char *type, json_t *value); /* malloc'ed */
