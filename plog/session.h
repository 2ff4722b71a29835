/* A session: one writer that has a plog open.  It says in which order things are stored, so that
 * whatever was acknowledged is seen, and stays.  Pure: the world is a plog_store.
 *
 *   open     the head is read, or made
 *   begin    before a segment: the session's record exists; at the first segment of a phase the
 *            epoch is found
 *   (the segment is stored)
 *   sync     the record is refreshed, or made again where a merge took the session for dead; the
 *            head is still that of this plog.  Only then is the phase acknowledged.
 *   close    the record `.c` is stored after the last segment, in place of the refresh
 *
 * A phase is what is written from one sync to the next.  Its epoch is greater than that of every
 * segment that was acknowledged before its first write: the list that says so comes later.  So
 * after a barrier where all have called sync, later writes hide earlier ones.
 *
 * An error of a call here is one of the store; the call can be repeated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plog/head.h"
#include "plog/store.h"

struct plog_session {
    const char *object; /* the head's name; the caller's */
    char id[PLOG_ID_CHARS + 1];
    uint64_t session, writer; /* random */
    uint64_t refreshed;       /* how often: no two versions of the record are equal */
    char etag[PLOG_ETAG_MAX]; /* of the record; "": there is none that we know of */
    uint32_t epoch, n;        /* of the next segment */
    bool in_phase;            /* the epoch is the present phase's */
    bool is_closed;
};

struct plog_open {
    bool create;    /* where there is nothing; else E_NOT_FOUND */
    bool exclusive; /* with create: E_EXISTS where there is something */
    uint64_t mode, uid, gid;
};

/* *head and etag (its version) as they are when the call ends.  E_INVALID: the object is no plog.
 */
int plog_head_read(const struct plog_store *st, const char *object, struct plog_head *head,
                   char etag[static PLOG_ETAG_MAX], struct error *err);
int plog_session_open(const struct plog_store *st, const char *object, const struct plog_open *how,
                      struct plog_session *s, struct error *err);
/* *name gets epoch, writer and n.  Each begin is for one segment. */
int plog_session_begin(const struct plog_store *st, struct plog_session *s,
                       struct plog_segment_name *name, struct error *err);
bool plog_session_has_begun(const struct plog_session *s); /* a segment */
/* Says that the session lives; to be called every so often.  Nothing before the first segment. */
int plog_session_refresh(const struct plog_store *st, struct plog_session *s, struct error *err);
/* All segments are stored.  E_PRECONDITION: the file has been removed or replaced, and what was
 * written since the last sync is in no file. */
int plog_session_sync(const struct plog_store *st, struct plog_session *s, struct error *err);
/* The same, and the session ends.  One that wrote nothing leaves nothing.  Call merge then. */
int plog_session_close(const struct plog_store *st, struct plog_session *s, struct error *err);
/* The file becomes an empty one by a new head, unless it is empty.  E_PRECONDITION: others have it
 * open; cut it.  Parts of the old container that cannot be removed stay, and are no error. */
int plog_head_replace(const struct plog_store *st, const char *object, struct error *err);
/* The head first, then the container.  What a writer stores later stays until it is collected.  An
 * error that names the container: the head is gone, and parts of the container are left. */
int plog_unlink(const struct plog_store *st, const char *object, struct error *err);
