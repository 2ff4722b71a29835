#include "vdisc/iso_date.h"

#include <time.h>

#define FIRST_YEAR 1900
#define QUARTER_HOUR_S 900
#define DAY_S 86400
#define DAYS_400_YEARS 146097
#define TO_1970_S (INT64_C(719468) * DAY_S)

bool iso_date_fits(int64_t unix_s)
{
    /* 1900-01-01 and 2155-12-31, 23:59:59 */
    return unix_s >= -2208988800 && unix_s <= 5869583999;
}

/* gmtime_r() takes a lock and looks at the time zone, for each record of an image.  Years begin in
 * March here, so that a leap day is the last one of its year. */
static struct tm parts_of(int64_t unix_s)
{
    const int64_t since_0000 = unix_s + TO_1970_S; /* since 0000-03-01 */
    const int64_t day = since_0000 / DAY_S, second = since_0000 % DAY_S;
    const int64_t cycle = day / DAYS_400_YEARS, of_cycle = day % DAYS_400_YEARS;
    const int64_t year =
        (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / (DAYS_400_YEARS - 1)) / 365;
    const int64_t of_year = of_cycle - (365 * year + year / 4 - year / 100);
    const int64_t month = (5 * of_year + 2) / 153; /* 0: March */
    return (struct tm){.tm_year = (int)(400 * cycle + year + (month >= 10) - FIRST_YEAR),
                       .tm_mon = (int)(month < 10 ? month + 2 : month - 10),
                       .tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1),
                       .tm_hour = (int)(second / 3600),
                       .tm_min = (int)(second / 60 % 60),
                       .tm_sec = (int)(second % 60)};
}

void iso_date_put(uint8_t to[static ISO_DATE_SHORT], int64_t unix_s)
{
    const struct tm tm = parts_of(unix_s);
    to[0] = (uint8_t)tm.tm_year;
    to[1] = (uint8_t)(tm.tm_mon + 1);
    to[2] = (uint8_t)tm.tm_mday;
    to[3] = (uint8_t)tm.tm_hour;
    to[4] = (uint8_t)tm.tm_min;
    to[5] = (uint8_t)tm.tm_sec;
    to[6] = 0;
}

static void put_digits(uint8_t *to, int digits, int value)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        to[i] = (uint8_t)('0' + value % 10);
}

void iso_date_put_long(uint8_t to[static ISO_DATE_LONG], int64_t unix_s)
{
    const struct tm tm = parts_of(unix_s);
    put_digits(to, 4, tm.tm_year + FIRST_YEAR);
    put_digits(to + 4, 2, tm.tm_mon + 1);
    put_digits(to + 6, 2, tm.tm_mday);
    put_digits(to + 8, 2, tm.tm_hour);
    put_digits(to + 10, 2, tm.tm_min);
    put_digits(to + 12, 2, tm.tm_sec);
    put_digits(to + 14, 2, 0); /* hundredths */
    to[16] = 0;
}

int64_t iso_date_get(const uint8_t from[static ISO_DATE_SHORT])
{
    struct tm tm = {
        .tm_year = from[0],
        .tm_mon = from[1] - 1,
        .tm_mday = from[2],
        .tm_hour = from[3],
        .tm_min = from[4],
        .tm_sec = from[5],
    };
    if (from[1] < 1 || from[1] > 12 || from[2] < 1 || from[2] > 31 || from[3] > 23 ||
        from[4] > 59 || from[5] > 59)
        return 0;
    return (int64_t)timegm(&tm) - (int8_t)from[6] * QUARTER_HOUR_S;
}
