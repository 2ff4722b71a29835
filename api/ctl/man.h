/* The manual page of dfcctl, from the command table. */
#pragma once

#include <stdio.h>

void help_man(FILE *out); /* dfcctl(1), for man */
