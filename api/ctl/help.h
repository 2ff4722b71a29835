/* Help, from the command table. */
#pragma once

#include <stdio.h>

#include "api/ctl/command.h"

void help_all(FILE *out);
void help_noun(FILE *out, const char *noun);
void help_command(FILE *out, const struct command *c);
void help_markdown(FILE *out); /* docs/reference/dfcctl.md */
/* "-o, --output FORMAT" */
void help_flag_text(const struct flag *f, char *out, size_t room);
