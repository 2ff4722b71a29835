/* dfc-mount: buckets as file systems. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "build_commit.h"
#include "common/build.h"
#include "mount/program/options.h"
#include "mount/program/program.h"

static const char usage[] = "usage: dfc-mount mount dfc://BUCKET[/PREFIX] DIR [FLAG…]\n"
                            "       dfc-mount umount DIR [--timeout=TIME]\n"
                            "'dfcctl fs mount --help' explains the flags.\n";

int main(int argc, char **argv)
{
    struct options o;
    struct error err = ERROR_INIT;
    build_set_commit(BUILD_COMMIT);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("dfc-mount %s\n", build_text());
        return PROGRAM_OK;
    }
    if (options_parse(&o, argc, argv, geteuid(), getegid(), &err) != 0)
        return program_fail(PROGRAM_USAGE, "%s", err.message);
    if (o.help) {
        fputs(usage, stdout);
        return PROGRAM_OK;
    }
    return strcmp(o.verb, "mount") == 0 ? program_mount(&o) : program_umount(&o);
}
