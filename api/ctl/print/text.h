/* Text of others (names, messages) for a terminal: pure. */
#pragma once

/* A copy without what could move the cursor, or show the text as another: control characters (C0,
 * DEL, C1), Unicode's bidirectional controls and invisible characters, and broken UTF-8 stand as
 * \xNN.  Free it. */
char *text_clean(const char *text);

/* Whether `what` ends with a name in quotes that `message` has in quotes, too: then the message
 * says by itself what it is about ("show bucket 'b'": "bucket 'b' does not exist"). */
_Bool text_names(const char *message, const char *what);

/* A copy of a job's message in which the field that accepts it is named as the flag.  Free it. */
char *text_with_flags(const char *message);
