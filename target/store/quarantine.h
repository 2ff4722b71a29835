/* Quarantine: a damaged file is moved aside, with all that is known of it, and never removed.
 *
 *   <mountpath>/.dfc/quarantine/<bucket id>-<hash>-<inode>        the file, its attributes on it
 *   <mountpath>/.dfc/quarantine/<bucket id>-<hash>-<inode>.json   what was found, when, by which
 * job
 *
 * In its place stays an empty file, a *stub*, so that the name is no 404: it has the attribute that
 * the damaged file had, where that could be read, and so the object is listed, and its version
 * counts; a read of it fails with E_CORRUPT, as one of the damaged file did.  What is put, deleted,
 * or brought from a good copy takes the stub's place.  Nobody but the operator removes what is in
 * quarantine.
 *
 *   link into quarantine/ ─▶ note, synced ─▶ stub in tmp/, synced ─▶ exchange with the file ─▶ sync
 *
 * A crash between leaves the file in both places, and the next time finds it again.
 * Fault point: scrub.quarantine. */
#pragma once

#include "target/format/attr.h"
#include "target/disk/mountpath.h"

/* On a stub: the job that made it, a space, the name in quarantine/. */
#define QUARANTINE_XATTR "user.dfc.quarantined"
/* In place of the job's, alone: nothing was damaged, and nothing lies in quarantine.  The object's
 * bytes have not come here, since there was no room for them (hollow.h). */
#define QUARANTINE_NO_ROOM "no-room"

struct quarantine {
    struct mountpath *mp;
    const char *path;        /* "/d1/.dfc/obj/7/3f/3f09…" */
    uint64_t inode;          /* of the file that was found to be damaged */
    const struct attr *attr; /* what the stub says; NULL: nothing can be said */
    /* For the note: */
    const char *job_id;
    uint64_t bucket_id;
    const char *name; /* or "": it is not known */
    const char *what, *detail;
};

/* Under the lock of the name whose place it is, where that is known.  0 also where the file is
 * another one by now: then nothing was done, and *taken is false. */
int quarantine_take(const struct quarantine *q, bool *taken, struct error *err);

/* Gives a stub without an attribute one, durably; under the lock of the name, and it is one. */
int quarantine_name_stub(const struct mountpath *mp, const char *path, const struct attr *attr,
                         struct error *err);

enum quarantine_look {
    QUARANTINE_NO_FILE,
    QUARANTINE_NO_STUB,
    QUARANTINE_STUB,
    QUARANTINE_UNKNOWN, /* the disk does not say */
};
/* `job` is whose it is, or "". */
enum quarantine_look quarantine_look(const char *path, char job[static ATTR_JOB_MAX + 1]);

/* Marks an empty file, which is to become one, as a stub whose bytes have found no room; or, where
 * `stub` is not NULL and a stub, as what that is marked. */
int quarantine_mark_no_room(const struct mountpath *mp, const char *stub, int fd,
                            struct error *err);
/* Is this open file a stub of either kind? */
bool quarantine_fd_is_stub(int fd);
/* Marks the file `to` of mp as the stub `from` is marked, which may lie on another mountpath. */
int quarantine_copy_mark(const struct mountpath *mp, int from, int to, struct error *err);
/* Is the file at `path`, or this open one, one whose bytes have found no room? */
bool quarantine_is_no_room(const char *path);
bool quarantine_fd_is_no_room(int fd);

/* What the stub at `path` stands for, to be read; -1 and errno: ENODATA where that is none, ENOENT
 * where nothing lies in quarantine. */
int quarantine_open(const struct mountpath *mp, const char *path);

/* The names that the notes there have, not all of them once; at most `most`. */
int quarantine_names(const struct mountpath *mp, size_t most,
                     void (*each)(void *ctx, uint64_t bucket_id, const char *name), void *ctx,
                     struct error *err);
/* Something else whenever a file has come there, or gone; 0: the disk does not say. */
uint64_t quarantine_stamp(const struct mountpath *mp);
/* How many files lie there. */
int quarantine_count(const struct mountpath *mp, uint64_t *files, struct error *err);
