/* Which pieces of a directory stay: pure.
 *
 * S3-FIFO (Yang et al., SOSP 2023) in bytes.  New pieces enter a small queue of a tenth.  At its
 * end a piece that was read again moves to the main queue, any other leaves.  At the end of the
 * main queue a piece that was read since moves to its begin, any other leaves.  What left is
 * remembered by its name, as a ghost.  A ghost that returns soon enters the main queue at once.
 *
 * Two rules precede it:
 * - A data set that was not read for `idle_ms` leaves first, the one idle for longest, whole.
 * - A cache that is read in rounds larger than itself would lose each piece before its next use.
 *   So if names return in such numbers for longer than the cache needs to turn over, most new
 *   pieces are refused: hits then are near the cache's share of the bytes in use.
 *
 * The caller holds a lock. */
#pragma once

#include "cache/piece.h"
#include "common/cleanup.h"

struct policy_options {
    uint64_t limit_bytes;
    uint64_t idle_ms; /* of a data set */
    uint64_t proof_ms;
    uint64_t seed; /* of refusals */
};

struct policy;

struct policy *policy_new(const struct policy_options *options);
void policy_free(struct policy *p);
DEFINE_CLEANUP(struct policy, policy_free);

bool policy_has(const struct policy *p, const struct piece_id *id);
/* A piece is read.  False: it is not there. */
bool policy_hit(struct policy *p, const struct piece_id *id, uint64_t now_ms);
/* May a piece be added?  Asked when `bytes` of it were missed. */
bool policy_admits(struct policy *p, const struct piece_id *id, size_t bytes);
void policy_add(struct policy *p, const struct piece_id *id, uint64_t set, size_t bytes,
                uint64_t now_ms);
/* The whole of an entity whose pieces were read again: it enters the main queue. */
void policy_join(struct policy *p, const struct piece_id *id, uint64_t set, size_t bytes,
                 uint64_t now_ms);
bool policy_remove(struct policy *p, const struct piece_id *id); /* false: it is not there */
/* What is held does not leave, and neither does its set: +1, and -1 later.  A name may be held
 * before it is there, and stays held if it is removed. */
void policy_hold(struct policy *p, const struct piece_id *id, int by);
/* All bytes of the piece were compared with their sums; that counts for `proof_ms`. */
void policy_prove(struct policy *p, const struct piece_id *id, uint64_t now_ms);
void policy_doubt(struct policy *p, const struct piece_id *id); /* they must be compared again */
bool policy_is_proved(const struct policy *p, const struct piece_id *id, uint64_t now_ms);

struct policy_piece {
    struct piece_id id;
    uint64_t set;
    size_t bytes;
};
/* The piece that leaves next, which is removed.  False: there is none. */
bool policy_evict(struct policy *p, uint64_t now_ms, struct policy_piece *out);

uint64_t policy_limit(const struct policy *p);
uint64_t policy_bytes(const struct policy *p);
uint64_t policy_count(const struct policy *p);
bool policy_refuses(const struct policy *p); /* most new pieces, now */
