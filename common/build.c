#include "common/build.h"

#include <stdio.h>
#include <string.h>

static char commit_of_build[64] = "";
static char date_of_build[16] = "";
static char text_of_build[128] = DFC_VERSION;

static void write_text(void)
{
    char commit[80] = "", date[32] = "";
    if (commit_of_build[0] != '\0')
        snprintf(commit, sizeof commit, " (%s)", commit_of_build);
    if (date_of_build[0] != '\0')
        snprintf(date, sizeof date, ", built %s", date_of_build);
    snprintf(text_of_build, sizeof text_of_build, "%s%s%s", DFC_VERSION, commit, date);
}

void build_set(const char *commit_and_date)
{
    size_t len = strcspn(commit_and_date, " ");
    const char *date = commit_and_date + len;
    int known = strncmp(commit_and_date, "- ", 2) != 0 ? (int)len : 0;
    snprintf(commit_of_build, sizeof commit_of_build, "%.*s", known, commit_and_date);
    snprintf(date_of_build, sizeof date_of_build, "%s", date[0] == ' ' ? date + 1 : date);
    write_text();
}

const char *build_release(void)
{
    return DFC_VERSION;
}

const char *build_commit(void)
{
    return commit_of_build;
}

const char *build_date(void)
{
    return date_of_build;
}

const char *build_text(void)
{
    return text_of_build;
}
