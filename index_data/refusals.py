"""How commands refuse: one sentence, exit code 2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

from index_data.manifest import IndexDataError
from index_data.query import BadQuery
from index_data.rebalance import BadLoad


class Refused(click.ClickException):
    """What was asked for cannot be done; the message says why."""

    exit_code = 2


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Turn what the operator can act on into one sentence and exit code 2."""
    try:
        yield
    except (IndexDataError, BadQuery, BadLoad) as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise Refused(f"{error.filename or 'The disk'}: {error.strerror}.") from error
