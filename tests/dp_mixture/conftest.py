"""The command line and a file of points, as the tests of all commands have them."""

from tests.cli.conftest import points, run

__all__ = ["points", "run"]
