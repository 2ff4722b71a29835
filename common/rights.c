#include "common/rights.h"

#include <stddef.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

static const struct row {
    enum right_scope scope;
    const char *name;
    const char *meaning;
} rows[RIGHTS] = {
    [RIGHT_UNSET] = {RIGHT_SCOPE_CLUSTER, "unset", ""},
    [RIGHT_NONE] = {RIGHT_SCOPE_CLUSTER, "none", "anybody may call it"},
    [RIGHT_NODE] = {RIGHT_SCOPE_CLUSTER, "node", "only nodes of the cluster call it"},
    [RIGHT_OPERATION] = {RIGHT_SCOPE_CLUSTER, "operation", "that of the operation"},
    [RIGHT_ANY] = {RIGHT_SCOPE_CLUSTER, "any", "any user may call it"},
#define RIGHT(name, scope, text, meaning) [RIGHT_##name] = {RIGHT_SCOPE_##scope, text, meaning},
#include "common/rights.def"
#undef RIGHT
};

_Static_assert(RIGHTS <= 32, "a set of rights is a mask of 32 bits");

const char *right_name(enum right r)
{
    return rows[r].name;
}

const char *right_meaning(enum right r)
{
    return rows[r].meaning;
}

bool right_is_of_cluster(enum right r)
{
    return rows[r].scope == RIGHT_SCOPE_CLUSTER;
}

enum right right_parse(enum right_scope scope, const char *name)
{
    for (enum right r = RIGHT_ANY + 1; r < RIGHTS; r++) {
        if (rows[r].scope == scope && strcmp(rows[r].name, name) == 0)
            return r;
    }
    return RIGHT_UNSET;
}

char *right_names(enum right_scope scope)
{
    char *names = xstrdup("");
    for (enum right r = RIGHT_ANY + 1; r < RIGHTS; r++) {
        if (rows[r].scope != scope)
            continue;
        _cleanup_free_ char *before = names;
        names = xprintf("%s%s%s", before, before[0] != '\0' ? ", " : "", rows[r].name);
    }
    return names;
}
