/* The command line, parsed by the command table: pure.
 *
 * -o FORMAT is --output; -o with any other value is --to, for commands that write a file or image.
 * Flags may stand anywhere before "--": --name value, --name=value, -x value, -xvalue; flags
 * without a value may be joined (-rq).  Every flag has one meaning, so that it is read before the
 * command is known and checked against it afterwards. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/ctl/command.h"
#include "common/error.h"

#define WATCH_DEFAULT_MS 2000

struct args {
    const struct command *command; /* NULL: none was named */
    const char *noun;              /* named without its verb */
    bool to_by_letter;             /* --to was given as -o */
    bool given[F_COUNT_];
    const char *text[F_COUNT_];
    uint64_t number[F_COUNT_];   /* count, size (bytes), duration (ms), seconds (ms) */
    const char **list[F_COUNT_]; /* of FLAG_list */
    size_t list_count[F_COUNT_];
    const char **words; /* behind the command's name; NULL-terminated */
    size_t word_count;
};

/* argv[0] is skipped.  E_INVALID with a sentence for the user, who may have meant something else:
 * then the sentence says so.  Texts are argv's. */
int args_parse(struct args *a, int argc, char *const *argv, struct error *err);
void args_done(struct args *a);
