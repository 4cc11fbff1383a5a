"""How every entry point ends: one clear line for the user, the right exit status, nothing half-written."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable

from servingbench.errors import UserError

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130


def run(main: Callable[[], None]) -> None:
    """Call ``main`` and turn the failures a user can act on into one line on stderr and an exit status."""
    try:
        main()
    except UserError as error:
        sys.exit(_fail(f"error: {error}", EXIT_USER_ERROR))
    except KeyboardInterrupt:
        sys.exit(_fail("interrupted: what was finished is kept; the same command continues.", EXIT_INTERRUPTED))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f" while writing {error.filename}" if error.filename else ""
        text = f"error: the disk is full{where}. Free some space and run the same command again; it continues."
        sys.exit(_fail(text, EXIT_USER_ERROR))


def _fail(text: str, status: int) -> int:
    print(text, file=sys.stderr)
    return status
