/* fs, and mount and umount of vdisc and plog: the program dfc-mount does the work, so that dfcctl
 * needs no libfuse.  Words and flags are passed on as they are. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define PROGRAM "dfc-mount"

/* How dfcctl prints; dfc-mount prints errors, and lines of `fs info`. */
static const enum flag_id own_flags[] = {
    F_output, F_units, F_no_headers, F_quiet, F_verbose, F_cluster_key_file, F_control};

static bool is_passed(const struct args *args, enum flag_id id)
{
    for (size_t i = 0; i < sizeof own_flags / sizeof *own_flags; i++) {
        if (own_flags[i] == id)
            return false;
    }
    return args->given[id];
}

/* NULL-terminated, malloc'ed as a whole and one by one. */
static char **arguments(const struct args *args, const char *verb)
{
    size_t count = 0;
    char **argv = xcalloc(args->word_count + F_COUNT_ + 3, sizeof *argv);
    argv[count++] = xstrdup(PROGRAM);
    argv[count++] = xstrdup(verb);
    for (size_t i = 0; i < args->word_count; i++)
        argv[count++] = xstrdup(args->words[i]);
    for (unsigned id = 0; id < F_COUNT_; id++) {
        if (!is_passed(args, id))
            continue;
        const char *name = flag_table[id].name;
        argv[count++] = flag_wants_value(&flag_table[id]) ? xprintf("--%s=%s", name, args->text[id])
                                                          : xprintf("--%s", name);
    }
    return argv;
}

/* In `folder`, which is beside dfcctl or at `below` from there; does not return if it is there. */
static void try_beside(const char *below, char **argv)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    _cleanup_free_ char *path = xprintf("%s/%s" PROGRAM, self, below);
    execv(path, argv);
}

static int run_program_as(struct ctl *ctl, const struct args *args, const char *verb)
{
    char **argv = arguments(args, verb);
    fflush(ctl->out);
    try_beside("", argv);
    if (errno == ENOENT)
        try_beside("../libexec/dfc/", argv);
    if (errno == ENOENT)
        execvp(PROGRAM, argv);
    int errnum = errno;
    for (char **at = argv; *at != NULL; at++)
        free(*at);
    free(argv);
    const struct dfc_error err = {.result = DFC_LOCAL, .code = "io"};
    struct dfc_error told = err;
    snprintf(told.message, sizeof told.message,
             errnum == ENOENT ? "the program %s is missing: install it (a build has it if libfuse3 "
                                "is there)"
                              : "run %s: %s",
             PROGRAM, strerror(errnum));
    return ctl_fail(ctl, &told, NULL);
}

static int run_program(struct ctl *ctl, const struct args *args)
{
    return run_program_as(ctl, args, args->command->verb);
}

int vdisc_mount(struct ctl *ctl, const struct args *args)
{
    return run_program_as(ctl, args, "mount-image");
}

int vdisc_umount(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}

int plog_mount(struct ctl *ctl, const struct args *args)
{
    return run_program_as(ctl, args, "mount-plogs");
}

int plog_umount(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}

int fs_info(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}

int fs_format(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}

int fs_mount(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}

int fs_umount(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}

int fs_warmup(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}

int fs_tool(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}

int fs_stats(struct ctl *ctl, const struct args *args)
{
    return run_program(ctl, args);
}
