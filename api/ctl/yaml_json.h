/* One YAML document as JSON values; see spec.h for what is understood. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "common/error.h"

int yaml_json_parse(const char *text, size_t len, json_t **out, struct error *err);
