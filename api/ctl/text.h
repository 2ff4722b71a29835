/* Text of others (names, messages) for a terminal: pure. */
#pragma once

/* A copy without what could move the cursor, or show the text as another: control characters (C0,
 * DEL, C1), Unicode's bidirectional controls and invisible characters, and broken UTF-8 stand as
 * \xNN.  Free it. */
char *text_clean(const char *text);

/* A copy of a job's message in which the field that accepts it is named as the flag.  Free it. */
char *text_with_flags(const char *message);
