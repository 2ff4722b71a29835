#include "target/slices/plan.h"

static bool is_active(const struct node *n)
{
    return n->state == NODE_ACTIVE;
}

/* A slice goes to the mountpath of its name, which may be one that is not to be had. */
static bool takes_any(const struct node *n)
{
    return is_active(n) && node_is_present(n);
}

static ec_mask bit(unsigned slice)
{
    return (ec_mask)1 << slice;
}

int ec_plan_write(const struct node *const *ranked, size_t count, unsigned k, unsigned m,
                  struct ec_homes *out, struct error *err)
{
    unsigned found = 0;
    *out = (struct ec_homes){.count = k + m};
    for (size_t i = 0; i < count && found < k + m; i++) {
        if (takes_any(ranked[i]))
            out->all[found++] = ranked[i];
    }
    if (found > k)
        return 0;
    return error_set(err, E_NO_TARGETS,
                     "an object in %u + %u slices needs %u active targets with all their "
                     "mountpaths, and there are %u",
                     k, m, k + 1, found);
}

int ec_plan_failure(int slice_code, bool *send_on)
{
    bool unreached =
        slice_code == E_NET || slice_code == E_TIMEOUT || slice_code == E_NODE_UNREACHABLE;
    bool later = slice_code == E_STALE_MAP || slice_code == E_NOT_READY;
    *send_on = unreached || later;
    return later || slice_code == E_NO_SPACE || slice_code == E_OVERLOAD ? slice_code
                                                                         : E_NODE_UNREACHABLE;
}

void ec_plan_guess(const struct node *const *ranked, size_t count, unsigned slices,
                   struct ec_homes *out)
{
    *out = (struct ec_homes){.count = slices};
    for (size_t i = 0; i < count && i < slices; i++)
        out->all[i] = is_active(ranked[i]) ? ranked[i] : NULL;
}

ec_mask ec_homes_mask(const struct ec_homes *h)
{
    ec_mask mask = 0;
    for (unsigned i = 0; i < h->count; i++)
        mask |= h->all[i] != NULL ? bit(i) : 0;
    return mask;
}

void ec_plan_read(const struct ec_found *found, size_t count, unsigned slices, struct ec_homes *out)
{
    *out = (struct ec_homes){.count = slices};
    for (unsigned i = 0; i < slices; i++) {
        for (size_t n = 0; n < count && out->all[i] == NULL; n++) {
            if (found[n].answered && (found[n].has & bit(i)) != 0)
                out->all[i] = found[n].node;
        }
        for (size_t n = 0; n < count && out->all[i] == NULL; n++) {
            if (found[n].answered && (found[n].left & bit(i)) != 0) {
                out->all[i] = found[n].node;
                out->left |= bit(i);
            }
        }
    }
    out->doubted = out->left;
}

static bool another_has(const struct ec_found *found, size_t count, size_t but, ec_mask slice)
{
    for (size_t n = 0; n < count; n++) {
        if (n != but && found[n].answered && (found[n].has & slice) != 0)
            return true;
    }
    return false;
}

void ec_plan_pass_over(struct ec_found *found, size_t count, const struct ec_homes *tried,
                       ec_mask failed)
{
    for (unsigned i = 0; i < tried->count; i++) {
        for (size_t n = 0; n < count; n++) {
            if ((failed & bit(i)) != 0 && found[n].node == tried->all[i] &&
                another_has(found, count, n, bit(i)))
                found[n].has &= ~bit(i);
        }
    }
}

void ec_plan_strike(struct ec_found *found, size_t count, const struct ec_homes *tried,
                    ec_mask failed)
{
    for (unsigned i = 0; i < tried->count; i++) {
        for (size_t n = 0; n < count; n++) {
            if ((failed & bit(i)) == 0 || found[n].node != tried->all[i])
                continue;
            found[n].has &= ~bit(i);
            found[n].left &= ~bit(i);
        }
    }
}

static unsigned count_of(ec_mask mask)
{
    return (unsigned)__builtin_popcountll(mask);
}

bool ec_plan_may_wait(const struct ec_homes *from, const struct ec_homes *to, unsigned k)
{
    return ec_homes_mask(to) != 0 && count_of(ec_homes_mask(from) & ~from->doubted) > k;
}

int ec_plan_check(const struct ec_found *found, size_t count, unsigned k, unsigned slices,
                  struct error *err)
{
    ec_mask has = 0, all = bit(slices) - 1;
    unsigned silent = 0;
    const struct node *first = NULL;
    for (size_t n = 0; n < count; n++) {
        has |= found[n].answered ? (found[n].has | found[n].left) & all : 0;
        if (!found[n].answered) {
            silent++;
            first = first != NULL ? first : found[n].node;
        }
    }
    if (count_of(has) >= k)
        return 0;
    if (count_of(has) + silent >= k)
        return error_set(err, E_NODE_UNREACHABLE,
                         "%u of the %u slices that are needed are there; target '%s', which does "
                         "not answer, may have one",
                         count_of(has), k, first->id);
    return error_set(err, E_CORRUPT, "%u of the %u slices that are needed are left", count_of(has),
                     k);
}

/* Those that leave give what they have, and count as nobody. */
static bool stays(const struct ec_found *f)
{
    return f->answered && is_active(f->node);
}

static const struct node *home_of(const struct ec_found *found, size_t count, ec_mask slice)
{
    for (size_t n = 0; n < count; n++) {
        if (stays(&found[n]) && (found[n].has & slice) != 0)
            return found[n].node;
    }
    return NULL;
}

static bool leaves_with(const struct ec_found *found, size_t count, ec_mask slice)
{
    for (size_t n = 0; n < count; n++) {
        if (found[n].answered && !is_active(found[n].node) && (found[n].has & slice) != 0)
            return true;
    }
    return false;
}

static void mark_surplus(struct ec_found *found, size_t count)
{
    ec_mask seen = 0;
    for (size_t n = 0; n < count; n++) {
        found[n].surplus = stays(&found[n]) ? found[n].has & seen : 0;
        seen |= stays(&found[n]) ? found[n].has : 0;
    }
}

const struct node *ec_plan_silent(const struct ec_found *found, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        if (!found[n].answered && node_is_present(found[n].node))
            return found[n].node;
    }
    return NULL;
}

bool ec_all_answered(const struct ec_found *found, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        if (!found[n].answered)
            return false;
    }
    return true;
}

static ec_mask of_higher_rank(const struct ec_found *found, size_t n)
{
    ec_mask has = 0;
    for (size_t i = 0; i < n; i++)
        has |= stays(&found[i]) ? found[i].has : 0;
    return has;
}

/* The p-th to be asked: those who have none come first, then those who have but surplus ones. */
static bool takes_slice(const struct ec_found *found, size_t count, size_t p)
{
    const struct ec_found *f = &found[p % count];
    if (!stays(f) || !takes_any(f->node))
        return false;
    if (p < count)
        return f->has == 0;
    return f->has != 0 && (f->has & ~of_higher_rank(found, p - count)) == 0;
}

void ec_plan_repair(struct ec_found *found, size_t count, unsigned slices, ec_mask doubted,
                    struct ec_mending *out)
{
    size_t next = 0;
    *out = (struct ec_mending){.to.count = slices};
    for (unsigned i = 0; i < slices; i++) {
        const struct node *home = home_of(found, count, bit(i));
        if (home != NULL) {
            out->to.all[i] = (doubted & bit(i)) != 0 ? home : NULL;
            continue;
        }
        while (next < 2 * count && !takes_slice(found, count, next))
            next++;
        if (next < 2 * count)
            out->to.all[i] = found[next++ % count].node;
        else
            out->homeless |= bit(i);
        if (leaves_with(found, count, bit(i)))
            out->leaving |= bit(i);
    }
    if (ec_homes_mask(&out->to) == 0 && out->homeless == 0 && ec_all_answered(found, count))
        mark_surplus(found, count);
}

/* Nobody whose slices, or room, may be back. */
static bool is_quiet(const struct ec_found *found, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        if (!found[n].answered || (is_active(found[n].node) && !node_is_present(found[n].node)))
            return false;
    }
    return true;
}

/* What would be left of its slices without the surplus ones. */
static ec_mask keeps(const struct ec_found *found, size_t n)
{
    return stays(&found[n]) ? found[n].has & ~of_higher_rank(found, n) : 0;
}

void ec_plan_move(const struct ec_found *found, size_t count, unsigned slices, struct ec_homes *to)
{
    const struct node *vacant[EC_SLICES_MAX];
    unsigned places = 0, vacancies = 0, given = 0;
    *to = (struct ec_homes){.count = slices};
    for (size_t n = 0; n < count && is_quiet(found, count); n++) {
        if (stays(&found[n]) && places < slices) {
            places++;
            if (keeps(found, n) == 0)
                vacant[vacancies++] = found[n].node;
            continue;
        }
        for (ec_mask left = keeps(found, n); left != 0 && given < vacancies; left &= left - 1)
            to->all[__builtin_ctzll(left)] = vacant[given++];
    }
}

bool ec_plan_stands(const struct ec_found *found, size_t count, unsigned k, unsigned slices,
                    unsigned spared)
{
    ec_mask has = 0;
    unsigned able = 0;
    for (size_t i = 0; i < count; i++) {
        has |= found[i].answered ? found[i].has : 0;
        able += found[i].answered && takes_any(found[i].node);
    }
    unsigned want = slices - k > spared ? slices - spared : k;
    if (able < want)
        want = able > k ? able : k;
    return (unsigned)__builtin_popcountll(has) >= want;
}

bool ec_plan_is_garbage(uint64_t tag, const struct ec_owner *owners, size_t count, bool settled)
{
    for (size_t i = 0; i < count; i++) {
        if (!owners[i].answered || owners[i].slices == tag || owners[i].hidden == tag)
            return false;
    }
    return settled && count > 0;
}
