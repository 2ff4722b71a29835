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
 * Lua has no 64-bit numbers and compares text by locale.  So fields are compared as two halves, and
 * names byte for byte. */
#pragma once

enum redis_script { REDIS_COMMIT, REDIS_READ, REDIS_HELLO, REDIS_SCRIPTS };

enum { REDIS_STEP_WORDS = 5, REDIS_ASK_WORDS = 6, REDIS_FORMAT = 1 };

extern const char *const redis_scripts[REDIS_SCRIPTS];
