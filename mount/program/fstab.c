#include "mount/program/fstab.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

/* What is for mount(8), systemd and mkinitrd; nosuid and nodev hold for every mount. */
static const char *const ignored[] = {
    "defaults", "auto",  "noauto",  "nofail",   "_netdev",    "user",
    "nouser",   "users", "owner",   "group",    "async",      "exec",
    "nosuid",   "nodev", "noatime", "relatime", "nodiratime", "norelatime",
};

bool fstab_is_helper(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL ? slash + 1 : program;
    return strcmp(name, "mount.dfc") == 0 || strcmp(name, "mount.fuse.dfc") == 0;
}

/* The second word that is no flag. */
static const char *find_directory(const struct fstab_words *w)
{
    unsigned found = 0;
    for (int i = 2; i < w->argc; i++) {
        found += strncmp(w->argv[i], "--", 2) != 0;
        if (found == 2)
            return w->argv[i];
    }
    return NULL;
}

static void word_add(struct fstab_words *w, char *word)
{
    w->argv = xrealloc(w->argv, (size_t)(w->argc + 2) * sizeof *w->argv);
    w->argv[w->argc++] = word;
    w->argv[w->argc] = NULL;
}

static bool is_ignored(const char *option)
{
    if (strncmp(option, "x-", 2) == 0 || strncmp(option, "comment=", 8) == 0)
        return true;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        if (strcmp(option, ignored[i]) == 0)
            return true;
    }
    return false;
}

static void option_add(struct fstab_words *w, const char *option)
{
    if (strcmp(option, "remount") == 0)
        w->remount = true;
    if (strcmp(option, "ro") == 0 || strcmp(option, "rw") == 0)
        w->read_only = option[1] == 'o';
    if (option[0] == '\0' || strcmp(option, "remount") == 0 || is_ignored(option))
        return;
    if (strcmp(option, "rw") == 0)
        option = "writable";
    else if (strcmp(option, "ro") == 0)
        option = "read-only";
    char *word = xprintf("--%s", option);
    for (char *at = word; *at != '\0' && *at != '='; at++) {
        if (*at == '_')
            *at = '-'; /* allow_other */
    }
    word_add(w, word);
}

static void options_add(struct fstab_words *w, const char *list)
{
    _cleanup_free_ char *copy = xstrdup(list);
    char *save = NULL;
    for (char *at = strtok_r(copy, ",", &save); at != NULL; at = strtok_r(NULL, ",", &save))
        option_add(w, at);
}

/* A word that begins with '-': how many arguments it took, or a code. */
static int letter_take(struct fstab_words *w, const char *word, const char *next, int *used,
                       struct error *err)
{
    const bool has_value =
        strcmp(word, "-o") == 0 || strcmp(word, "-N") == 0 || strcmp(word, "-t") == 0;
    *used = has_value ? 2 : 1;
    if (has_value && next == NULL)
        return error_set(err, E_INVALID, "%s needs a value", word);
    if (strcmp(word, "-o") == 0)
        options_add(w, next);
    else if (!has_value && word[1 + strspn(word + 1, "sfnv")] != '\0')
        return error_set(err, E_INVALID, "'%s' is none of -s, -f, -n, -v, -N, -t and -o", word);
    else if (!has_value && strchr(word, 'f') != NULL)
        w->fake = true;
    return 0;
}

int fstab_parse(int argc, char *const *argv, struct fstab_words *out, struct error *err)
{
    *out = (struct fstab_words){0};
    word_add(out, xstrdup("dfc-mount"));
    word_add(out, xstrdup("mount"));
    for (int i = 1, used = 1; i < argc; i += used) {
        int rc = 0;
        used = 1;
        if (argv[i][0] == '-' && argv[i][1] != '-')
            rc = letter_take(out, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used, err);
        else
            word_add(out, xstrdup(argv[i]));
        if (rc != 0)
            return rc;
    }
    out->directory = find_directory(out);
    if (out->remount && out->directory == NULL)
        return error_set(err, E_INVALID, "a remount needs the directory of the mount");
    return 0;
}

void fstab_done(struct fstab_words *words)
{
    for (int i = 0; i < words->argc; i++)
        free(words->argv[i]);
    free(words->argv);
    *words = (struct fstab_words){0};
}
