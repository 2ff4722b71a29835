#include "api/ctl/help.h"

#include "api/ctl/exit.h"

#define FLAG_COLUMN 30

static void put_name(FILE *out, const struct command *c)
{
    fprintf(out, "dfcctl %s%s%s", c->noun, c->verb != NULL ? " " : "",
            c->verb != NULL ? c->verb : "");
}

static void put_synopsis(FILE *out, const struct command *c)
{
    put_name(out, c);
    if (c->words[0] != '\0')
        fprintf(out, " %s", c->words);
}

void help_flag_text(const struct flag *f, char *out, size_t room)
{
    char letter[8] = "";
    if (f->letter != '\0')
        snprintf(letter, sizeof letter, "-%c, ", f->letter);
    if (f->type == FLAG_bool)
        snprintf(out, room, "%s--%s", letter, f->name);
    else if (f->type == FLAG_seconds)
        snprintf(out, room, "%s--%s[=%s]", letter, f->name, f->arg);
    else
        snprintf(out, room, "%s--%s %s", letter, f->name,
                 f->type == FLAG_choice ? f->choices : f->arg);
}

static void put_flag(FILE *out, const struct flag *f, const char *help)
{
    char text[160];
    help_flag_text(f, text, sizeof text);
    if (strlen(text) < FLAG_COLUMN)
        fprintf(out, "  %-*s %s\n", FLAG_COLUMN, text, help);
    else
        fprintf(out, "  %s\n  %*s %s\n", text, FLAG_COLUMN, "", help);
}

/* c: the command whose flags they are; NULL: those of every command. */
static void put_flags(FILE *out, const struct command *c, const enum flag_id *list)
{
    for (; *list != F_END; list++)
        put_flag(out, &flag_table[*list],
                 c != NULL ? command_flag_help(c, *list) : flag_table[*list].help);
}

void help_command(FILE *out, const struct command *c)
{
    fprintf(out, "%s.\n\nUsage: ", c->summary);
    put_synopsis(out, c);
    fputc('\n', out);
    if (c->alias != NULL)
        fprintf(out, "       dfcctl %s %s\n", c->alias, c->words);
    if (c->text != NULL)
        fprintf(out, "\n%s\n", c->text);
    if (c->flags[0] != F_END)
        fputs("\nFlags:\n", out);
    put_flags(out, c, c->flags);
    fputs("\nFlags of every command:\n", out);
    put_flags(out, NULL, common_flags);
    if (c->examples[0] != NULL)
        fputs("\nExamples:\n", out);
    for (size_t i = 0; c->examples[i] != NULL; i++)
        fprintf(out, "  dfcctl %s\n", c->examples[i]);
}

static void put_commands(FILE *out, const char *noun)
{
    for (const struct command *c = commands; c->noun != NULL; c++) {
        if (strcmp(c->noun, noun) != 0)
            continue;
        char name[64];
        snprintf(name, sizeof name, "%s %s%s%s%s", c->noun, c->verb != NULL ? c->verb : "",
                 c->alias != NULL ? " (" : "", c->alias != NULL ? c->alias : "",
                 c->alias != NULL ? ")" : "");
        fprintf(out, "  %-26s %s\n", name, c->summary);
    }
}

void help_noun(FILE *out, const char *noun)
{
    fprintf(out, "Usage: dfcctl %s VERB ...\n\n", noun);
    put_commands(out, noun);
    fprintf(out, "\n'dfcctl %s VERB --help' says more.\n", noun);
}

static void put_exit_codes(FILE *out, const char *form)
{
    for (const struct exit_row *r = exit_rows; r->meaning != NULL; r++)
        fprintf(out, form, r->code, r->meaning);
}

void help_all(FILE *out)
{
    fputs("dfcctl: use and look after a dfc cluster.\n\n"
          "Usage: dfcctl NOUN VERB [FLAGS] [WORDS]\n\n",
          out);
    for (const struct noun *n = nouns; n->name != NULL; n++)
        put_commands(out, n->name);
    fputs("\nFlags of every command:\n", out);
    put_flags(out, NULL, common_flags);
    fputs("\nExit codes:\n", out);
    put_exit_codes(out, "  %3d  %s\n");
    fputs("\n'dfcctl NOUN VERB --help' says more about each, with examples.\n", out);
}

/* ---- Markdown ---- */

static void md_cell(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void md_flags(FILE *out, const struct command *c, const enum flag_id *list)
{
    char text[160];
    fputs("| flag | meaning |\n|---|---|\n", out);
    for (; *list != F_END; list++) {
        help_flag_text(&flag_table[*list], text, sizeof text);
        fputs("| `", out);
        md_cell(out, text);
        fputs("` | ", out);
        md_cell(out, c != NULL ? command_flag_help(c, *list) : flag_table[*list].help);
        fputs(" |\n", out);
    }
}

static void md_command(FILE *out, const struct command *c)
{
    fprintf(out, "\n### %s%s%s\n\n", c->noun, c->verb != NULL ? " " : "",
            c->verb != NULL ? c->verb : "");
    fprintf(out, "%s.\n\n```\n", c->summary);
    put_synopsis(out, c);
    if (c->alias != NULL)
        fprintf(out, "\ndfcctl %s %s", c->alias, c->words);
    fputs("\n```\n", out);
    if (c->text != NULL)
        fprintf(out, "\n%s\n", c->text);
    if (c->flags[0] != F_END) {
        fputc('\n', out);
        md_flags(out, c, c->flags);
    }
    if (c->examples[0] != NULL)
        fputs("\n```sh\n", out);
    for (size_t i = 0; c->examples[i] != NULL; i++)
        fprintf(out, "dfcctl %s\n", c->examples[i]);
    if (c->examples[0] != NULL)
        fputs("```\n", out);
}

static const char md_intro[] =
    "# dfcctl\n\n"
    "<!-- Made by `dfcctl help --markdown` from the command table in api/ctl. -->\n\n"
    "The command line of a cluster: `dfcctl NOUN VERB [FLAGS] [WORDS]`.\n\n"
    "Objects are named `BUCKET/KEY` or `dfc://BUCKET/KEY`. Flags may be anywhere; behind `--`\n"
    "everything is a word.\n\n"
    "**Output.** Tables are for people and may change. `-o json` prints one documented JSON value "
    "on\n"
    "standard output and nothing else (with `--watch`, one after another). Errors go to standard\n"
    "error; with `-o json` as one line\n"
    "`{\"error\": {\"code\", \"message\", \"exit\", \"status\", \"node\", \"request_id\"}}`, the "
    "last\n"
    "three where they are known. Progress bars appear on standard error when it is a terminal.\n\n"
    "**Environment.** `DFC_ENDPOINT`: the cluster's proxies, separated by commas. `NO_COLOR`: no\n"
    "colours.\n\n"
    "**Completion.** `source <(dfcctl completion bash)`, or fish, or zsh; it knows the\n"
    "cluster's buckets, objects, nodes and jobs as well, also as values of flags "
    "(`--input-bucket`).\n\n";

void help_markdown(FILE *out)
{
    fputs(md_intro, out);
    fputs("## Exit codes\n\n| code | meaning |\n|---|---|\n", out);
    put_exit_codes(out, "| %d | %s |\n");
    fputs("\nThese codes are fixed. 4 is not 3: a typo in a prefix does not pass for an empty "
          "result.\n"
          "7 is not 1: repeating the command does not help, other rights do.\n",
          out);
    fputs("\n## Flags of every command\n\n", out);
    md_flags(out, NULL, common_flags);
    for (const struct noun *n = nouns; n->name != NULL; n++) {
        fprintf(out, "\n## %s\n\n%s.\n", n->name, n->summary);
        for (const struct command *c = commands; c->noun != NULL; c++) {
            if (strcmp(c->noun, n->name) == 0)
                md_command(out, c);
        }
    }
}
