/* The objects that a job pins without a link for each.
 *
 * A set has the version of each object that the job must read.  As long as the object is of that
 * version the job reads the object's own file.  Who is about to replace or remove that file calls
 * pin_sets_keep() first, and the file gets a link in the job's directory:
 *
 *     <mountpath>/.dfc/jobs/<job id>/in-<series>-<32 hex digits>
 *
 * So a job over a million small objects makes links of those alone that change meanwhile.  A set is
 * in memory: after a restart the job compares the versions, or pins anew.
 *
 * Any thread.  The lock of the object's name (store/object_parts.h) is held for pin_set_add() and
 * pin_sets_keep(): no change of an object comes between a look at it and its pin. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "target/format/object_path.h"
#include "target/format/version.h"

struct mountpath;
struct pin_set;
struct pin_sets;

enum { PIN_LINK_NAME = 53 }; /* "in-", 16 hex digits, "-", 32 hex digits */

/* The name of a pin's link.  The store refuses a second object of the same hash, so that no pin
 * takes another's place. */
void pin_link_name(uint64_t series, const struct object_path *path, char out[static PIN_LINK_NAME]);
/* Makes the link of an object's file, in place of an earlier one of that name.  *path, where it is
 * wanted, is the link's.  E_OBJECT_NOT_FOUND: there is no such file. */
int pin_link(struct mountpath *mp, const struct object_path *file, const char *job_id,
             const char *link_name, char **path, struct error *err);

/* All sets of a target. */
struct pin_sets *pin_sets_new(void);
void pin_sets_free(struct pin_sets *all); /* none is left */
/* The file of this version goes: it gets the links that sets want.  A link that cannot be made is
 * logged, and its job pins anew. */
void pin_sets_keep(struct pin_sets *all, struct mountpath *mp, uint64_t bucket_id,
                   const struct object_path *path, const struct version *version);
/* No job wants a link of anything. */
bool pin_sets_idle(const struct pin_sets *all);

/* Texts are copied. */
struct pin_set *pin_set_new(struct pin_sets *all, uint64_t bucket_id, const char *job_id);
void pin_set_free(struct pin_set *set); /* NULL is fine */
/* Begins with no object; from now on its links have this series. */
void pin_set_begin(struct pin_set *set, uint64_t series);
/* No further link is made, and no object is in it: before the job's directories are removed. */
void pin_set_end(struct pin_set *set);
/* In place of an earlier version of the object.  `generation`: of the roster in force. */
void pin_set_add(struct pin_set *set, const struct object_path *path, const struct version *version,
                 uint64_t generation);
/* Is it this version that was pinned, and that has no link? */
bool pin_set_has(struct pin_set *set, const struct object_path *path,
                 const struct version *version);
/* Is the object's file, on the mountpath where it belongs, what was pinned?  No, too, where the
 * mountpaths have changed since: then its version tells. */
bool pin_set_trusts(struct pin_set *set, const struct object_path *path, uint64_t generation);
