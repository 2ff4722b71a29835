/* What the SDK asks of many objects of a bucket, as the native job takes it.  Pure.
 *
 *   {"objnames": [name, …]} or {"template": text}, and the options of the action
 *
 * A template without a range is a prefix, as in AIStore; "" is the whole bucket.  Nothing that
 * matches is no failure to the SDK: the native value has "allow_empty". */
#pragma once

#include <jansson.h>

#include "common/error.h"

/* *out: the value of a native job (xaction/objects_spec.h).  E_UNSUPPORTED: an option asks for what
 * is not done; E_JSON, E_SPEC: it is no such request. */
int group_form_delete(json_t *value, json_t **out, struct error *err); /* evict, too */
int group_form_prefetch(json_t *value, json_t **out, struct error *err);
int group_form_copy(json_t *value, json_t **out, struct error *err);
/* Into one archive, of the objects of `bucket`: {"archname", "tobck", "mime", "isbn"}. */
int group_form_archive(json_t *value, const char *bucket, json_t **out, struct error *err);
/* Of a bucket, to another one: {"prefix", "prepend", …}. */
int group_form_copy_bucket(json_t *value, const char *to, json_t **out, struct error *err);
