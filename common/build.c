#include "common/build.h"

#include <stdio.h>

static const char *commit_of_build = "";
static char text_of_build[128] = DFC_VERSION;

void build_set_commit(const char *commit)
{
    commit_of_build = commit;
    if (commit[0] != '\0')
        snprintf(text_of_build, sizeof text_of_build, "%s (%s)", DFC_VERSION, commit);
    else
        snprintf(text_of_build, sizeof text_of_build, "%s", DFC_VERSION);
}

const char *build_release(void)
{
    return DFC_VERSION;
}

const char *build_commit(void)
{
    return commit_of_build;
}

const char *build_text(void)
{
    return text_of_build;
}
