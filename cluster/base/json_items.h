/* Items of the arrays in a document, with the path that a message names. */
#pragma once

#include <jansson.h>

#include "common/error.h"

/* E_JSON "field 'path.field' is missing" where a getter has left `value` NULL. */
int json_present(const void *value, const char *path, const char *field, struct error *err);
/* The n-th element of the array at `path` as an object, and its own path for messages. */
int json_item(json_t *array, const char *path, size_t n, json_t **out, char item_path[static 64],
              struct error *err);
