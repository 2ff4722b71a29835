/* What an index's process leaves behind when it is killed: the file `session` in the index's
 * directory, which is mapped into memory, so that what is written there needs no system call, and
 * is still there after kill -9 as long as the machine runs.
 *
 * - head: whose it is (the machine's boot, the file system and this mount of it, the file itself: a
 *   copy is another's), whether the index is complete, whether it is distrusted
 * - intents: the names with a change under way; index and file may differ for these, and only these
 *
 * A change sets its name's intent before the index is written and takes it away when the file says
 * the same as the index.  The index's own pages need no more than that: without a sync they, too,
 * are in the page cache, where the death of a process does not reach them.  After a restart of the
 * machine, or on another mount, nothing of this can be relied on, and session_open() says so.
 *
 * - watch: who has looked at all names says so, with a number of its own, and is told later, by
 *   another process, too, which names may have changed since: by their hashes, so that there are
 *   some too many.  What breaks the session ends the watch
 *
 * A process that dies of a fault of its own (SIGSEGV, SIGBUS, abort) leaves `distrusted` behind:
 * the cause may be the index's file, and the next process must not run into it again.
 *
 * Any thread may call anything but open and close. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

/* Of the index's file and of this one: another one's are of no use. */
#define INDEX_FORMAT "dfc index 2\n"

struct index_session;

/* Takes the session of `dir` over.  *broken: NULL where the index is what the intents leave of it,
 * or why it cannot be known what the index holds (a constant text); then there are no intents.
 * *distrusted: the last process did not trust the index.
 * A disk without room for the file still gets a session, which does not outlive the process. */
int session_open(const char *dir, struct index_session **out, const char **broken, bool *distrusted,
                 struct error *err);
void session_close(struct index_session *s);
DEFINE_CLEANUP(struct index_session, session_close);

/* Is everything in the index?  False also ends all intents: the index is made anew. */
void session_set_complete(struct index_session *s, bool complete);
/* What the next process finds in the index is not to be relied on; and it is again, since it was
 * made anew (unless there were too many intents: those names are not known). */
void session_distrust(struct index_session *s);
void session_trust(struct index_session *s);

/* Twice for one name is once.  With too many at a time the session is distrusted. */
void session_intend(struct index_session *s, uint64_t bucket_id, const char *name);
void session_settle(struct index_session *s, uint64_t bucket_id, const char *name);
/* The number of the watch from here on; 0: none. */
void session_watch(struct index_session *s, uint64_t number);
uint64_t session_watched(struct index_session *s);
/* Since the watch with this number began; where that is not the present one anything may have. */
bool session_may_have_changed(struct index_session *s, uint64_t number, uint64_t bucket_id,
                              const char *name);
/* As if it had changed. */
void session_assume_changed(struct index_session *s, uint64_t bucket_id, const char *name);
/* How many changes have begun so far; *idle: none is under way. */
uint64_t session_changes(struct index_session *s, bool *idle);
/* Waits until every change that is under way now has been settled, at most so long: later ones are
 * not waited for.  False: some have not. */
bool session_wait_settled(struct index_session *s, uint64_t timeout_ms);
/* fn() for each intent.  Nothing else uses the session; fn may settle its name. */
int session_each(struct index_session *s,
                 int (*fn)(void *ctx, uint64_t bucket_id, const char *name, struct error *err),
                 void *ctx, struct error *err);

/* Runs fn() while no change can begin, if none has begun since session_changes() said `changes`
 * and idle.  Its value, or E_NOT_READY where one has. */
int session_if_unchanged(struct index_session *s, uint64_t changes, int (*fn)(void *ctx),
                         void *ctx);
