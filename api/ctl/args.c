#include "api/ctl/args.h"

#include <limits.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/suggest.h"

/* ---- flags ---- */

static int choice_check(const struct flag *f, const char *value, struct error *err)
{
    size_t len = strlen(value);
    for (const char *p = f->choices; *p != '\0';) {
        size_t n = strcspn(p, "|");
        if (n == len && memcmp(p, value, n) == 0)
            return 0;
        p += n + (p[n] == '|' ? 1 : 0);
    }
    return error_set(err, E_INVALID, "--%s: '%s' is none of %s", f->name, value, f->choices);
}

static int seconds_parse(const char *value, uint64_t *ms, struct error *err)
{
    double seconds;
    if (parse_double(value, &seconds, NULL) == 0 && seconds >= 0.1 && seconds <= 86400) {
        *ms = (uint64_t)(seconds * 1000);
        return 0;
    }
    return error_set(err, E_INVALID, "'%s' is not a number of seconds (0.1 to 86400)", value);
}

static int flag_value(struct args *a, enum flag_id id, const char *value, struct error *err)
{
    const struct flag *f = &flag_table[id];
    int rc = 0;
    a->text[id] = value;
    switch (f->type) {
    case FLAG_bool:
    case FLAG_text:
        break;
    case FLAG_list:
        a->list[id] = xrealloc(a->list[id], (a->list_count[id] + 1) * sizeof *a->list[id]);
        a->list[id][a->list_count[id]++] = value;
        break;
    case FLAG_count:
        rc = parse_u64(value, &a->number[id], err);
        break;
    case FLAG_size:
        rc = parse_size(value, &a->number[id], err);
        break;
    case FLAG_duration:
        rc = parse_duration_ms(value, &a->number[id], err);
        break;
    case FLAG_choice:
        return choice_check(f, value, err);
    case FLAG_seconds:
        rc = seconds_parse(value, &a->number[id], err);
        break;
    }
    return rc == 0 ? 0 : error_wrap(err, "--%s", f->name);
}

static int unknown_flag(const char *name, size_t len, struct error *err)
{
    _cleanup_free_ char *plain = xstrndup(name, len);
    struct suggestion best = SUGGESTION_INIT;
    for (size_t i = 0; i < F_COUNT_; i++)
        suggest(&best, plain, flag_table[i].name);
    if (best.text != NULL)
        return error_set(err, E_INVALID, "there is no flag --%s; did you mean --%s?", plain,
                         best.text);
    return error_set(err, E_INVALID, "there is no flag --%s", plain);
}

/* Where in argv the parser stands. */
struct cursor {
    int argc;
    char *const *argv;
    int at;
};

/* -o is the format, or else what is written (--to). */
static const struct flag *flag_of_value(struct args *a, const struct flag *f, const char *value)
{
    if (f->letter != 'o' || value == NULL || choice_check(f, value, NULL) == 0)
        return f;
    a->to_by_letter = true;
    return &flag_table[F_to];
}

static int flag_take(struct args *a, const struct flag *f, const char *value, struct cursor *c,
                     struct error *err)
{
    enum flag_id id = flag_id(f);
    a->given[id] = true;
    if (f->type == FLAG_bool && value != NULL)
        return error_set(err, E_INVALID, "--%s takes no value", f->name);
    if (f->type == FLAG_seconds && value == NULL) {
        a->number[id] = WATCH_DEFAULT_MS;
        return 0;
    }
    if (flag_wants_value(f) && value == NULL) {
        if (c->at + 1 >= c->argc)
            return error_set(err, E_INVALID, "--%s needs a value: %s", f->name, f->arg);
        value = c->argv[++c->at];
    }
    return value != NULL ? flag_value(a, id, value, err) : 0;
}

static int long_flag(struct args *a, const char *text, struct cursor *c, struct error *err)
{
    size_t len = strcspn(text, "=");
    const struct flag *f = flag_find(text, len);
    if (f == NULL)
        return unknown_flag(text, len, err);
    return flag_take(a, f, text[len] == '=' ? text + len + 1 : NULL, c, err);
}

static int short_flags(struct args *a, const char *text, struct cursor *c, struct error *err)
{
    for (const char *p = text; *p != '\0'; p++) {
        const struct flag *f = flag_find_letter(*p);
        if (f == NULL)
            return error_set(err, E_INVALID, "there is no flag -%c", *p);
        if (f->type == FLAG_bool || (f->type == FLAG_seconds && p[1] == '\0')) {
            flag_take(a, f, NULL, c, err);
            continue;
        }
        const char *joined = p[1] != '\0' ? p + 1 : NULL;
        const char *value = joined != NULL ? joined : c->argv[c->at + 1];
        return flag_take(a, flag_of_value(a, f, value), joined, c, err);
    }
    return 0;
}

/* ---- the command ---- */

struct renamed {
    const char *there, *here; /* NULL ends a table */
};

/* What other stores' clients (mc, gsutil, aws, ais) call a command that is here by another name. */
static const struct renamed commands_there[] = {
    {"mb", "bucket create"},
    {"rb", "bucket rm"},
    {"stat", "object head"},
    {"presign", "object url"},
    {"dsort", "sort start"},
    {"download", "object get"},
    {NULL, NULL},
};

static const struct renamed verbs_there[] = {
    {"list", "ls"},   {"delete", "rm"}, {"remove", "rm"},   {"destroy", "rm"},
    {"rename", "mv"}, {"copy", "cp"},   {"make", "create"}, {NULL, NULL},
};

static const char *name_here(const struct renamed *rows, const char *word)
{
    while (rows->there != NULL && strcmp(word, rows->there) != 0)
        rows++;
    return rows->here;
}

/* "'cluster status' or 'sort status'": the commands that have the word for their verb. */
static void put_commands_of_verb(const char *word, struct buf *out)
{
    for (const struct command *c = commands; c->noun != NULL; c++) {
        if (c->verb != NULL && strcmp(c->verb, word) == 0)
            buf_printf(out, "%s'%s %s'", out->len > 0 ? " or " : "", c->noun, c->verb);
    }
}

static int unknown_noun(const char *word, struct error *err)
{
    struct suggestion best = SUGGESTION_INIT;
    _cleanup_(buf_done)
    struct buf whole = BUF_INIT;
    const char *here = name_here(commands_there, word);
    if (here != NULL)
        return error_set(err, E_INVALID, "there is no command '%s'; it is '%s' here", word, here);
    put_commands_of_verb(word, &whole);
    if (whole.len > 0)
        return error_set(err, E_INVALID, "there is no command '%s'; it is %s here", word,
                         buf_str(&whole));
    for (const struct noun *n = nouns; n->name != NULL; n++)
        suggest(&best, word, n->name);
    for (const struct command *c = commands; c->noun != NULL; c++) {
        if (c->alias != NULL)
            suggest(&best, word, c->alias);
    }
    if (best.text != NULL)
        return error_set(err, E_INVALID, "there is no command '%s'; did you mean '%s'?", word,
                         best.text);
    return error_set(err, E_INVALID, "there is no command '%s'; try 'dfcctl help'", word);
}

static int unknown_verb(const char *noun, const char *word, struct error *err)
{
    struct suggestion best = SUGGESTION_INIT;
    _cleanup_(buf_done)
    struct buf all = BUF_INIT;
    const char *here = name_here(verbs_there, word);
    if (here != NULL && command_find(noun, here) != NULL)
        return error_set(err, E_INVALID, "there is no '%s %s'; it is '%s %s' here", noun, word,
                         noun, here);
    for (const struct command *c = commands; c->noun != NULL; c++) {
        if (strcmp(c->noun, noun) != 0 || c->verb == NULL)
            continue;
        suggest(&best, word, c->verb);
        buf_printf(&all, "%s%s", all.len > 0 ? ", " : "", c->verb);
    }
    if (best.text != NULL)
        return error_set(err, E_INVALID, "there is no '%s %s'; did you mean '%s %s'?", noun, word,
                         noun, best.text);
    return error_set(err, E_INVALID, "there is no '%s %s'; there are %s", noun, word,
                     buf_str(&all));
}

static void drop_words(struct args *a, size_t n)
{
    a->word_count -= n;
    memmove(a->words, a->words + n, (a->word_count + 1) * sizeof *a->words);
}

static int find_command(struct args *a, struct error *err)
{
    if (a->word_count == 0)
        return 0;
    const char *noun = a->words[0];
    a->command = command_find_alias(noun);
    if (a->command == NULL)
        a->command = command_find(noun, NULL);
    if (a->command != NULL) {
        drop_words(a, 1);
        return 0;
    }
    if (!noun_exists(noun))
        return unknown_noun(noun, err);
    if (a->word_count == 1) {
        a->noun = noun;
        return 0;
    }
    a->command = command_find(noun, a->words[1]);
    if (a->command == NULL)
        return unknown_verb(noun, a->words[1], err);
    drop_words(a, 2);
    return 0;
}

static int check_command(const struct args *a, struct error *err)
{
    const struct command *c = a->command;
    const char *verb = c->verb != NULL ? c->verb : "";
    const char *gap = c->verb != NULL ? " " : "";
    if (a->given[F_help])
        return 0;
    if (a->to_by_letter && !command_takes(c, F_to))
        return choice_check(&flag_table[F_output], a->text[F_to], err);
    for (size_t id = 0; id < F_COUNT_; id++) {
        if (a->given[id] && !command_takes(c, (enum flag_id)id))
            return error_set(err, E_INVALID, "'%s%s%s' does not take --%s", c->noun, gap, verb,
                             flag_table[id].name);
    }
    if (a->word_count < c->min_words)
        return error_set(err, E_INVALID, "'%s%s%s' needs: %s", c->noun, gap, verb, c->words);
    if (a->word_count > c->max_words)
        return error_set(err, E_INVALID, "'%s%s%s': '%s' is one word too many; it takes: %s",
                         c->noun, gap, verb, a->words[c->max_words],
                         c->max_words > 0 ? c->words : "nothing");
    return 0;
}

/* A bucket may be named as the objects in it are. */
static void plain_buckets(struct args *a)
{
    static const char scheme[] = "dfc://";
    bool all = strcmp(a->command->noun, "bucket") == 0; /* names of new ones, too */
    for (size_t i = 0; i < a->word_count; i++) {
        size_t kind = i < COMMAND_WORDS ? i : COMMAND_WORDS - 1;
        if ((all || a->command->kinds[kind] == WORD_BUCKET) &&
            strncmp(a->words[i], scheme, strlen(scheme)) == 0)
            a->words[i] += strlen(scheme);
    }
}

int args_parse(struct args *a, int argc, char *const *argv, struct error *err)
{
    struct cursor c = {.argc = argc, .argv = argv};
    bool only_words = false;
    *a = (struct args){.words = xcalloc((size_t)argc + 1, sizeof *a->words)};
    for (c.at = 1; c.at < argc; c.at++) {
        const char *word = argv[c.at];
        int rc = 0;
        if (only_words || word[0] != '-' || word[1] == '\0')
            a->words[a->word_count++] = word;
        else if (strcmp(word, "--") == 0)
            only_words = true;
        else if (word[1] == '-')
            rc = long_flag(a, word + 2, &c, err);
        else
            rc = short_flags(a, word + 1, &c, err);
        if (rc != 0)
            return rc;
    }
    int rc = find_command(a, err);
    if (rc != 0 || a->command == NULL)
        return rc;
    plain_buckets(a);
    return check_command(a, err);
}

void args_done(struct args *a)
{
    for (size_t i = 0; i < F_COUNT_; i++)
        free(a->list[i]);
    free(a->words);
    *a = (struct args){0};
}
