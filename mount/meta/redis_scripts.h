/* What the server does whole or not at all: scripts in Lua.
 *
 * COMMIT    KEYS: the hash of each step, and the number of commits
 *           ARGV: five words a step (what, shape, field, two operands), and the commit's stamp
 *           gives  the number of this commit; 0 if it changes nothing; -i: step i does not hold
 * READ      KEYS: the hash of each question
 *           ARGV: six words a question (ask, shape, field, low, high, limit)
 *           gives  of a value: it, or nil.  Of an entry: it and the attribute.
 *                  Of a page: 1 or 0 (more), then the fields and values
 * HELLO     a new connection: the format, and whether commits were lost
 *           ARGV: '1' to make the format, the server's run id, and of the last commit that the
 *                 client knows the run id ('' for none) and the number
 *           gives  format or '', number, 1 or 0 (all commits are there)
 *
 * A cut is a snapshot that is being read.  It has a hash, {dfcv}cut: the id of its reader, and the
 * value that each changed key had before (its encoded key; '' if it was absent).  COMMIT keeps
 * these, deletes the hash when it has too many, and counts itself there.
 *
 * CUT_BEGIN KEYS: the cut, the number of commits.  ARGV: id, seconds until the cut expires
 *           gives  1; 0: another reader has a cut
 * CUT_PAGE  KEYS: hashes.  ARGV: id, seconds, a cursor of HSCAN, about how many fields
 *           gives  for each hash the next cursor, then fields and values as they were.  Of the cut
 *                  itself: all that it keeps.  nil: the cut is gone
 * CUT_END   KEYS: the cut, the number of commits.  ARGV: id
 *           gives  1; 0: the cut is gone; 2: a client without these scripts has made commits
 *
 * Lua has no 64-bit numbers and compares text by locale.  So fields are compared as two halves, and
 * names byte for byte. */
#pragma once

enum redis_script {
    REDIS_COMMIT,
    REDIS_READ,
    REDIS_HELLO,
    REDIS_CUT_BEGIN,
    REDIS_CUT_PAGE,
    REDIS_CUT_END,
    REDIS_SCRIPTS,
};

#define REDIS_CUT_MOST 1000000 /* changed keys */

enum { REDIS_STEP_WORDS = 5, REDIS_ASK_WORDS = 6, REDIS_FORMAT = 1 };

extern const char *const redis_scripts[REDIS_SCRIPTS];
