#include "xaction/kinds.h"

#include <string.h>

static const struct xaction_kind kinds[] = {
#define KIND(name_, label_, resumes_, again_, bare_, undone_, summary_) \
    {.name = #name_,                                                    \
     .label = (label_),                                                 \
     .resumes = (resumes_),                                             \
     .again = (again_),                                                 \
     .bare = (bare_),                                                   \
     .undone = (undone_),                                               \
     .summary = (summary_)},
#include "xaction/kinds.def"
#undef KIND
};

const struct xaction_kind *xaction_kind_find(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

const struct xaction_kind *xaction_kind_at(size_t i)
{
    return i < sizeof kinds / sizeof *kinds ? &kinds[i] : NULL;
}
