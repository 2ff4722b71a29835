#include "common/clock.h"

#include <stdbool.h>

#include "common/error.h"
#include "common/fault.h"

static const char *const clock_days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                         "Thursday", "Friday", "Saturday"};
static const char *const clock_months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static struct timespec clock_read(clockid_t id)
{
    struct timespec now;
    if (clock_gettime(id, &now) != 0)
        abort(); /* both clocks exist on every Linux */
    return now;
}

uint64_t clock_us(void)
{
    struct timespec now = clock_read(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_ms(void)
{
    return clock_us() / 1000;
}

uint64_t clock_boot_ms(void)
{
    struct timespec now = clock_read(CLOCK_BOOTTIME);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct timespec clock_after(uint64_t ms)
{
    struct timespec then = clock_read(CLOCK_MONOTONIC);
    then.tv_nsec += (long)(ms % 1000) * 1000000;
    then.tv_sec += (time_t)(ms / 1000) + then.tv_nsec / 1000000000;
    then.tv_nsec %= 1000000000;
    return then;
}

int64_t clock_wall_ms(void)
{
    struct timespec now = clock_read(CLOCK_REALTIME);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + fault_shift_ms("clock.wall");
}

static struct tm clock_utc(int64_t unix_s)
{
    struct tm tm = {0};
    time_t t = unix_s;
    /* Both formats have four digits for the year: another one shows as the epoch. */
    if (gmtime_r(&t, &tm) == NULL || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900)
        tm = (struct tm){.tm_mday = 1, .tm_year = 70, .tm_wday = 4};
    return tm;
}

static unsigned two_digits(int value)
{
    return (unsigned)value % 100;
}

static unsigned four_digits(int value)
{
    return (unsigned)value % 10000;
}

const char *clock_format_rfc3339(int64_t unix_ms, char out[static 32])
{
    int64_t unix_s = unix_ms / 1000 - (unix_ms % 1000 < 0);
    struct tm tm = clock_utc(unix_s);
    snprintf(out, 32, "%04u-%02u-%02uT%02u:%02u:%02uZ", four_digits(tm.tm_year + 1900),
             two_digits(tm.tm_mon + 1), two_digits(tm.tm_mday), two_digits(tm.tm_hour),
             two_digits(tm.tm_min), two_digits(tm.tm_sec));
    return out;
}

const char *clock_format_http(int64_t unix_s, char out[static 32])
{
    struct tm tm = clock_utc(unix_s);
    snprintf(out, 32, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", clock_days[tm.tm_wday],
             two_digits(tm.tm_mday), clock_months[tm.tm_mon], four_digits(tm.tm_year + 1900),
             two_digits(tm.tm_hour), two_digits(tm.tm_min), two_digits(tm.tm_sec));
    return out;
}

/* A scanner over the text: each function takes what it names and moves on, or returns false. */

static bool scan_text(const char **at, const char *want)
{
    size_t len = strlen(want);
    if (strncmp(*at, want, len) != 0)
        return false;
    *at += len;
    return true;
}

static bool scan_digits(const char **at, int count, int *out)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if ((*at)[i] < '0' || (*at)[i] > '9')
            return false;
        value = value * 10 + ((*at)[i] - '0');
    }
    *at += count;
    *out = value;
    return true;
}

/* asctime pads the day with a space. */
static bool scan_padded_day(const char **at, int *out)
{
    return scan_text(at, " ") ? scan_digits(at, 1, out) : scan_digits(at, 2, out);
}

static bool scan_month(const char **at, int *out)
{
    for (int i = 0; i < 12; i++) {
        if (scan_text(at, clock_months[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool scan_day_name(const char **at, bool whole)
{
    for (int i = 0; i < 7; i++) {
        char abbreviated[4];
        snprintf(abbreviated, sizeof abbreviated, "%.3s", clock_days[i]);
        if (scan_text(at, whole ? clock_days[i] : abbreviated))
            return true;
    }
    return false;
}

static bool scan_time(const char **at, struct tm *tm)
{
    return scan_digits(at, 2, &tm->tm_hour) && scan_text(at, ":") &&
           scan_digits(at, 2, &tm->tm_min) && scan_text(at, ":") && scan_digits(at, 2, &tm->tm_sec);
}

static bool scan_year(const char **at, struct tm *tm)
{
    int year;
    if (!scan_digits(at, 4, &year))
        return false;
    tm->tm_year = year - 1900;
    return true;
}

/* RFC 9110: a two-digit year that seems more than 50 years ahead is the last one with these
 * digits. */
static bool scan_short_year(const char **at, struct tm *tm)
{
    int year;
    if (!scan_digits(at, 2, &year))
        return false;
    int now = clock_utc(clock_wall_ms() / 1000).tm_year;
    tm->tm_year = now / 100 * 100 + year;
    if (tm->tm_year > now + 50)
        tm->tm_year -= 100;
    return true;
}

static bool scan_imf_fixdate(const char *at, struct tm *tm) /* Sun, 06 Nov 1994 08:49:37 GMT */
{
    return scan_day_name(&at, false) && scan_text(&at, ", ") && scan_digits(&at, 2, &tm->tm_mday) &&
           scan_text(&at, " ") && scan_month(&at, &tm->tm_mon) && scan_text(&at, " ") &&
           scan_year(&at, tm) && scan_text(&at, " ") && scan_time(&at, tm) &&
           scan_text(&at, " GMT") && *at == '\0';
}

static bool scan_rfc850(const char *at, struct tm *tm) /* Sunday, 06-Nov-94 08:49:37 GMT */
{
    return scan_day_name(&at, true) && scan_text(&at, ", ") && scan_digits(&at, 2, &tm->tm_mday) &&
           scan_text(&at, "-") && scan_month(&at, &tm->tm_mon) && scan_text(&at, "-") &&
           scan_short_year(&at, tm) && scan_text(&at, " ") && scan_time(&at, tm) &&
           scan_text(&at, " GMT") && *at == '\0';
}

static bool scan_asctime(const char *at, struct tm *tm) /* Sun Nov  6 08:49:37 1994 */
{
    return scan_day_name(&at, false) && scan_text(&at, " ") && scan_month(&at, &tm->tm_mon) &&
           scan_text(&at, " ") && scan_padded_day(&at, &tm->tm_mday) && scan_text(&at, " ") &&
           scan_time(&at, tm) && scan_text(&at, " ") && scan_year(&at, tm) && *at == '\0';
}

/* timegm would carry "31 Feb" over into March; second 60 is a leap second and may be carried. */
static int unix_of(const struct tm *tm, int64_t *unix_s)
{
    if (tm->tm_hour > 23 || tm->tm_min > 59 || tm->tm_sec > 60)
        return E_INVALID;
    struct tm carried = *tm;
    carried.tm_sec = 0;
    time_t minute = timegm(&carried);
    if (carried.tm_mday != tm->tm_mday || carried.tm_mon != tm->tm_mon)
        return E_INVALID;
    *unix_s = minute + tm->tm_sec;
    return 0;
}

int clock_parse_http(const char *text, int64_t *unix_s)
{
    struct tm tm = {0};
    if (!scan_imf_fixdate(text, &tm) && !scan_rfc850(text, &tm) && !scan_asctime(text, &tm))
        return E_INVALID;
    return unix_of(&tm, unix_s);
}

static bool scan_fraction(const char **at)
{
    int digit;
    if (!scan_text(at, "."))
        return true;
    if (!scan_digits(at, 1, &digit))
        return false;
    while (scan_digits(at, 1, &digit))
        ;
    return true;
}

/* "Z", "+01:00": how much that is ahead of UTC. */
static bool scan_offset(const char **at, int *seconds)
{
    int hours, minutes;
    *seconds = 0;
    if (scan_text(at, "Z"))
        return true;
    bool ahead = scan_text(at, "+");
    if ((!ahead && !scan_text(at, "-")) || !scan_digits(at, 2, &hours) || !scan_text(at, ":") ||
        !scan_digits(at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *seconds = (ahead ? 60 : -60) * (60 * hours + minutes);
    return true;
}

int clock_parse_rfc3339(const char *text, int64_t *unix_s)
{
    struct tm tm = {0};
    int64_t there;
    int month = 0, ahead = 0;
    bool whole = scan_year(&text, &tm) && scan_text(&text, "-") && scan_digits(&text, 2, &month) &&
                 scan_text(&text, "-") && scan_digits(&text, 2, &tm.tm_mday) &&
                 scan_text(&text, "T") && scan_time(&text, &tm) && scan_fraction(&text) &&
                 scan_offset(&text, &ahead) && *text == '\0';
    if (!whole || month < 1 || month > 12)
        return E_INVALID;
    tm.tm_mon = month - 1;
    if (unix_of(&tm, &there) != 0)
        return E_INVALID;
    *unix_s = there - ahead;
    return 0;
}
