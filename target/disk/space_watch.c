#include "target/disk/space_watch.h"

#include "common/log.h"
#include "common/parse.h"

static void say(const struct mountpath *mp, const struct space *s, enum space_state now)
{
    char left[16];
    format_size(s->available, left);
    const struct log_field path = lstr("mountpath", mp->path);
    const struct log_field percent = lu64("percent", space_percent(s));
    const struct log_field available = lstr("available", left);
    if (now == SPACE_OUT)
        log_error("mountpath takes no more objects: above space_out", path, percent, available);
    else if (now == SPACE_HIGH)
        log_warn("mountpath is getting full: above space_high", path, percent, available);
    else
        log_info("mountpath has room again: below space_low", path, percent, available);
}

static enum space_state look(struct mountpath *mp, const struct space_limits *limits,
                             uint64_t *room)
{
    struct space s;
    if (mountpath_capacity(mp, &s.total, &s.available, NULL) != 0)
        return (enum space_state)mp->space; /* its errors are counted elsewhere */
    *room += space_room(limits, &s);
    enum space_state now = space_state(limits, &s, (enum space_state)mp->space);
    if (now != (enum space_state)mp->space)
        say(mp, &s, now);
    mp->space = (int)now;
    _cleanup_buf_ struct buf labels = BUF_INIT;
    mountpath_labels(mp, &labels);
    metric_set(metric_get(M_mountpath_space_state, buf_str(&labels)), (int64_t)now);
    return now;
}

struct space_count space_watch(struct mountpaths *m, const struct space_limits *limits)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    struct space_count count = {0};
    for (size_t i = 0; i < set->count; i++) {
        enum space_state state = look(set->all[i], limits, &count.room_bytes);
        count.high += state != SPACE_FINE;
        count.out += state == SPACE_OUT;
    }
    return count;
}
