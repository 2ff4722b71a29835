/* s3/vectors.json, which tests/reference/s3ref.py makes. */
#pragma once

#include <jansson.h>

#include "common/arena.h"

/* For cmocka's group set-up and tear-down: *state becomes the document. */
extern const char *vectors_path; /* set by main() */
int vectors_load(void **state);
int vectors_drop(void **state);
/* Fails the test where the section is empty or missing. */
json_t *vectors_section(void **state, const char *name);
const char *vectors_text(json_t *row, const char *field);
/* Of base64; the arena's. */
const char *vectors_bytes(json_t *row, const char *field, struct arena *arena, size_t *len);
