#include "target/disk/space.h"

#include "common/parse.h"

enum { RESERVE_DIVISOR = 16 };

static const char *const state_names[] = {
    [SPACE_FINE] = "fine", [SPACE_HIGH] = "high", [SPACE_OUT] = "out"};

const char *space_state_name(enum space_state state)
{
    return state_names[state];
}

int space_limits_check(const struct space_limits *l, struct error *err)
{
    if (l->low < l->high && l->high < l->out && l->out <= 100)
        return 0;
    return error_set(err, E_INVALID,
                     "space_low (%u%%), space_high (%u%%) and space_out (%u%%) must grow in this "
                     "order",
                     l->low, l->high, l->out);
}

/* Are more than so many percent used? */
static bool is_above(const struct space *s, uint64_t available, unsigned percent)
{
    return (double)available < (double)s->total * (100 - (double)percent) / 100;
}

unsigned space_percent(const struct space *s)
{
    if (s->total == 0 || s->available > s->total)
        return 0;
    return (unsigned)((double)(s->total - s->available) * 100 / (double)s->total);
}

enum space_state space_state(const struct space_limits *l, const struct space *s,
                             enum space_state before)
{
    if (l->out == 0)
        return SPACE_FINE;
    if (is_above(s, s->available, l->out))
        return SPACE_OUT;
    return is_above(s, s->available, before == SPACE_FINE ? l->high : l->low) ? SPACE_HIGH
                                                                              : SPACE_FINE;
}

static uint64_t reserve_of(const struct space_limits *l, const struct space *s)
{
    uint64_t most = s->total / RESERVE_DIVISOR;
    return l->reserve_bytes < most ? l->reserve_bytes : most;
}

uint64_t space_room(const struct space_limits *l, const struct space *s)
{
    uint64_t kept = reserve_of(l, s);
    uint64_t above_out = l->out == 0 ? 0 : s->total / 100 * (100 - l->out);
    if (above_out > kept)
        kept = above_out;
    return s->available > kept ? s->available - kept : 0;
}

uint64_t space_step_end(const struct space_steps *s, uint64_t at)
{
    if (at >= s->most)
        return (at / s->most + 1) * s->most;
    uint64_t end = s->first < s->most ? s->first : s->most;
    while (end <= at)
        end *= 2;
    return end < s->most ? end : s->most;
}

int space_admit_known(const struct space_limits *l, const char *path, const struct space *s,
                      uint64_t size, struct error *err)
{
    char left[16];
    uint64_t kept = reserve_of(l, s) / 2;
    if (kept == 0 || (s->available >= kept && s->available - kept >= size))
        return 0;
    format_size(s->available, left);
    return error_set(err, E_NO_SPACE,
                     "mountpath '%s' has %s left, which are kept for deletions (space_reserve); "
                     "delete objects, or add a mountpath or a target",
                     path, left);
}

int space_admit(const struct space_limits *l, const char *path, const struct space *s,
                uint64_t size, struct error *err)
{
    char left[16], kept[16], wanted[16];
    uint64_t reserve = reserve_of(l, s);
    bool fits = s->available >= reserve && s->available - reserve >= size;
    if (fits && (l->out == 0 || !is_above(s, s->available - size, l->out)))
        return 0;
    format_size(s->available, left);
    if (!fits)
        return error_set(err, E_NO_SPACE,
                         "mountpath '%s' has %s left, %s of it reserved (space_reserve), and %s "
                         "are needed; delete objects, or add a mountpath or a target",
                         path, left, format_size(reserve, kept), format_size(size, wanted));
    return error_set(err, E_NO_SPACE,
                     "mountpath '%s' is %u%% full, %s are left, and would be above space_out "
                     "(%u%%); delete objects, or add a mountpath or a target",
                     path, space_percent(s), left, l->out);
}
