/* help, version, completion. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/complete.h"
#include "api/ctl/help.h"
#include "api/ctl/man.h"
#include "common/build.h"

int show_help(struct ctl *ctl, const struct args *args)
{
    const char *noun = args->words[0];
    if (args->given[F_man] && args->given[F_markdown])
        return ctl_usage(ctl, "--man and --markdown exclude each other");
    if (args->given[F_man] || args->given[F_markdown]) {
        (args->given[F_man] ? help_man : help_markdown)(ctl->out);
        return EXIT_OK;
    }
    if (noun == NULL) {
        help_all(ctl->out);
        return EXIT_OK;
    }
    const struct command *c = command_find(noun, args->words[1]);
    if (c == NULL && args->words[1] == NULL)
        c = command_find_alias(noun);
    if (c != NULL)
        help_command(ctl->out, c);
    else if (args->words[1] == NULL && noun_exists(noun))
        help_noun(ctl->out, noun);
    else
        return ctl_usage(ctl, "there is no command '%s%s%s'", noun,
                         args->words[1] != NULL ? " " : "",
                         args->words[1] != NULL ? args->words[1] : "");
    return EXIT_OK;
}

int show_version(struct ctl *ctl, const struct args *args)
{
    (void)args;
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s, s:s}", "version", build_release(), "commit",
                                      build_commit(), "built", build_date()));
    else
        fprintf(ctl->out, "dfcctl %s\n", build_text());
    return EXIT_OK;
}

int show_completion(struct ctl *ctl, const struct args *args)
{
    for (const struct completion_script *s = completion_scripts; s->shell != NULL; s++) {
        if (strcmp(args->words[0], s->shell) == 0) {
            fputs(s->text, ctl->out);
            return EXIT_OK;
        }
    }
    return ctl_usage(ctl, "there is no completion for '%s', only for bash, fish and zsh",
                     args->words[0]);
}
