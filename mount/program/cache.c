/* cache: the members of a cache group. */
#include "mount/program/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cache_group.h"
#include "common/cleanup.h"
#include "common/parse.h"
#include "mount/group/drain.h"
#include "mount/group/map.h"
#include "mount/program/client.h"
#include "mount/program/options.h"

static int show_group(const struct options *o, const char *group, struct group_map **map)
{
    struct dfc_error told;
    struct error err = ERROR_INIT;
    struct dfc_client *client;
    _cleanup_free_ char *text = NULL;
    int code = client_open(o, o->ca_file, 1, &client);
    if (code != PROGRAM_OK)
        return code;
    int rc = cache_group_show(client, group, &text, &told);
    dfc_client_close(client);
    if (rc != DFC_OK)
        return program_fail(client_exit_of(rc), "%s", told.message);
    return group_map_parse(text, NULL, map, &err) == 0
               ? PROGRAM_OK
               : program_fail(PROGRAM_FAILED, "cache group '%s': %s", group, err.message);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct group_member *)a)->id, ((const struct group_member *)b)->id);
}

static int list(struct group_map *map, const char *group)
{
    char present[16];
    if (map->count == 0)
        return program_fail(PROGRAM_NOT_FOUND, "cache group '%s' has no members", group);
    qsort(map->members, map->count, sizeof *map->members, by_id);
    printf("%-24s %-8s %10s %9s  %s\n", "MEMBER", "STATE", "WEIGHT", "PRESENT", "URL");
    for (size_t i = 0; i < map->count; i++) {
        const struct group_member *m = &map->members[i];
        const char *state = m->away ? "away" : m->weight == 0 ? "drains" : "present";
        printf("%-24s %-8s %10" PRIu32 " %9s  %s\n", m->id, state, m->weight,
               format_duration(m->present_ms, present), m->url);
    }
    return fflush(stdout) == 0 ? PROGRAM_OK : program_fail(PROGRAM_FAILED, "write: %m");
}

static int drain(const struct options *o, const struct group_map *map)
{
    struct error err = ERROR_INIT;
    const char *group = o->paths[1], *id = o->paths[2];
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->members[i].id, id) != 0)
            continue;
        const char *key = o->group_key_file != NULL ? o->group_key_file : "";
        return group_drain(&map->members[i], key, o->timeout_ms, &err) == 0
                   ? PROGRAM_OK
                   : program_fail(PROGRAM_FAILED, "drain member '%s': %s", id, err.message);
    }
    return program_fail(PROGRAM_NOT_FOUND, "cache group '%s' has no member '%s'", group, id);
}

int program_cache(const struct options *o)
{
    struct group_map *map = NULL;
    bool lists = strcmp(o->paths[0], "ls") == 0;
    if (!lists && strcmp(o->paths[0], "drain") != 0)
        return program_fail(PROGRAM_USAGE, "'%s' is not 'ls' or 'drain'", o->paths[0]);
    if (o->path_count != (lists ? 2 : 3))
        return program_fail(PROGRAM_USAGE, "expected 'cache %s'",
                            lists ? "ls GROUP" : "drain GROUP MEMBER");
    if (o->paths[1][0] == '\0')
        return program_fail(PROGRAM_USAGE, "GROUP is empty: give the name of a group");
    int code = show_group(o, o->paths[1], &map);
    if (code == PROGRAM_OK)
        code = lists ? list(map, o->paths[1]) : drain(o, map);
    group_map_unref(map);
    return code;
}
