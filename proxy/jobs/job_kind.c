#include "proxy/jobs/job_kind.h"

#include <assert.h>
#include <string.h>

static const struct job_kind *const table[] = {
#define KIND(name, shown, label, resumes, again, bare, undone, summary) &shown##_kind,
#include "xaction/kinds.def"
#undef KIND
};
enum { ROWS = sizeof table / sizeof *table };
static_assert((int)ROWS <= (int)JOB_KINDS_MAX, "a clock for each row");

const struct job_kind *job_kind_at(size_t n)
{
    return n < ROWS ? table[n] : NULL;
}

const struct job_kind *job_kind_find(const char *name)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}
