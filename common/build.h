/* Which build this is.  The commit comes from common/commit.sh into build_commit.h, which main()
 * alone includes, so that a commit does not build everything anew. */
#pragma once

/* Once, before anything else; "" where nobody knows it.  The text must stay. */
void build_set_commit(const char *commit);
const char *build_release(void); /* "0.1.0" */
const char *
build_commit(void); /* "bd686e2eb7c2", with "+changes" behind it where files differed; or "" */
const char *build_text(void); /* "0.1.0 (bd686e2eb7c2)", or "0.1.0" */
