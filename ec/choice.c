#include "ec/choice.h"

#include <stdbool.h>

#include "ec/mask.h"

ec_mask ec_choice_next(const struct ec_choice *c, ec_mask tried, ec_mask good)
{
    const ec_mask left = c->have & ~tried, sound = left & ~c->doubted;
    const unsigned got = ec_mask_count(good);
    if ((c->want & ~good) == 0 || got >= c->k)
        return 0;
    const unsigned need = c->k - got;
    const bool doubts = ec_mask_count(sound) < need;
    const ec_mask wanted = c->want & (doubts ? left : sound);
    if (wanted != 0)
        return wanted;
    if (ec_mask_count(left) < need)
        return 0;
    const ec_mask next = ec_mask_first(sound, need);
    return next | ec_mask_first(left & ~sound, need - ec_mask_count(next));
}
