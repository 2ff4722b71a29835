#include "api/ctl/sync/rule.h"

#include <string.h>

#include "common/checksum.h"

/* A fetched file gets the object's time, so that any other time is a change.  A stored object has
 * the time at which it was stored, so that a file that is older has not changed since. */
static bool times_agree(const struct sync_entry *from, const struct sync_entry *to)
{
    return to->local ? to->modified_ms == from->modified_ms : to->modified_ms >= from->modified_ms;
}

static bool checksum_known(const struct sync_entry *e)
{
    enum checksum_type type;
    return e->checksum[0] != '\0' && checksum_from_name(e->checksum_type, &type, NULL) == 0 &&
           type != CHECKSUM_NONE;
}

static enum sync_verdict by_times(const struct sync_entry *from, const struct sync_entry *to)
{
    return times_agree(from, to) ? SYNC_SAME : SYNC_DIFFERS;
}

static enum sync_verdict compare_objects(const struct sync_entry *from, const struct sync_entry *to)
{
    if (from->checksum[0] == '\0' || strcmp(from->checksum_type, to->checksum_type) != 0)
        return by_times(from, to);
    return strcmp(from->checksum, to->checksum) == 0 ? SYNC_SAME : SYNC_DIFFERS;
}

enum sync_verdict sync_compare(const struct sync_entry *from, const struct sync_entry *to,
                               bool quick)
{
    if (from->size != to->size || (to->local && to->link))
        return SYNC_DIFFERS;
    if (!from->local && !to->local)
        return compare_objects(from, to);
    if (!checksum_known(from->local ? to : from))
        return by_times(from, to);
    return quick && times_agree(from, to) ? SYNC_SAME : SYNC_COMPARE;
}

/* ".dfc-" and ten characters of random_id(), as files/landing.c names a file that is written. */
static bool is_temporary(const char *id)
{
    enum { ID = 10 };
    return strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz") == ID && id[ID] == '\0';
}

bool sync_is_unfinished(const char *name)
{
    static const char prefix[] = ".dfc-", part[] = "part-";
    const char *slash = strrchr(name, '/');
    const char *leaf = slash != NULL ? slash + 1 : name;
    if (strncmp(leaf, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *rest = leaf + sizeof prefix - 1;
    return strncmp(rest, part, sizeof part - 1) == 0 || is_temporary(rest);
}
