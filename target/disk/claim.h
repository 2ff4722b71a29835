/* Room for a file that grows, before its bytes are written: asked for and taken in steps (space.h),
 * so that neither what nobody announced nor what many write at once goes beyond `space_out` and
 * `space_reserve`.
 *
 *   from ──────────── to    admitted (space_admit), and allocated behind the file's end: so the
 *                           file system counts it for whoever asks next
 *
 * What is allocated beyond the last byte is given back by claim_end(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "target/disk/space.h"

/* `path` names the mountpath in messages.  E_NO_SPACE. */
int claim_admit(const struct space_limits *l, const char *path, int fd, uint64_t size,
                struct error *err);
/* The same for an object without its bytes (space_admit_known). */
int claim_admit_known(const struct space_limits *l, const char *path, int fd, uint64_t size,
                      struct error *err);
/* Allocates these bytes; where the file system cannot, nothing is done. */
int claim_allocate(const char *path, int fd, uint64_t from, uint64_t to, struct error *err);
/* Both. */
int claim_take(const struct space_limits *l, const char *path, int fd, uint64_t from, uint64_t to,
               struct error *err);
/* The file has so many bytes: what is allocated behind them goes back. */
int claim_end(const char *path, int fd, uint64_t size, struct error *err);
