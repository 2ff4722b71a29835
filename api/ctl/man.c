#include "api/ctl/man.h"

#include "api/ctl/command.h"
#include "api/ctl/exit.h"
#include "api/ctl/help.h"
#include "common/cleanup.h"
#include "common/pages/roff.h"

static void put_flags(struct buf *out, const struct command *c, const enum flag_id *list)
{
    char text[160];
    for (; *list != F_END; list++) {
        help_flag_text(&flag_table[*list], text, sizeof text);
        roff_item(out, text);
        roff_text(out, c != NULL ? command_flag_help(c, *list) : flag_table[*list].help);
    }
}

static void put_usage(struct buf *out, const struct command *c)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    buf_printf(&text, "dfcctl %s%s%s %s", c->noun, c->verb != NULL ? " " : "",
               c->verb != NULL ? c->verb : "", c->words);
    if (c->alias != NULL)
        buf_printf(&text, "\ndfcctl %s %s", c->alias, c->words);
    roff_verbatim(out, buf_str(&text));
}

static void put_examples(struct buf *out, const struct command *c)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    for (size_t i = 0; c->examples[i] != NULL; i++)
        buf_printf(&text, "%sdfcctl %s", i > 0 ? "\n" : "", c->examples[i]);
    if (text.len == 0)
        return;
    roff_paragraph(out, "Examples:");
    roff_verbatim(out, buf_str(&text));
}

static void put_command(struct buf *out, const struct command *c)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    buf_printf(&text, "%s%s%s", c->noun, c->verb != NULL ? " " : "",
               c->verb != NULL ? c->verb : "");
    roff_subpart(out, buf_str(&text));
    buf_clear(&text);
    buf_printf(&text, "%s.", c->summary);
    roff_text(out, buf_str(&text));
    put_usage(out, c);
    if (c->text != NULL)
        roff_verbatim(out, c->text);
    put_flags(out, c, c->flags);
    put_examples(out, c);
}

static void put_commands(struct buf *out)
{
    for (const struct noun *n = nouns; n->name != NULL; n++) {
        for (const struct command *c = commands; c->noun != NULL; c++) {
            if (strcmp(c->noun, n->name) == 0)
                put_command(out, c);
        }
    }
}

static void put_exit_codes(struct buf *out)
{
    char code[16];
    for (const struct exit_row *r = exit_rows; r->meaning != NULL; r++) {
        snprintf(code, sizeof code, "%d", r->code);
        roff_item(out, code);
        roff_text(out, r->meaning);
    }
}

void help_man(FILE *out)
{
    _cleanup_buf_ struct buf page = BUF_INIT;
    roff_head(&page, "dfcctl", 1, "use and look after a dfc cluster");
    roff_part(&page, "SYNOPSIS");
    roff_item(&page, "dfcctl");
    roff_text(&page, "NOUN VERB [FLAGS] [WORDS]");
    roff_part(&page, "DESCRIPTION");
    roff_text(&page,
              "Objects are named BUCKET/KEY or dfc://BUCKET/KEY. Flags may be anywhere; behind "
              "-- everything is a word. 'dfcctl NOUN VERB --help' explains one command.");
    roff_part(&page, "COMMANDS");
    put_commands(&page);
    roff_part(&page, "FLAGS OF EVERY COMMAND");
    put_flags(&page, NULL, common_flags);
    roff_part(&page, "EXIT STATUS");
    put_exit_codes(&page);
    roff_part(&page, "SEE ALSO");
    roff_text(&page, "dfc-proxyd(8), dfc-targetd(8), dfc-cached(8)");
    fputs(buf_str(&page), out);
}
