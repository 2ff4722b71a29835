"""The checks of the calls by AIStore's SDK, which run in the SDK's own Python."""


def equal(got, wanted, what):
    assert got == wanted, f"{what}: {got!r:.300} is not {wanted!r:.300}"


def raises(kinds, statuses, call, *args, **options):
    try:
        call(*args, **options)
    except kinds as error:
        assert error.status_code in statuses, f"{call}: {error}"
        return str(error)
    raise AssertionError(f"{call} {args} has not failed")
