#!/usr/bin/env python3
"""A volume on PostgreSQL: the tests of a volume on Redis, over another server."""

import mount_redis
from lib import check, equal, main
from mount_lib import directory_of, needs_fuse, said_by_sanitizers
from mount_redis import (  # noqa: F401
    test_a_server_that_lost_commits_is_refused,
    test_a_volume_in_use_is_dumped,
    test_close_to_open,
    test_close_to_open_while_connections_are_cut,
    test_close_to_open_while_mounts_are_killed,
    test_close_to_open_while_the_server_is_killed,
    test_files_stay_over_mounts,
    test_random_calls_as_on_another_file_system,
    test_random_calls_of_two_mounts_in_turns,
    test_two_mounts_are_one_file_system,
    test_what_was_synced_survives_kill_9)
from mount_volume_kill import (  # noqa: F401
    test_changes_are_made_once,
    test_locks_stay,
    test_metadata_that_are_away)
from postgres_lib import Postgres, needs_postgres


def test_what_is_wrong_is_said(c):
    port = mount_redis.redis().port
    for url, says in ((f"postgres://dfc@127.0.0.1:{port}/none", '"none" does not exist'),
                      (f"postgres://nobody:se%40cret@127.0.0.1:{port}/postgres", '"nobody"'),
                      ("postgres://dfc@127.0.0.1:1/d", "refused")):
        done = c.dfcctl("fs", "format", url, "wrong", "--bucket", "dfc://wrong")
        check(done.returncode != 0 and says in done.stderr, f"{url}: {done.stderr}")
        check("se%40cret" not in done.stderr, done.stderr)
    done = c.dfcctl("fs", "mount", mount_redis.redis().url(99), directory_of(c, "no"))
    check(done.returncode != 0 and "no volume" in done.stderr, done.stderr)


def test_no_sanitizer_found_anything(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_postgres()
    needs_fuse()
    mount_redis.SERVER.append(Postgres())
    main(proxies=1, targets=2)
