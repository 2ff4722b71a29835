#include "api/ctl/command.h"

#include <string.h>

const struct flag flag_table[F_COUNT_] = {
#define FLAG(id_, name_, letter_, type_, arg_, choices_, help_) \
    [F_##id_] = {.name = (name_),                               \
                 .letter = (letter_),                           \
                 .type = FLAG_##type_,                          \
                 .arg = (arg_),                                 \
                 .choices = (choices_),                         \
                 .help = (help_)},
#include "api/ctl/flags.def"
#undef FLAG
};

const enum flag_id common_flags[] = {F_endpoint,     F_profile, F_cluster_key_file,
                                     F_control,      F_ca_file, F_insecure,
                                     F_output,       F_units,   F_no_headers,
                                     F_quiet,        F_verbose, F_retries,
                                     F_idle_timeout, F_help,    F_END};

const enum flag_id bucket_new_flags[] = {
#define BUCKET_PROP(name, ...) F_##name,
#include "cluster/props/bucket_props.def"
#undef BUCKET_PROP
    F_no_check,
    F_END,
};

#define CHANGED_always(id) id,
#define CHANGED_in_part(id) id,
#define CHANGED_creation(id)
const enum flag_id bucket_change_flags[] = {
#define BUCKET_PROP(name, flag, kind, ctype, field, standard, least, most, changes, ...) \
    CHANGED_##changes(F_##name)
#include "cluster/props/bucket_props.def"
#undef BUCKET_PROP
    F_END,
};

const struct command *command_find(const char *noun, const char *verb)
{
    for (const struct command *c = commands; c->noun != NULL; c++) {
        bool same_verb =
            verb == NULL || c->verb == NULL ? verb == c->verb : strcmp(c->verb, verb) == 0;
        if (same_verb && strcmp(c->noun, noun) == 0)
            return c;
    }
    return NULL;
}

const struct command *command_find_alias(const char *alias)
{
    for (const struct command *c = commands; c->noun != NULL; c++) {
        if (c->alias != NULL && strcmp(c->alias, alias) == 0)
            return c;
    }
    return NULL;
}

static bool list_has(const enum flag_id *list, enum flag_id id)
{
    for (; *list != F_END; list++) {
        if (*list == id)
            return true;
    }
    return false;
}

bool command_takes(const struct command *c, enum flag_id id)
{
    return list_has(common_flags, id) || list_has(c->flags, id);
}

const char *command_flag_help(const struct command *c, enum flag_id id)
{
    for (const struct flag_help *h = c->flag_help; h != NULL && h->flag != F_END; h++) {
        if (h->flag == id)
            return h->text;
    }
    return flag_table[id].help;
}

bool noun_exists(const char *name)
{
    for (const struct noun *n = nouns; n->name != NULL; n++) {
        if (strcmp(n->name, name) == 0)
            return true;
    }
    return false;
}

const struct flag *flag_find(const char *name, size_t len)
{
    for (const struct flag *f = flag_table; f < flag_table + F_COUNT_; f++) {
        if (strlen(f->name) == len && memcmp(f->name, name, len) == 0)
            return f;
    }
    return NULL;
}

const struct flag *flag_find_letter(char letter)
{
    for (const struct flag *f = flag_table; f < flag_table + F_COUNT_; f++) {
        if (f->letter == letter && letter != '\0')
            return f;
    }
    return NULL;
}

enum flag_id flag_id(const struct flag *f)
{
    return (enum flag_id)(f - flag_table);
}

bool flag_wants_value(const struct flag *f)
{
    return f->type != FLAG_bool && f->type != FLAG_seconds;
}
