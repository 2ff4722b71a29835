/* Completion: what the last of some words may become, by the command table and, for names, by
 * asking the cluster (briefly). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/ctl/command.h"
#include "common/buf.h"

/* What makes a shell complete; a row without a name ends the table.  complete_scripts.c. */
struct completion_script {
    const char *shell; /* "bash" */
    const char *text;
};
extern const struct completion_script completion_scripts[];

/* What is to be completed. */
enum complete_kind {
    COMPLETE_NOTHING,
    COMPLETE_COMMAND, /* the first word */
    COMPLETE_VERB,
    COMPLETE_FLAG,
    COMPLETE_CHOICE, /* a flag's value, of those that the table knows */
    COMPLETE_WORD,   /* a name: a word of the command, or a flag's value */
};

struct completion {
    enum complete_kind kind;
    const struct command *command; /* VERB: any of the noun; FLAG: may be NULL */
    const char *noun;              /* VERB */
    const struct flag *flag;       /* CHOICE; WORD, where it is its value */
    enum word_kind word;           /* WORD */
    const char *start;             /* what was typed of it */
    char lead[64];                 /* a value as --flag=VALUE: "--flag=", printed before each */
};

/* words[count - 1] is the one to complete.  Pure. */
void completion_find(struct completion *c, const char *const *words, size_t count);

/* Append the candidates that the table knows, one a line.  Pure. */
void completion_of_table(const struct completion *c, struct buf *out);
