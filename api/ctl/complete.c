#include "api/ctl/complete.h"

#include "api/ctl/args.h"

/* The words before the last, without flags and their values: the command's name and words. */
struct scanned {
    const char *plain[2]; /* the first two */
    size_t count;
    const struct flag *pending; /* a flag that waits for its value */
};

static const struct flag *flag_of_word(const char *word)
{
    if (word[0] != '-' || word[1] == '\0')
        return NULL;
    if (word[1] == '-')
        return strchr(word, '=') != NULL ? NULL : flag_find(word + 2, strlen(word + 2));
    return flag_find_letter(word[strlen(word) - 1]);
}

static struct scanned scan(const char *const *words, size_t count)
{
    struct scanned s = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        if (s.pending != NULL) {
            s.pending = NULL;
            continue;
        }
        if (words[i][0] == '-' && words[i][1] != '\0') {
            const struct flag *f = flag_of_word(words[i]);
            s.pending = f != NULL && flag_wants_value(f) ? f : NULL;
            continue;
        }
        if (s.count < 2)
            s.plain[s.count] = words[i];
        s.count++;
    }
    return s;
}

/* The command that is named so far, and how many plain words that took; NULL while unclear. */
static const struct command *command_of(const struct scanned *s, size_t *took)
{
    if (s->count == 0)
        return NULL;
    const struct command *c = command_find_alias(s->plain[0]);
    if (c == NULL)
        c = command_find(s->plain[0], NULL);
    *took = 1;
    if (c != NULL || s->count < 2)
        return c;
    *took = 2;
    return command_find(s->plain[0], s->plain[1]);
}

static enum word_kind word_kind_at(const struct command *c, size_t at)
{
    if (at >= c->max_words)
        return WORD_OTHER;
    return c->kinds[at < COMMAND_WORDS ? at : COMMAND_WORDS - 1];
}

/* What names a flag's value is, by the word that help prints for it. */
static enum word_kind value_kind(const struct flag *f)
{
    static const struct {
        const char *arg;
        enum word_kind kind;
    } rows[] = {{"BUCKET", WORD_BUCKET}, {"NODE", WORD_NODE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(f->arg, rows[i].arg) == 0)
            return rows[i].kind;
    }
    return WORD_OTHER;
}

static void find_value_of(struct completion *c, const struct flag *f)
{
    c->flag = f;
    c->word = value_kind(f);
    c->kind = c->word != WORD_OTHER ? COMPLETE_WORD : COMPLETE_CHOICE;
}

static void find_flag_value(struct completion *c)
{
    const char *equals = strchr(c->start, '=');
    size_t len = (size_t)(equals - c->start);
    const struct flag *f = flag_find(c->start + 2, len - 2);
    if (f == NULL || len + 2 > sizeof c->lead)
        return;
    memcpy(c->lead, c->start, len + 1);
    c->lead[len + 1] = '\0';
    c->start = equals + 1;
    find_value_of(c, f);
}

void completion_find(struct completion *c, const char *const *words, size_t count)
{
    *c = (struct completion){.start = count > 0 ? words[count - 1] : ""};
    struct scanned s = scan(words, count > 0 ? count - 1 : 0);
    size_t took = 0;
    c->command = command_of(&s, &took);
    if (s.pending != NULL) {
        find_value_of(c, s.pending);
    } else if (strncmp(c->start, "--", 2) == 0 && strchr(c->start, '=') != NULL) {
        find_flag_value(c);
    } else if (c->start[0] == '-') {
        c->kind = COMPLETE_FLAG;
    } else if (s.count == 0) {
        c->kind = COMPLETE_COMMAND;
    } else if (c->command == NULL) {
        c->noun = s.plain[0];
        c->kind = s.count == 1 ? COMPLETE_VERB : COMPLETE_NOTHING;
    } else {
        c->word = word_kind_at(c->command, s.count - took);
        c->kind = COMPLETE_WORD;
    }
}

/* ---- candidates of the table ---- */

static void offer(const struct completion *c, struct buf *out, const char *text, const char *tail)
{
    if (strncmp(text, c->start, strlen(c->start)) == 0)
        buf_printf(out, "%s%s%s\n", c->lead, text, tail);
}

static void offer_commands(const struct completion *c, struct buf *out)
{
    for (const struct noun *n = nouns; n->name != NULL; n++)
        offer(c, out, n->name, "");
    for (const struct command *k = commands; k->noun != NULL; k++) {
        if (k->alias != NULL)
            offer(c, out, k->alias, "");
    }
}

static void offer_flag(const struct completion *c, struct buf *out, const struct flag *f)
{
    char text[64];
    snprintf(text, sizeof text, "--%s", f->name);
    offer(c, out, text, "");
}

static void offer_flags(const struct completion *c, struct buf *out)
{
    for (const enum flag_id *id = common_flags; *id != F_END; id++)
        offer_flag(c, out, &flag_table[*id]);
    if (c->command == NULL)
        return;
    for (const enum flag_id *id = c->command->flags; *id != F_END; id++)
        offer_flag(c, out, &flag_table[*id]);
}

static void offer_choices(const struct completion *c, struct buf *out)
{
    for (const char *p = c->flag->choices; *p != '\0';) {
        char one[64];
        size_t n = strcspn(p, "|");
        snprintf(one, sizeof one, "%.*s", (int)n, p);
        offer(c, out, one, "");
        p += n + (p[n] == '|' ? 1 : 0);
    }
}

void completion_of_table(const struct completion *c, struct buf *out)
{
    switch (c->kind) {
    case COMPLETE_COMMAND:
        offer_commands(c, out);
        break;
    case COMPLETE_VERB:
        for (const struct command *k = commands; k->noun != NULL; k++) {
            if (k->verb != NULL && strcmp(k->noun, c->noun) == 0)
                offer(c, out, k->verb, "");
        }
        break;
    case COMPLETE_FLAG:
        offer_flags(c, out);
        break;
    case COMPLETE_CHOICE:
        offer_choices(c, out);
        break;
    case COMPLETE_WORD:
        if (c->word == WORD_COMMAND)
            offer_commands(c, out);
        break;
    case COMPLETE_NOTHING:
        break;
    }
}
