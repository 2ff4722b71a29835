/* clone: a copy of a file or a tree of a mounted volume, which shares the bytes. */
#include "mount/program/program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount/fuse/volume_control.h"
#include "mount/program/inside.h"
#include "mount/program/options.h"

enum { TRIES = 3 };

/* A ticket of a process that has died meanwhile is no ticket: the next process makes another. */
static int clone_at(int fd, const struct inside *place, const char *from, const char *to,
                    struct control_clone *c)
{
    int code = PROGRAM_OK;
    c->error = ESTALE;
    for (unsigned i = 0; i < TRIES && code == PROGRAM_OK && c->error == ESTALE; i++) {
        struct control_ticket place_ticket = {0};
        code = inside_ask(place->fd, CONTROL_TICKET, &place_ticket, to);
        *c = (struct control_clone){.directory = place_ticket.ticket};
        memcpy(c->name, place->name, strlen(place->name) + 1);
        if (code == PROGRAM_OK)
            code = inside_ask(fd, CONTROL_CLONE, c, from);
    }
    return code;
}

static int ask(int fd, const struct inside *place, const char *from, const char *to)
{
    struct control_clone c;
    int code = clone_at(fd, place, from, to, &c);
    if (code != PROGRAM_OK)
        return code;
    if (c.error != 0)
        return program_fail(inside_exit_of(c.error), "clone '%s' to '%s': %s%s%s", from, to,
                            c.error == EBUSY ? "it is written to: clone it when it is at rest"
                                             : strerror(c.error),
                            c.at[0] != '\0' ? ", at " : "", c.at);
    printf("%s: %" PRIu64 " made\n", to, c.made);
    return PROGRAM_OK;
}

/* A pipe or device would be opened itself. */
static int open_source(const char *path, int *fd, struct stat *st)
{
    if (stat(path, st) != 0)
        return program_fail(inside_exit_of(errno), "'%s': %s", path, strerror(errno));
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
        return program_fail(PROGRAM_USAGE, "'%s' is neither a file nor a directory", path);
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return *fd >= 0 ? PROGRAM_OK
                    : program_fail(inside_exit_of(errno), "'%s': %s", path, strerror(errno));
}

int program_clone(const struct options *o)
{
    const char *from = o->paths[0], *to = o->paths[1];
    struct inside place = {.fd = -1};
    struct stat st;
    int fd = -1;
    int code = open_source(from, &fd, &st);
    if (code == PROGRAM_OK)
        code = inside_open(to, &place);
    if (code == PROGRAM_OK && place.device != st.st_dev)
        code = program_fail(PROGRAM_USAGE, "'%s' and '%s' are not in the same mount", from, to);
    if (code == PROGRAM_OK)
        code = ask(fd, &place, from, to);
    inside_close(&place);
    if (fd >= 0)
        close(fd);
    return code;
}
