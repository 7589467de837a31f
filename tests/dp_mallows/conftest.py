"""The command line, called in this process as a shell would call it."""

from tests.cli.conftest import run as run
