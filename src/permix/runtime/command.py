"""Whether a command of permix runs, and not a program that uses the library."""

from __future__ import annotations

RUNNING = {"command": False}
