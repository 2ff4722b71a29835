/* Flattening: the bytes of a plog become the object of its name.  Pure: the world is a plog_store.
 *
 *   begin   a mark in the head; then there must be no record.  The head covers all segments.
 *   (the caller stores the bytes that the map shows under the head's name, If-Match look.etag)
 *   end     the container of that id is removed
 *
 * A sync stores its record before it reads the head.  So either begin finds the record, and fails;
 * or the sync finds the mark, and takes it off before it acknowledges: then the caller's If-Match
 * fails; or the sync finds the flat object, and fails.  A merge takes the mark off, too.  A mark
 * that a crash left behind costs the next sync one call, and is harmless.
 *
 * Two heads may share a container: a backup or a job has copied one.  The copy does not learn of
 * later merges, so it would show less than the plog has.  Begin refuses a head that is older than
 * the newest merged index.  A head without the content type (type.h) is a copy that a client has
 * put: it is not merged, and the caller does not call end.  `dfcctl plog gc` removes a container
 * that no head has. */
#pragma once

#include "plog/merge.h"
#include "plog/store.h"

/* is_typed: the object has the content type of a head, and may be merged.
 * The caller frees *l.  E_PLOG_BUSY: sessions are open, or not merged.  E_NOT_FOUND; E_INVALID: no
 * plog.  E_CORRUPT: the head is an old copy of another one, or its merged index is lost. */
int plog_flatten_begin(const struct plog_store *st, const char *object, bool is_typed,
                       struct plog_look *l, struct error *err);
/* What it means that the caller's read or PUT has failed with `code`, of which err tells.
 * E_CORRUPT: a segment is lost, as the head is still the marked one, `etag`.  E_PRECONDITION: the
 * plog was written, replaced or removed meanwhile.  Else `code`. */
int plog_flatten_failed(const struct plog_store *st, const char *object, const char *etag, int code,
                        struct error *err);
int plog_flatten_end(const struct plog_store *st, const char *id, struct error *err);
