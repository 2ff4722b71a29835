#include "xaction/kinds.h"

#include <string.h>

static const struct xaction_kind kinds[] = {
#define KIND(name_, shown_, label_, resumes_, again_, bare_, undone_, summary_) \
    {.name = #name_,                                                            \
     .shown = #shown_,                                                          \
     .label = (label_),                                                         \
     .resumes = (resumes_),                                                     \
     .again = (again_),                                                         \
     .bare = (bare_),                                                           \
     .undone = (undone_),                                                       \
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

const struct xaction_kind *xaction_kind_asked(const char *text)
{
    for (size_t i = 0; text != NULL && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, text) == 0 || strcmp(kinds[i].shown, text) == 0)
            return &kinds[i];
    }
    return NULL;
}

const struct xaction_kind *xaction_kind_at(size_t i)
{
    return i < sizeof kinds / sizeof *kinds ? &kinds[i] : NULL;
}
