/* How full a disk is, and what that means for who wants to write: pure.
 *
 *   0 ───────── space_low ───────── space_high ───────── space_out ─────── reserve ─ 100 %
 *                     a warning begins ▲                     ▲ PUT is refused      ▲ always was
 *          ▲ … and ends
 *
 * In percent of the file system, as its users may fill it.  The reserve, in bytes, is left for
 * tombstones and the index whatever the percentages say.  Reads and deletes go on throughout. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct space_limits {
    unsigned low, high, out; /* percent; out 0: none of the three */
    uint64_t reserve_bytes;  /* at most 1/16 of the file system */
};

struct space {
    uint64_t total, available; /* bytes */
};

enum space_state { SPACE_FINE, SPACE_HIGH, SPACE_OUT };

/* low < high < out <= 100. */
int space_limits_check(const struct space_limits *l, struct error *err);
unsigned space_percent(const struct space *s); /* used, rounded down */
/* What it is now, when it was `before`: the warning ends at low, not at high. */
enum space_state space_state(const struct space_limits *l, const struct space *s,
                             enum space_state before);
const char *space_state_name(enum space_state state); /* "fine", "high", "out" */
/* What may still be written before PUT is refused. */
uint64_t space_room(const struct space_limits *l, const struct space *s);

/* How far room is asked for ahead of the bytes of a file that grows: `first` at once, then as much
 * again as there is, at most `most`. */
struct space_steps {
    uint64_t first, most;
};
/* The end of the step that has the byte at `at`; the same for all who ask. */
uint64_t space_step_end(const struct space_steps *s, uint64_t at);

/* May `size` more bytes go to the disk at `path`?  E_NO_SPACE with what to do. */
int space_admit(const struct space_limits *l, const char *path, const struct space *s,
                uint64_t size, struct error *err);
/* The same of an object without its bytes: it may take half of the reserve, and tombstones keep the
 * rest. */
int space_admit_known(const struct space_limits *l, const char *path, const struct space *s,
                      uint64_t size, struct error *err);
