#include "target/rename_rule.h"

enum rename_way rename_way(const struct object_held *here, const struct object_held *earlier,
                           bool fresh)
{
    bool is_last =
        here->found && (!earlier->found || version_compare(&here->version, &earlier->version) >= 0);
    if (is_last && here->pending)
        return here->visible ? RENAME_HERE : RENAME_NOTHING;
    return is_last && here->visible && fresh ? RENAME_HERE : RENAME_THERE;
}
