/* jansson with good errors: typed getters that say which field is wrong and how.
 *
 *     err: "field 'algorithm.kind' must be a string"
 *
 * `path` in the messages is the dotted name that the caller gives for the object ("" for the
 * top).  Getters: a missing or null field leaves *out as it was and returns 0; json_need_* ones
 * fail with E_JSON instead. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

/* jansson has json_decrefp itself. */
#define _cleanup_json_ _cleanup_(json_decrefp)

/* How much memory a text takes when it is parsed, about, from one look at its brackets and commas:
 * "{}" takes eighty times its length.  E_TOO_LARGE: more than 1 MiB and sixteen times the length.
 */
int json_memory(const char *text, size_t len, size_t *bytes, struct error *err);
/* Parse text; E_JSON with line and column.  Duplicate keys are refused.  E_TOO_LARGE, before
 * anything is parsed, by json_memory(). */
int json_parse(const char *text, size_t len, json_t **out, struct error *err);
/* The same of a text that has secrets: the message says where, and quotes nothing. */
int json_parse_secret(const char *text, size_t len, json_t **out, struct error *err);
/* A flag of jansson's dumps by which the value's numbers are as short as they can be and are read
 * back the same: 0.037, not 0.036999999999999998. */
size_t json_precision(const json_t *value);

int json_get_str(json_t *obj, const char *path, const char *field, const char **out,
                 struct error *err);
int json_get_u64(json_t *obj, const char *path, const char *field, uint64_t *out,
                 struct error *err); /* integers >= 0 */
int json_get_i64(json_t *obj, const char *path, const char *field, int64_t *out, struct error *err);
int json_get_bool(json_t *obj, const char *path, const char *field, bool *out, struct error *err);
/* A size as integer bytes or as text ("10MiB"); a duration as integer ms or text ("5s"). */
int json_get_size(json_t *obj, const char *path, const char *field, uint64_t *out,
                  struct error *err);
int json_get_duration_ms(json_t *obj, const char *path, const char *field, uint64_t *out,
                         struct error *err);
int json_get_object(json_t *obj, const char *path, const char *field, json_t **out,
                    struct error *err); /* borrowed */
int json_get_array(json_t *obj, const char *path, const char *field, json_t **out,
                   struct error *err); /* borrowed */
int json_need_str(json_t *obj, const char *path, const char *field, const char **out,
                  struct error *err);
int json_need_u64(json_t *obj, const char *path, const char *field, uint64_t *out,
                  struct error *err);
/* E_JSON naming the first field of obj that is not in the NULL-terminated list. */
int json_only_fields(json_t *obj, const char *path, const char *const *allowed, struct error *err);
/* The body of a control call {"action": action, "name": …, "value": {…}}: *name and *value (NULL
 * where there is none) belong to *doc, which is the caller's also after an error.  With `value`
 * NULL the call takes none.  E_JSON, E_INVALID. */
int json_parse_action(const char *text, size_t len, const char *action, json_t **doc,
                      const char **name, json_t **value, struct error *err);

/* A string of any bytes (a message that quotes a name of a file): one that is no part of valid
 * UTF-8 becomes the four characters \xNN. */
json_t *json_string_escaped(const char *text);

/* In place, of every URL among its texts: "http://h/x?token=y" becomes "http://h/x?…".  What is in
 * a query may be a secret (a presigned URL). */
void json_mask_queries(json_t *doc);
char *json_text(const json_t *value); /* compact, keys in insertion order; malloc'ed */
