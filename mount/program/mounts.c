#include "mount/program/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/program/program.h"

#define TABLE "/proc/self/mountinfo"

/* Spaces and the like are written as \ooo. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned value;
        if (at[0] == '\\' && strspn(at + 1, "01234567") >= 3 &&
            sscanf(at + 1, "%3o", &value) == 1) {
            *to++ = (char)value;
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* "36 35 98:0 ROOT PATH OPTIONS [FIELD…] - TYPE SOURCE OPTIONS" */
static bool line_find(const char *line, const char *path, char **type, char **source)
{
    _cleanup_free_ char *at = xstrdup(line);
    char *rest = strstr(at, " - ");
    char *save = NULL, *word = at;
    if (rest == NULL)
        return false;
    *rest = '\0';
    rest += 3;
    word = strtok_r(at, " ", &save);
    for (unsigned i = 0; word != NULL && i < 4; i++)
        word = strtok_r(NULL, " ", &save);
    char *found_type = strtok_r(rest, " ", &save);
    char *found_source = strtok_r(NULL, " ", &save);
    if (word == NULL || found_type == NULL || found_source == NULL)
        return false;
    unescape(word);
    if (strcmp(word, path) != 0)
        return false;
    unescape(found_source);
    *type = xstrdup(found_type);
    *source = xstrdup(found_source);
    return true;
}

bool mounts_find(const char *table, const char *path, char **type, char **source)
{
    bool found = false;
    for (const char *at = table; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        _cleanup_free_ char *line = xstrndup(at, len);
        char *line_type, *line_source;
        if (line_find(line, path, &line_type, &line_source)) {
            if (found) {
                free(*type);
                free(*source);
            }
            *type = line_type;
            *source = line_source;
            found = true;
        }
        at += at[len] == '\n' ? len + 1 : len;
    }
    return found;
}

char *mounts_source(const char *path, const char *wanted)
{
    char part[4096];
    size_t n;
    _cleanup_buf_ struct buf table = BUF_INIT;
    _cleanup_free_ char *type = NULL;
    _cleanup_free_ char *source = NULL;
    FILE *f = fopen(TABLE, "re");
    if (f == NULL)
        return NULL;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        buf_append(&table, part, n);
    fclose(f);
    if (!mounts_find(buf_str(&table), path, &type, &source) || strcmp(type, wanted) != 0)
        return NULL;
    return steal(source);
}

bool mounts_has(const char *path)
{
    _cleanup_free_ char *source = mounts_source(path, MOUNTS_TYPE);
    return source != NULL;
}

bool mounts_is_dead(int errnum)
{
    return errnum == ENOTCONN || errnum == ECONNABORTED;
}

int mounts_say_dead(const char *path)
{
    return program_fail(PROGRAM_FAILED,
                        "'%s': the process of the mount has died, and its --log-file says why: "
                        "'dfcctl fs umount' clears it",
                        path);
}

/* The last component of a dead mount cannot be looked at, those before it can. */
static char *path_by_parent(const char *directory)
{
    _cleanup_free_ char *parent = xstrdup(directory);
    size_t len = strlen(parent);
    while (len > 1 && parent[len - 1] == '/')
        parent[--len] = '\0';
    char *slash = strrchr(parent, '/');
    _cleanup_free_ char *name = xstrdup(slash != NULL ? slash + 1 : parent);
    if (slash != NULL)
        slash[slash == parent ? 1 : 0] = '\0';
    _cleanup_free_ char *real = realpath(slash != NULL ? parent : ".", NULL);
    if (real == NULL)
        return NULL;
    return xprintf("%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
}

char *mounts_path(const char *directory)
{
    char *path = realpath(directory, NULL);
    return path == NULL && errno != ENOENT ? path_by_parent(directory) : path;
}
