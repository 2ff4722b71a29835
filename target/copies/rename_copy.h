/* Rename by a copy: the object gets its new name first, then loses the old one.
 *
 *   open ─▶ copy to the new name's owner, on its disk ─▶ remove the old name, if it still has it
 *
 * So a reader always finds the old name or the new one; for a moment, and for good after a crash in
 * between, both.  Then the same request again does the rest.  The owner of the old name does all of
 * it; the new name's owner decides the copy's version, as for any PUT, and the tombstone's version
 * is greater than the old object's.
 *
 * The copy is on the disk before the tombstone is made, also where the bucket's rule is async: a
 * loss of power must not take an object that was there for long.
 *
 * All of these wait. */
#pragma once

#include "target/store/object.h"

struct object_call;

/* What a row of the write paths does its own way. */
struct rename_steps {
    /* The old name's object, the newest there is. */
    int (*open)(struct object_call *call, struct object *o, struct error *err);
    /* `copied` was copied; the condition is that the old name has it still. */
    int (*remove)(struct object_call *call, const struct attr *copied,
                  const struct object_condition *condition, struct error *err);
};

/* E_PRECONDITION: the object was written meanwhile, or a condition of the request does not hold. */
int rename_by_copy(struct object_call *call, const struct rename_steps *steps, struct error *err);

/* A step: opens what this target has.  E_NOT_READY while an earlier owner has something newer. */
int rename_open_here(struct object_call *call, struct object *o, struct error *err);
/* The same without asking earlier owners. */
int rename_open_alone(const struct object_call *call, struct object *o, struct error *err);
