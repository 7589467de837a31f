"""What ``permix serve`` does: checks, a socket on this machine, the address, and the server."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path

import typer

from permix.errors import DataError

NEEDED = ("starlette", "uvicorn", "jinja2", "python_multipart")


def default_folder() -> Path:
    """Return where jobs are kept unless a folder is given."""
    import platformdirs

    return platformdirs.user_data_path("permix") / "serve"


def run_serve(port: int | None, folder: Path | None, no_browser: bool) -> None:
    """Serve the page until Ctrl-C."""
    _check_extra()
    import uvicorn

    from permix.files import unpacking_limit
    from permix.sampling.lock import locked
    from permix.serve.app import create_app

    folder = (folder or default_folder()).absolute()
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; give the name of a folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    token = secrets.token_urlsafe(24)
    with locked(folder / "server.lock", f"the folder {folder}"), listening(port or 0) as listener:
        number = listener.getsockname()[1]
        app = create_app(folder, token=token, port=number, limit=unpacking_limit())
        # No access log: the first address has the token in it.
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=3
        )
        address = f"http://127.0.0.1:{number}/?token={token}"
        print(
            f"permix serves {folder} at\n\n  {address}\n\nCtrl-C ends it; what runs then goes on next time."
        )
        sys.stdout.flush()
        if not no_browser:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):  # the server has ended by then, in good order
            uvicorn.Server(config).run(sockets=[listener])


def _check_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise DataError(
            f"permix serve needs {', '.join(missing).replace('_', '-')}: pip install 'permix[serve]'"
        )


def listening(port: int) -> socket.socket:
    """Return a socket that only programs on this machine reach."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":  # there, it would let another program take the port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)  # a browser that comes before the server is ready waits
    except OSError as error:
        listener.close()
        why = f"port {port} cannot be used ({error.strerror}); leave out --port for any that is free"
        raise typer.BadParameter(why) from error
    return listener
