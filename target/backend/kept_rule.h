/* When what lets us in, and ends (keys, tokens), is asked for anew.  Pure; times are the wall
 * clock's.
 *
 *     got                       renew                            end
 *      |-- it is used ... ------ | -- one asks, the others use it -- | -- all wait for who asks
 *
 * "renew" is five minutes before the end, or at the half of a shorter life, and later by up to a
 * half of that time at random: so nodes that began together do not ask together.  A renewal that
 * fails puts the next one off, and nothing else.
 *
 * Who needs one and has none (it has ended, or the backend has refused it to this one) asks, or
 * waits for who does; but once such a question has failed nobody waits any more, until there is an
 * answer: then one asks, after a pause that doubles, and who comes meanwhile has that failure at
 * once.  So somebody who does not answer holds one up, and not all.  A failure that was long before
 * the next question began is forgotten.
 *
 * One that is refused within the pause after it came is not asked for again: it is what there is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kept_times {
    bool is_there;
    int64_t got_ms, renew_ms, end_ms;
    unsigned failures; /* of questions of who had none, since it was got */
    int64_t failed_ms; /* the last of them */
};

struct kept_case {
    int64_t now_ms, pause_ms; /* the first pause; 0: none */
    bool asking;              /* somebody does */
    bool refused;             /* what is there, to who wants it now */
};

enum kept_move {
    KEPT_USE,
    KEPT_RENEW, /* ask, and use the old one where that fails */
    KEPT_ASK,
    KEPT_WAIT,
    KEPT_FAIL, /* as the last question did */
};

bool kept_rule_holds(const struct kept_times *t, int64_t now_ms);
enum kept_move kept_rule_move(const struct kept_times *t, const struct kept_case *c);
/* `luck` is any number. */
void kept_rule_got(struct kept_times *t, int64_t now_ms, int64_t end_ms, uint64_t luck);
void kept_rule_not_renewed(struct kept_times *t, int64_t now_ms, uint64_t luck);
/* The question of one who has none. */
void kept_rule_begins(struct kept_times *t, const struct kept_case *c);
void kept_rule_failed(struct kept_times *t, int64_t now_ms);
