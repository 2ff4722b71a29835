/* A list of objects with the members of archives (expand.h): pages of the plain list, and of
 * the members of each archive in it, asked for one after the other.
 *
 *   list_archives_start ─▶ page of the list ─▶ members of an archive ─▶ … ─▶ reply
 *                               ▲                      │
 *                               └──────────────────────┘
 *
 * An object that is no archive in spite of its name, or is deleted meanwhile, has no members.  A
 * damaged archive fails the page, and is named: a list is whole or refused.
 *
 * Whoever sees members reads archives: the caller needs the right `read` on the prefix. */
#pragma once

struct http_request;
struct list_request;

/* As list_start(), which it calls where no members are wanted. */
void list_archives_start(struct http_request *req, const struct list_request *r);
