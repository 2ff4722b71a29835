/* A session: one writer that has a plog open.  It says in which order things are stored, so that
 * whatever was acknowledged is seen, and stays.  Pure: the world is a plog_store.
 *
 *   open     the head is read, or made
 *   begin    before a segment: the session's record exists; at the first segment of a phase the
 *            epoch is found
 *   (the segment is stored)
 *   sync     the record is refreshed, or made again where a merge took the session for dead; the
 *            head is still that of this plog, and has no mark of a flattening (flatten.h): the
 *            sync takes it off.  Only then is the phase acknowledged.
 *   close    the record `.c` is stored after the last segment, in place of the refresh
 *
 * Several sessions share one record: that of the session that was opened by name, the owner.  It
 * stores the record and gives a token; a session by token is opened without a call.
 *
 *   begin    a session by token stores no record
 *   sync     the shared record is read, then stored anew If-Match.  If that fails since the record
 *            has changed meanwhile, another session has stored it after this one's segments, which
 *            is as good.  If the record is gone, the session makes one of its own, and from then on
 *            is as any other
 *   close    a sync.  Then the record `.c` of the owner is looked for: if it is there, the owner
 *            does not list the segments any more, and the session merges
 *
 * The owner alone refreshes the record as time passes.  When it dies, the syncs of the others keep
 * the record alive; if they come too late, they make records of their own.
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
#include "plog/token.h"

struct plog_session {
    const char *object; /* the head's name; the caller's */
    char id[PLOG_ID_CHARS + 1];
    uint64_t session, writer; /* random; session: of the record */
    uint64_t refreshed;       /* how often: no two versions of the record are equal */
    char etag[PLOG_ETAG_MAX]; /* of the record; "": there is none that we know of */
    uint32_t epoch, n;        /* of the next segment */
    bool in_phase;            /* the epoch is the present phase's */
    bool is_shared;           /* it has given a token */
    bool by_token;            /* the record is that of the session that has given the token */
    bool is_closed, must_merge;
};

struct plog_open {
    bool create;    /* where there is nothing; else E_NOT_FOUND */
    bool exclusive; /* with create: E_EXISTS where there is something */
    const char *id; /* NULL: of any plog; else E_PRECONDITION where it is another one */
    uint64_t mode, uid, gid;
};

/* *head and etag (its version) as they are when the call ends.  E_INVALID: the object is no plog;
 * etag is set then, too. */
int plog_head_read(const struct plog_store *st, const char *object, struct plog_head *head,
                   char etag[static PLOG_ETAG_MAX], struct error *err);
/* Of a plog without bytes; mode, uid and gid stay.  Its id is new. */
void plog_head_new(const struct plog_store *st, struct plog_head *head);
int plog_head_put(const struct plog_store *st, const char *object, const struct plog_head *head,
                  const char *if_match, struct error *err);
int plog_session_open(const struct plog_store *st, const char *object, const struct plog_open *how,
                      struct plog_session *s, struct error *err);
/* The record exists from now on, so that the others need not make it.  The token lacks its bucket.
 * The token of a session by token is of the same record. */
int plog_session_share(const struct plog_store *st, struct plog_session *s, struct plog_token *t,
                       struct error *err);
/* Without a call: whether the plog is still there is seen by the first sync.  The writer is a new
 * one, however often the token is used.  The token lives as long as the session. */
void plog_session_open_token(const struct plog_store *st, const struct plog_token *t,
                             struct plog_session *s);
/* *name gets epoch, writer and n.  Each begin is for one segment. */
int plog_session_begin(const struct plog_store *st, struct plog_session *s,
                       struct plog_segment_name *name, struct error *err);
bool plog_session_has_begun(const struct plog_session *s); /* a segment, or to share its record */
/* Says that the session lives; to be called every so often.  Nothing before the session has begun,
 * or by token. */
int plog_session_refresh(const struct plog_store *st, struct plog_session *s, struct error *err);
/* All segments are stored.  E_PRECONDITION: the file has been removed or replaced, and what was
 * written since the last sync is in no file. */
int plog_session_sync(const struct plog_store *st, struct plog_session *s, struct error *err);
/* The same, and the session ends.  One that wrote nothing leaves nothing.  s->must_merge: call
 * merge then. */
int plog_session_close(const struct plog_store *st, struct plog_session *s, struct error *err);
/* The file becomes an empty one by a new head, unless it is empty.  E_PRECONDITION: others have it
 * open; cut it.  Or it has not the id `only`; NULL: any.  now: its id at the end.  Parts of the old
 * container that cannot be removed stay, and are no error. */
int plog_head_replace(const struct plog_store *st, const char *object, const char *only,
                      char now[static PLOG_ID_CHARS + 1], struct error *err);
/* The head first, then the container.  The container stays if the head was gone when it was to be
 * removed: it may have another name.  What a writer stores later stays until it is collected.  An
 * error that names the container: the head is gone, and parts of the container are left. */
int plog_unlink(const struct plog_store *st, const char *object, struct error *err);
/* Of a plog that has no head any more: removes what it can; the result is the first failure. */
int plog_drop_container(const struct plog_store *st, const char *id, struct error *err);
