/* When what lets us in, and ends (keys, tokens), is asked for anew.  Pure; times are the wall
 * clock's.
 *
 *     got                       renew                            end
 *      |-- it is used ... ------ | -- one asks, the others use it -- | -- all wait for who asks
 *
 * "renew" is five minutes before the end, or at the half of a shorter life, and later by up to a
 * half of that time at random: so nodes that began together do not ask together.  A question that
 * fails before the end puts the next one off, and nothing else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kept_times {
    bool is_there;
    int64_t renew_ms, end_ms;
};

enum kept_move { KEPT_USE, KEPT_ASK, KEPT_WAIT };

bool kept_rule_holds(const struct kept_times *t, int64_t now_ms);
/* asking: somebody does. */
enum kept_move kept_rule_move(const struct kept_times *t, bool asking, int64_t now_ms);
/* `luck` is any number. */
void kept_rule_got(struct kept_times *t, int64_t now_ms, int64_t end_ms, uint64_t luck);
void kept_rule_failed(struct kept_times *t, int64_t now_ms, uint64_t luck);
