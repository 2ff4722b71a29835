/* What restoring documents would change: pure.
 *
 *   [{"change": "add" | "remove" | "replace" | "set", "what": "bucket" | "setting", "name",
 *     "from", "to"}]
 *
 * add: a bucket that is not there now; remove: one that is only there now; replace: there is one of
 * that name, but it is another one; set: properties, or a setting's value, differ.  from and to are
 * what there is and what there will be: a bucket's id (null: a new one, without objects) or
 * properties, a setting's text (null: its default). */
#pragma once

#include <jansson.h>

#include "common/buf.h"

/* Both are state documents. */
json_t *restore_plan(json_t *present, json_t *wanted);
/* One change as a line for people. */
void restore_plan_line(json_t *change, struct buf *out);
