#include "common/suggest.h"

#define LETTERS 64

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

size_t suggest_distance(const char *a, const char *b)
{
    size_t n = strnlen(a, LETTERS);
    size_t m = strnlen(b, LETTERS);
    size_t d[LETTERS + 1][LETTERS + 1];
    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            size_t same = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[n][m];
}

void suggest(struct suggestion *best, const char *word, const char *candidate)
{
    size_t distance = suggest_distance(word, candidate);
    size_t len = strlen(word);
    size_t near_enough = len <= 4 ? 1 : len <= 8 ? 2 : 3; /* none is better than a wrong one */
    if (distance > near_enough || distance >= best->distance)
        return;
    best->text = candidate;
    best->distance = distance;
}
