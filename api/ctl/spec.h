/* A sort's specification: JSON or YAML, plus flags: pure but for reading the file.
 *
 * YAML is read into the same values as JSON has: plain scalars by the core schema of YAML 1.2
 * (null, true, false, decimal numbers without leading zeros), everything quoted a text.  Anchors,
 * tags, repeated keys and further documents are refused: nothing in a specification needs them. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "api/ctl/args.h"
#include "common/error.h"

#define SPEC_MAX_BYTES (16u << 20)

/* Either notation.  name is for messages. */
int spec_parse(const char *text, size_t len, const char *name, json_t **out, struct error *err);

/* path: a file, "-" for standard input, or NULL for an empty specification. */
int spec_read(const char *path, json_t **out, struct error *err);

/* Set the fields that flags name. */
int spec_apply_flags(json_t *spec, const struct args *a, struct error *err);
/* A message about a field, "field 'input_format' is missing": which flags of the command set it is
 * added, " (flag: --template or --prefix)", where it has any and there is room. */
void spec_name_flags(const struct args *a, char *message, size_t size);
