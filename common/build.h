/* Which build this is.  Commit and date come from common/commit.sh into build_commit.h, which
 * main() alone includes, so that a commit does not build everything anew. */
#pragma once

/* Once, before anything else: "COMMIT DATE", where the commit may be "-": unknown. */
void build_set(const char *commit_and_date);
const char *build_release(void); /* "0.1.0" */
const char *
build_commit(void); /* "bd686e2eb7c2", with "+changes" behind it where files differed; or "" */
const char *build_date(void); /* "2026-11-29", in UTC; "" where build_set() was not called */
const char *build_text(void); /* "0.1.0 (bd686e2eb7c2), built 2026-11-29" */
