/* The one command table: it drives parsing, help, completion and docs/reference/dfcctl.md.
 *
 * A command is `dfcctl NOUN VERB`, some with a short form (`dfcctl ls`); what stands alone (help,
 * version, completion) has no verb.  commands.c holds the table, flags.def the flags. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl;
struct args;

enum flag_id {
#define FLAG(id, name, letter, type, arg, choices, help) F_##id,
#include "api/ctl/flags.def"
#undef FLAG
    F_COUNT_,
    F_END = F_COUNT_, /* ends a command's list */
};

enum flag_type {
    FLAG_bool,
    FLAG_text,
    FLAG_list,
    FLAG_count,
    FLAG_size,
    FLAG_duration,
    FLAG_choice,
    FLAG_seconds,
};

/* What the kinds of cluster/props/bucket_props.def are as flags. */
#define FLAG_BUCKET_FLAG_number FLAG_count
#define FLAG_BUCKET_FLAG_word FLAG_choice
#define FLAG_BUCKET_FLAG_boolean FLAG_choice
#define FLAG_BUCKET_FLAG_boolean_off FLAG_choice
#define FLAG_BUCKET_FLAG_duration FLAG_duration
#define FLAG_BUCKET_FLAG_size FLAG_size
#define FLAG_BUCKET_FLAG_amount FLAG_count
#define FLAG_BUCKET_FLAG_ec FLAG_text
#define FLAG_BUCKET_FLAG_ring FLAG_text
#define FLAG_BUCKET_FLAG_url FLAG_text

struct flag {
    const char *name;
    char letter;
    enum flag_type type;
    const char *arg;
    const char *choices; /* "a|b|c" */
    const char *help;
};

extern const struct flag flag_table[F_COUNT_];
extern const enum flag_id common_flags[]; /* taken by every command; ends with F_END */

/* What a word of a command is, for completion. */
enum word_kind {
    WORD_OTHER,
    WORD_FILE,
    WORD_BUCKET,
    WORD_OBJECT,
    WORD_NODE,
    WORD_JOB,
    WORD_COMMAND,
};

/* What a flag means for one command, where the flag's own sentence is of another. */
struct flag_help {
    enum flag_id flag;
    const char *text;
};

#define COMMAND_WORDS 2
#define COMMAND_EXAMPLES 8

struct command {
    const char *noun;
    const char *verb;  /* NULL: the noun alone */
    const char *alias; /* short form, or NULL */
    const char *words; /* "BUCKET/KEY [FILE]" */
    unsigned min_words;
    unsigned max_words;                  /* UINT_MAX: any number */
    enum word_kind kinds[COMMAND_WORDS]; /* of the words; the last is that of all further ones */
    const enum flag_id *flags;           /* besides the common ones; ends with F_END */
    const struct flag_help *flag_help;   /* or NULL; ends with F_END */
    bool local;                          /* needs no cluster */
    bool watches;                        /* as if --watch were given */
    int (*run)(struct ctl *ctl, const struct args *args); /* returns an exit code */
    const char *summary;
    const char *text;                           /* paragraphs, or NULL */
    const char *examples[COMMAND_EXAMPLES + 1]; /* what follows "dfcctl " */
};

extern const struct command commands[]; /* grouped by noun; a row without noun ends it */

struct noun {
    const char *name;
    const char *summary;
};
extern const struct noun nouns[]; /* in the order of help; a row without name ends it */

/* The flags of a bucket's properties: those of a new bucket, and those that may change later. */
extern const enum flag_id bucket_new_flags[], bucket_change_flags[];

const struct command *command_find(const char *noun, const char *verb); /* verb may be NULL */
const struct command *command_find_alias(const char *alias);
bool command_takes(const struct command *c, enum flag_id id);
const char *command_flag_help(const struct command *c, enum flag_id id);
bool noun_exists(const char *name);
const struct flag *flag_find(const char *name, size_t len); /* by long name */
const struct flag *flag_find_letter(char letter);
enum flag_id flag_id(const struct flag *f);
bool flag_wants_value(const struct flag *f); /* --name VALUE */
