/* dfc-mount: buckets, volumes, dataset images and plogs as file systems. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_commit.h"
#include "common/build.h"
#include "common/fault.h"
#include "mount/program/fstab.h"
#include "mount/program/options.h"
#include "mount/program/program.h"

static const char usage[] = "usage: dfc-mount mount dfc://BUCKET[/PREFIX] DIR [FLAG…]\n"
                            "       dfc-mount mount META-URL DIR [FLAG…]\n"
                            "       dfc-mount mount-image dfc://BUCKET/NAME.vdsc DIR [FLAG…]\n"
                            "       dfc-mount mount-plogs dfc://BUCKET[/PREFIX] DIR [FLAG…]\n"
                            "       dfc-mount format META-URL NAME --bucket=dfc://BUCKET [FLAG…]\n"
                            "       dfc-mount umount DIR [--timeout=TIME]\n"
                            "       dfc-mount info PATH\n"
                            "       dfc-mount warmup PATH… [--list=FILE] [--check] [--parallel=N]\n"
                            "       dfc-mount stats DIR\n"
                            "       dfc-mount rmr PATH… [--skip-trash]\n"
                            "       dfc-mount clone SRC DST\n"
                            "       dfc-mount cache ls GROUP\n"
                            "       dfc-mount cache drain GROUP MEMBER [--group-key-file=FILE]\n"
                            "       dfc-mount trash ls|restore DIR [NAME…]\n"
                            "       dfc-mount config META-URL [--trash-days=N]\n"
                            "       dfc-mount quota set META-URL PATH [--capacity=SIZE] "
                            "[--inodes=N]\n"
                            "       dfc-mount quota get|rm META-URL PATH\n"
                            "       dfc-mount quota ls|check META-URL [--repair]\n"
                            "       dfc-mount gc META-URL [--delete] [--grace=TIME]\n"
                            "       dfc-mount fsck META-URL [--read] [--repair]\n"
                            "       dfc-mount dump META-URL FILE\n"
                            "       dfc-mount load META-URL FILE|URL\n"
                            "       mount.dfc dfc://BUCKET[/PREFIX] DIR [-o OPTION,…]\n"
                            "'dfcctl fs mount --help' explains the flags.\n";

static const struct {
    const char *verb;
    int (*run)(const struct options *o);
} verbs[] = {
    {"mount", program_mount},   {"mount-image", program_mount}, {"mount-plogs", program_mount},
    {"umount", program_umount}, {"info", program_info},         {"format", program_format},
    {"warmup", program_warmup}, {"stats", program_stats},       {"gc", program_gc},
    {"fsck", program_fsck},     {"dump", program_dump},         {"load", program_load},
    {"rmr", program_rmr},       {"clone", program_clone},       {"cache", program_cache},
    {"trash", program_trash},   {"config", program_config},     {"quota", program_quota},
};

static int run(int argc, char *const *argv)
{
    struct options o;
    struct error err = ERROR_INIT;
    if (options_parse(&o, argc, argv, geteuid(), getegid(), &err) != 0)
        return program_fail(PROGRAM_USAGE, "%s", err.message);
    for (size_t i = 0; !o.help && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(o.verb, verbs[i].verb) == 0)
            return verbs[i].run(&o);
    }
    fputs(usage, stdout);
    return PROGRAM_OK;
}

static int run_helper(int argc, char *const *argv)
{
    struct fstab_words words;
    struct error err = ERROR_INIT;
    int code = PROGRAM_OK;
    if (fstab_parse(argc, argv, &words, &err) != 0)
        code = program_fail(PROGRAM_USAGE, "%s", err.message);
    else if (words.remount && !words.fake)
        code = program_remount(words.directory, words.read_only);
    else if (!words.fake)
        code = run(words.argc, words.argv);
    fstab_done(&words);
    return code;
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    build_set(BUILD_COMMIT_AND_DATE);
    if (fault_configure(getenv("DFC_FAULTS"), &err) != 0)
        return program_fail(PROGRAM_USAGE, "DFC_FAULTS: %s", err.message);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("dfc-mount %s\n", build_text());
        return PROGRAM_OK;
    }
    return fstab_is_helper(argv[0]) ? run_helper(argc, argv) : run(argc, argv);
}
