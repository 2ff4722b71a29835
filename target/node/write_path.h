/* How a bucket keeps an object, for the calls that change one.  The ways are rows of a table
 * (http/write_path.c); the first row that takes an admitted call serves it.  A new way is one file
 * and one row.
 *
 *   PUT      open ─▶ take, take, … ─▶ commit
 *              └───────┴─▶ abort: the body was cut, or a step failed
 *   DELETE   remove
 *   rename   await ─▶ rename, again while the object is written meanwhile
 *
 * commit and remove end with call->done(), or with a reply of their own.  await and rename may
 * wait; all others run in an HTTP thread or a worker, and do not.  A member is NULL where the row
 * takes no such call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "target/store/object.h"

struct object_call;

/* A PUT between open and commit. */
struct write_parts {
    struct object_put *put; /* NULL: no bytes are kept on this target */
    void *own;              /* the row's, or NULL */
};

struct write_path {
    const char *name;
    /* The row sees to the owners of the name, earlier ones and those to come.  Else the caller asks
     * earlier owners first, and checks the present ones under the name's lock. */
    bool sees_to_owners;
    bool (*takes)(const struct object_call *call);
    /* Begins what `spec` says, which the row may change. */
    int (*open)(struct object_call *call, struct object_put_spec *spec, struct write_parts *out,
                struct error *err);
    /* How many of these bytes were taken; the body is resumed when there is room again.  NULL: the
     * put takes all. */
    size_t (*take)(struct write_parts *parts, const char *data, size_t len, struct error *err);
    /* All bytes have come.  Takes the parts. */
    void (*commit)(struct object_call *call, struct write_parts *parts);
    void (*abort)(void *own); /* NULL: the row has none */
    void (*remove)(struct object_call *call);
    /* Deletions of the name that began before this have ended. */
    int (*await)(const struct object_call *call, struct error *err);
    /* E_PRECONDITION: the object was written meanwhile, or a condition does not hold. */
    int (*rename)(struct object_call *call, struct error *err);
};

/* Never NULL; the call has its bucket. */
const struct write_path *write_path_of(const struct object_call *call);

/* Steps that rows share: the put of this target's store alone. */
int write_open_here(struct object_call *call, struct object_put_spec *spec, struct write_parts *out,
                    struct error *err);
void write_commit_here(struct object_call *call, struct write_parts *parts);

/* The rows. */
extern const struct write_path moved_path, staged_path, passed_path, copies_path, one_path;
extern const struct write_path slices_path;
extern const struct write_path through_path, back_path;
/* Of a PUT whose body has members of the object (archive/appends.h). */
extern const struct write_path append_path;
