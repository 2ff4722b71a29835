#include "mount/meta/postgres_sql.h"

#include <stddef.h>

/* Fields are little-endian, as in mount/meta/meta.h; `place` counts bytes from 0.  A run is a
 * server process, by the moment of its start. */
const char *const postgres_schema[] = {
    "BEGIN",
    "SELECT pg_advisory_xact_lock(1684431734)", /* two that make it at once */
    "CREATE TABLE IF NOT EXISTS dfc_volume(format integer NOT NULL, number bigint NOT NULL)",
    "CREATE TABLE IF NOT EXISTS dfc_run(place bigserial PRIMARY KEY, run text NOT NULL, "
    "number bigint NOT NULL)",
    "CREATE TABLE IF NOT EXISTS dfc_kv(k bytea PRIMARY KEY, v bytea NOT NULL) "
    "WITH (fillfactor = 80)",
    "ALTER TABLE dfc_kv ALTER COLUMN v SET STORAGE EXTERNAL",
    "INSERT INTO dfc_volume(format, number) SELECT 1, 0 "
    "WHERE NOT EXISTS (SELECT FROM dfc_volume)",
    "CREATE OR REPLACE FUNCTION dfc_field(v bytea, place integer) RETURNS bigint "
    "LANGUAGE sql IMMUTABLE AS $$ SELECT "
    "(get_byte(v, place + 7)::bigint << 56) | (get_byte(v, place + 6)::bigint << 48) | "
    "(get_byte(v, place + 5)::bigint << 40) | (get_byte(v, place + 4)::bigint << 32) | "
    "(get_byte(v, place + 3)::bigint << 24) | (get_byte(v, place + 2)::bigint << 16) | "
    "(get_byte(v, place + 1)::bigint << 8) | get_byte(v, place)::bigint$$",
    /* the eight bytes of a number, in the other order */
    "CREATE OR REPLACE FUNCTION dfc_reversed(b bytea) RETURNS bytea "
    "LANGUAGE sql IMMUTABLE AS $$ SELECT substr(b, 8, 1) || substr(b, 7, 1) || "
    "substr(b, 6, 1) || substr(b, 5, 1) || substr(b, 4, 1) || substr(b, 3, 1) || "
    "substr(b, 2, 1) || substr(b, 1, 1)$$",
    /* of a directory's entry: the key of the inode's attribute */
    "CREATE OR REPLACE FUNCTION dfc_attribute(v bytea) RETURNS bytea "
    "LANGUAGE sql IMMUTABLE AS $$ SELECT 'A'::bytea || CASE WHEN length(v) >= 24 "
    "THEN dfc_reversed(substr(v, 17, 8)) ELSE int8send(0) END$$",
    /* numbers wrap around, as in the other engines */
    "CREATE OR REPLACE FUNCTION dfc_sum(a bigint, b bigint) RETURNS bigint "
    "LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN s > 9223372036854775807 "
    "THEN s - 18446744073709551616 WHEN s < -9223372036854775808 "
    "THEN s + 18446744073709551616 ELSE s END::bigint "
    "FROM (SELECT a::numeric + b::numeric AS s) AS x$$",
    /* kinds has a letter a step; those of redis.c.  In a text a place is counted from the begin, in
     * bytes it is not.  The first loop changes nothing. */
    "CREATE OR REPLACE FUNCTION dfc_commit(stamp bytea, kinds text, keys bytea[], "
    "data bytea[], offsets integer[], numbers bigint[]) RETURNS integer "
    "LANGUAGE plpgsql AS $$ "
    "DECLARE letters bytea := convert_to(kinds, 'UTF8'); kind text; old bytea; place integer; "
    "BEGIN "
    "FOR i IN 1 .. length(letters) LOOP "
    "  kind := chr(get_byte(letters, i - 1)); CONTINUE WHEN kind IN ('P', 'D'); "
    "  SELECT v INTO old FROM dfc_kv WHERE k = keys[i]; "
    "  place := offsets[i] + 8; "
    "  IF (CASE kind "
    "      WHEN 'a' THEN old IS NULL "
    "      WHEN 'p' THEN old IS NOT NULL "
    "      WHEN 's' THEN substr(old, 1, 8) = data[i] "
    "      WHEN 'S' THEN place + length(data[i]) <= length(old) "
    "      WHEN 'e' THEN CASE WHEN place + 8 <= length(old) "
    "                    THEN dfc_field(old, place) = numbers[i] END "
    "      WHEN 'l' THEN CASE WHEN place + 8 <= length(old) "
    "                    THEN dfc_field(old, place) >= numbers[i] END "
    "      ELSE place + 8 <= length(old) END) IS NOT TRUE THEN RETURN i - 1; END IF; "
    "END LOOP; "
    "FOR i IN 1 .. length(letters) LOOP "
    "  place := offsets[i] + 8; "
    "  CASE chr(get_byte(letters, i - 1)) "
    "  WHEN 'P' THEN INSERT INTO dfc_kv(k, v) VALUES (keys[i], stamp || data[i]) "
    "    ON CONFLICT (k) DO UPDATE SET v = excluded.v; "
    "  WHEN 'D' THEN DELETE FROM dfc_kv WHERE k = keys[i]; "
    "  WHEN 'S' THEN UPDATE dfc_kv SET v = stamp || overlay(substr(v, 9) PLACING data[i] "
    "    FROM offsets[i] + 1 FOR length(data[i])) WHERE k = keys[i]; "
    "  WHEN 'A' THEN UPDATE dfc_kv SET v = overlay(v PLACING dfc_reversed(int8send("
    "    dfc_sum(dfc_field(v, place), numbers[i]))) FROM place + 1 FOR 8) WHERE k = keys[i]; "
    "  WHEN 'R' THEN UPDATE dfc_kv SET v = overlay(v PLACING dfc_reversed(int8send("
    "    numbers[i])) FROM place + 1 FOR 8) "
    "    WHERE k = keys[i] AND dfc_field(v, place) < numbers[i]; "
    "  ELSE NULL; END CASE; "
    "END LOOP; RETURN -1; END $$",
    /* known and seen are a client's last run and number: kept says whether that commit is there. */
    "CREATE OR REPLACE FUNCTION dfc_hello(known text, seen bigint, OUT format integer, "
    "OUT run text, OUT number bigint, OUT kept boolean) "
    "LANGUAGE plpgsql AS $$ DECLARE mine bigint; begun bigint; BEGIN "
    "  SELECT v.format, v.number INTO STRICT format, number FROM dfc_volume v FOR UPDATE; "
    "  run := extract(epoch FROM pg_postmaster_start_time())::text; "
    "  IF run IS DISTINCT FROM (SELECT r.run FROM dfc_run r ORDER BY place DESC LIMIT 1) THEN "
    "    INSERT INTO dfc_run(run, number) VALUES (run, number); "
    "    DELETE FROM dfc_run r WHERE r.place <= (SELECT max(place) - 1000 FROM dfc_run); "
    "  END IF; "
    "  SELECT max(r.place) INTO mine FROM dfc_run r WHERE r.run = known; "
    "  SELECT r.number INTO begun FROM dfc_run r WHERE r.place > mine ORDER BY place LIMIT 1; "
    "  kept := known = '' OR (mine IS NOT NULL AND coalesce(begun, number) >= seen); "
    "END $$",
    "COMMIT",
    NULL,
};

/* Every statement finds its rows by the index.  What a commit acknowledges is on the disk.  A call
 * has a bound of its own, META_POSTGRES_CALL_MS, so the timeouts of a role are off. */
const char postgres_settings[] =
    "SELECT set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', "
    "false),"
    " set_config('enable_mergejoin', 'off', false), set_config('jit', 'off', false),"
    " set_config('bytea_output', 'hex', false), set_config('client_min_messages', 'error', false),"
    " set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false),"
    " set_config('idle_in_transaction_session_timeout', '30s', false),"
    " set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    " WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)";

/* Those that servers have since some release, or on some systems.  A client whose machine dies
 * within a commit must not keep the row of dfc_volume.  The server waits for the rest of what it
 * sends then, which idle_in_transaction_session_timeout does not count: so its connection ends
 * after 25 s. */
const char postgres_new_settings[] =
    "SELECT set_config(s.name, wanted.setting, false) FROM (VALUES ('tcp_keepalives_idle', '10'),"
    " ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),"
    " ('client_connection_check_interval', '10s'), ('transaction_timeout', '0'))"
    " AS wanted(name, setting) JOIN pg_settings s ON s.name = wanted.name"
    " WHERE s.name <> 'client_connection_check_interval' OR version() LIKE '%linux%'";

const char *const postgres_statements[POSTGRES_STATEMENTS] = {
    [POSTGRES_HELLO] = "SELECT format, run, number, kept FROM dfc_hello($1::text, $2::bigint)",
    [POSTGRES_NOW] = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    [POSTGRES_GET] = "SELECT v FROM dfc_kv WHERE k = $1::bytea",
    [POSTGRES_FOLLOW] = "SELECT e.v, a.v FROM dfc_kv e LEFT JOIN dfc_kv a "
                        "ON a.k = dfc_attribute(e.v) WHERE e.k = $1::bytea",
    [POSTGRES_PAGE] = "SELECT k, v FROM dfc_kv WHERE k > $1::bytea AND k < $2::bytea "
                      "ORDER BY k LIMIT $3::bigint",
    [POSTGRES_LIST] = "SELECT e.k, e.v, a.v FROM (SELECT k, v FROM dfc_kv WHERE k > $1::bytea "
                      "AND k < $2::bytea ORDER BY k LIMIT $3::bigint) AS e "
                      "LEFT JOIN dfc_kv a ON a.k = dfc_attribute(e.v) ORDER BY e.k",
    [POSTGRES_NUMBER] = "UPDATE dfc_volume SET number = number + 1 RETURNING number",
    [POSTGRES_COMMIT] = "SELECT dfc_commit($1::bytea, $2::text, $3::bytea[], $4::bytea[], "
                        "$5::integer[], $6::bigint[])",
};
