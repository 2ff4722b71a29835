#include "api/ctl/exit.h"

#include <stddef.h>

const struct exit_row exit_rows[] = {
    {EXIT_OK, "done"},
    {EXIT_FAILED, "failed"},
    {EXIT_USAGE, "the command line is wrong, or confirmation is missing (`--yes`)"},
    {EXIT_NOT_FOUND, "no such bucket, object, job or node"},
    {EXIT_DENIED, "not allowed"},
    {EXIT_UNREACHABLE, "the cluster or a node does not answer, or a wait ran out of time"},
    {EXIT_PARTIAL, "some of several objects failed; they are listed"},
    {EXIT_INTERRUPTED, "interrupted (SIGINT)"},
    {0, NULL},
};

int exit_of_result(int result)
{
    switch (result) {
    case DFC_OK:
        return EXIT_OK;
    case DFC_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case DFC_DENIED:
        return EXIT_DENIED;
    case DFC_UNREACHABLE:
    case DFC_TIMED_OUT:
        return EXIT_UNREACHABLE;
    case DFC_CANCELLED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_FAILED;
    }
}
