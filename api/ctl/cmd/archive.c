/* archive ls, cat, get: the members of one archive. */
#include "api/ctl/commands.h"

#include <unistd.h>

#include "api/ctl/archive/opened.h"
#include "api/ctl/files/landing.h"
#include "api/ctl/names/name.h"
#include "api/ctl/print/table.h"
#include "common/mem.h"

#define SIZE_COLUMN 12
#define TIME_COLUMN 21

/* ---- ls ---- */

static const char *type_name(char type)
{
    switch (type) {
    case '0':
        return "file";
    case '1':
        return "hard link";
    case '2':
        return "link";
    case '5':
        return "directory";
    default:
        return "other";
    }
}

static void print_member(struct ctl *ctl, const struct unarchiver_member *m, bool first)
{
    char size[24], modified[32];
    if (first && ctl->headers)
        fprintf(ctl->out, "%-*s%-*sNAME\n", SIZE_COLUMN, "SIZE", TIME_COLUMN, "MODIFIED");
    table_put_clean(ctl->out, m->size_known && m->type == '0' ? ctl_size(ctl, m->size, size) : "-",
                    SIZE_COLUMN);
    table_put_clean(ctl->out, ctl_time(m->mtime * 1000, modified), TIME_COLUMN);
    table_put_clean(ctl->out, m->path, 0);
    if (m->link[0] != '\0') {
        fputs(" -> ", ctl->out);
        table_put_clean(ctl->out, m->link, 0);
    }
    fputc('\n', ctl->out);
}

/* A name that is no UTF-8 cannot be in JSON. */
static json_t *member_json(const struct unarchiver_member *m)
{
    json_t *name = json_string(m->path);
    json_t *size = m->size_known ? json_integer((json_int_t)m->size) : json_null();
    json_t *doc =
        json_pack("{s:o, s:o, s:I, s:s}", "name", name != NULL ? name : json_null(), "size", size,
                  "modified", (json_int_t)m->mtime, "type", type_name(m->type));
    if (m->link[0] != '\0')
        json_object_set_new(doc, "link", json_string(m->link));
    return doc;
}

int archive_ls(struct ctl *ctl, const struct args *args)
{
    _cleanup_(opened_done)
    struct opened o = {0};
    struct unarchiver_member m;
    json_t *list = ctl->json ? json_array() : NULL;
    int code = opened_open(ctl, args, &o);
    for (bool first = true; code == EXIT_OK; first = false) {
        if (opened_next(ctl, &o, &m, &code) <= 0)
            break;
        if (ctl->json)
            json_array_append_new(list, member_json(&m));
        else
            print_member(ctl, &m, first);
    }
    if (ctl->json && code == EXIT_OK)
        ctl_print_json(ctl, json_incref(list));
    json_decref(list);
    return code;
}

/* ---- cat, get ---- */

/* A name may be there several times: the last one counts, as when a tar is extracted.  *number: its
 * place in the archive. */
static int find(struct ctl *ctl, const struct args *args, struct opened *o, const char *name,
                uint64_t *number)
{
    struct unarchiver_member m;
    bool found = false;
    int code = opened_open(ctl, args, o);
    for (uint64_t i = 0; code == EXIT_OK && opened_next(ctl, o, &m, &code) > 0; i++) {
        if (strcmp(m.path, name) == 0) {
            *number = i;
            found = true;
        }
    }
    if (code != EXIT_OK || found)
        return code;
    struct error e;
    error_set(&e, E_NOT_FOUND, "'%s' has no member '%s': 'dfcctl archive ls' shows them",
              args->words[0], name);
    return ctl_fail_common(ctl, &e, EXIT_NOT_FOUND);
}

static int refuse_kind(struct ctl *ctl, const struct unarchiver_member *m)
{
    struct error e;
    error_set(&e, E_INVALID, "member '%s' is no file, but of type %s", m->path, type_name(m->type));
    return ctl_fail_common(ctl, &e, EXIT_FAILED);
}

/* Its contents go to a descriptor. */
static int copy_member(struct ctl *ctl, const struct args *args, const char *name, int fd)
{
    uint64_t number = 0;
    _cleanup_(opened_done)
    struct opened o = {0};
    struct unarchiver_member m = {.type = '?', .path = name};
    int code = find(ctl, args, &o, name, &number);
    if (code == EXIT_OK)
        code = opened_again(ctl, &o);
    for (uint64_t i = 0; code == EXIT_OK && i <= number; i++)
        (void)opened_next(ctl, &o, &m, &code);
    if (code != EXIT_OK)
        return code;
    return m.type == '0' ? opened_copy(ctl, &o, fd) : refuse_kind(ctl, &m);
}

int archive_cat(struct ctl *ctl, const struct args *args)
{
    int code = EXIT_OK;
    fflush(ctl->out);
    for (size_t i = 1; i < args->word_count && code == EXIT_OK; i++)
        code = copy_member(ctl, args, args->words[i], STDOUT_FILENO);
    return code;
}

int archive_get(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_(landing_done)
    struct landing l = LANDING_INIT;
    const char *name = args->words[1];
    const char *path = args->word_count > 2 ? args->words[2] : name_base(name);
    if (args->word_count == 2 && name_check_local(path, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (landing_open_path(&l, path, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_FAILED);
    int code = copy_member(ctl, args, name, l.fd);
    if (code == EXIT_OK && landing_commit(&l, &e) != 0)
        code = ctl_fail_common(ctl, &e, EXIT_FAILED);
    if (code == EXIT_OK)
        ctl_say(ctl, "%s", path);
    return code;
}
