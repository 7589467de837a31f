"""The routes of the page."""

from __future__ import annotations

import shlex
import shutil
import sys
import traceback
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from permix.datasets.examples import EXAMPLES, write_example
from permix.errors import DataError
from permix.serve import forms, pages
from permix.serve.jobs import (
    DONE,
    FAILED,
    LOOKING,
    QUEUED,
    READY,
    REPORT,
    STOPPED,
    Job,
    Jobs,
    copy_stream,
    safe_name,
)
from permix.serve.looking import look
from permix.serve.security import REPORT_POLICY, Guard
from permix.serve.worker import Worker, can_go_on

# Files of one election, such as Dominion's, that are dropped together.
MOST_FILES = 1000
_HERE = Path(__file__).parent


class Site:
    """The jobs of a folder, who works on them, and the pages about them."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.jobs, self.limit = Jobs(folder), limit
        self.worker = Worker(self.jobs)
        self._looks = ThreadPoolExecutor(1, "permix-look")

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Go on where an earlier server stopped; in the end, stop what runs."""
        for said in self.jobs.damaged():
            print(f"permix: {said}", file=sys.stderr)
        for job in self.jobs.all():
            if job.state == LOOKING:
                self._looks.submit(self._look, job.id)
        self.worker.start()
        yield
        self._looks.shutdown(wait=False, cancel_futures=True)
        await run_in_threadpool(self.worker.stop)

    # -- looking at files -------------------------------------------------------------------------

    def _look(self, key: str) -> None:
        """Find out what a file holds, and say so in the job."""
        try:
            job = self.jobs.get(key)
            looked = look(self.jobs.folder_of(key), job.file, job.values)
            values = looked.pop("values")
            self.jobs.write_json(key, "looked.json", looked)
            self.jobs.change(key, only=(LOOKING,), state=READY, values=values)
        except Exception as error:  # whatever it is: a page that waits must hear of it
            with suppress(KeyError):  # deleted meanwhile
                said = f"The file cannot be read: {error}"
                self.jobs.change(key, only=(LOOKING,), state=FAILED, message=said)
                traceback.print_exc()

    def _added(self, job: Job) -> Response:
        self._looks.submit(self._look, job.id)
        return _to(job.id)

    async def upload(self, request: Request) -> Response:
        """Take a file, or several that belong together."""
        async with request.form(max_files=MOST_FILES, max_fields=10) as form:
            return await run_in_threadpool(self._keep, form)

    def _keep(self, form: FormData) -> Response:
        files = [entry for entry in form.getlist("file") if isinstance(entry, UploadFile) and entry.filename]
        if not files:
            raise HTTPException(400, "No file was chosen.")
        with self.jobs.new() as folder:
            data, name = folder / "data", safe_name(files[0].filename or "")
            if len(files) > 1:
                data, name = data / "files", f"{name} and {len(files) - 1} more"
                data.mkdir()
            for entry in files:
                target = data / safe_name(entry.filename or "")
                if target.exists():
                    raise HTTPException(400, f"Two files are called {target.name}.")
                copy_stream(entry.file, target)
            if len(files) == 1 and target.suffix == ".permix":
                return self._report_of(target)
            return self._added(self.jobs.add(folder, name, data if len(files) > 1 else target))

    def _report_of(self, uploaded: Path) -> Response:
        """Let a report be made of a fitted model."""
        fit = uploaded.rename(uploaded.parents[1] / f"{uploaded.name.partition('.')[0]}.permix")
        words = ["report", fit.name, "-o", REPORT, "--force"]
        job = self.jobs.add(fit.parent, fit.name, fit, state=QUEUED, arguments=words)
        self.worker.submit(job.id)
        return _to(job.id)

    def example(self, request: Request) -> Response:
        """Make the data of an example, with the answers to the questions it raises."""
        name = request.path_params["name"]
        if name not in EXAMPLES:
            raise HTTPException(404, "There is no such example.")
        with self.jobs.new() as folder:
            main, *others = write_example(name, folder / "data")
            values = forms.from_words(shlex.split(EXAMPLES[name].command))
            if others:
                values[f"{values['form'][0]}.item_table"] = [others[0].relative_to(folder).as_posix()]
            return self._added(self.jobs.add(folder, main.name, main, values=values))

    # -- pages ------------------------------------------------------------------------------------

    def home(self, request: Request) -> Response:
        """Show where to drop a file, examples and earlier fits."""
        return HTMLResponse(pages.home(self.jobs, self.limit))

    def show(self, request: Request) -> Response:
        """Show a job: what was recognized and what may be chosen, its progress, or its report."""
        return HTMLResponse(pages.job_page(self.jobs, self._job(request)))

    def status(self, request: Request) -> Response:
        """Say how far a job is."""
        return JSONResponse(pages.status(self.jobs, self._job(request)))

    def _job(self, request: Request) -> Job:
        try:
            return self.jobs.get(request.path_params["key"])
        except KeyError:
            raise HTTPException(404, "There is no such fit; perhaps it was deleted.") from None

    # -- what may be asked of a job ---------------------------------------------------------------

    async def ask(self, request: Request) -> Response:
        """Look at the file again, read in another way; or fit."""
        async with request.form(max_files=len(forms.FORMS)) as form:
            return await run_in_threadpool(self._asked, self._job(request), form)

    def _asked(self, job: Job, form: FormData) -> Response:
        choices = {"form": tuple(forms.FORMS), "model": tuple(forms.model_forms())}
        values = forms.cleaned(form.multi_items(), choices) | self._attached(job, form)
        if form.get("do") == "fit":
            model, kind = (next(iter(values.get(key, ())), "") for key in ("model", "form"))
            if not model or not kind:
                raise HTTPException(400, "No model was chosen.")
            words = forms.fit_words(model, kind, job, values)
            changes: dict[str, Any] = {"state": QUEUED, "values": values, "arguments": words}
            if self.jobs.change(job.id, only=(READY,), **changes) is not None:
                self.worker.submit(job.id)
        elif self.jobs.change(job.id, only=(READY,), state=LOOKING, values=values) is not None:
            self._looks.submit(self._look, job.id)
        return _to(job.id)

    def _attached(self, job: Job, form: FormData) -> dict[str, list[str]]:
        """Keep files that go with the data, such as attributes of the items; those kept before stay."""
        kept = {}
        for key, field in forms.all_fields().items():
            entry = form.get(key)
            if field.kind != "file":
                continue
            if isinstance(entry, UploadFile) and entry.filename:
                target = self.jobs.folder_of(job.id) / "data" / key / safe_name(entry.filename)
                shutil.rmtree(target.parent, ignore_errors=True)
                target.parent.mkdir()
                copy_stream(entry.file, target)
                kept[key] = [target.relative_to(self.jobs.folder_of(job.id)).as_posix()]
            elif key in job.values:
                kept[key] = job.values[key]
        return kept

    def cancel(self, request: Request) -> Response:
        """Stop a job; what was done is kept."""
        self.worker.cancel(self._job(request).id)
        return _to(request.path_params["key"])

    def resume(self, request: Request) -> Response:
        """Go on with a job that was stopped."""
        job = self._job(request)
        again = {"state": QUEUED, "cancelled": False, "ended": None, "message": ""}
        possible = can_go_on(self.jobs.folder_of(job.id), job.fit)
        if possible and self.jobs.change(job.id, only=(STOPPED, FAILED), **again) is not None:
            self.worker.submit(job.id)
        return _to(job.id)

    def again(self, request: Request) -> Response:
        """Make another job of the same data."""
        job = self._job(request)
        old = self.jobs.folder_of(job.id)
        with self.jobs.new() as folder:
            shutil.copytree(old / "data", folder / "data", dirs_exist_ok=True)
            return self._added(self.jobs.add(folder, job.name, folder / job.file, values=job.values))

    def delete(self, request: Request) -> Response:
        """Remove a job and its files."""
        job = self._job(request)
        if not self.jobs.delete(job.id):
            raise HTTPException(409, "This fit is under way; stop it first.")
        return RedirectResponse("/", 303)

    # -- results ----------------------------------------------------------------------------------

    def report(self, request: Request) -> Response:
        """Show the report by itself, as if it came from nowhere."""
        path, _ = self._result(request, REPORT)
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})

    def download(self, request: Request) -> Response:
        """Hand out the report or the fitted model."""
        path, name = self._result(request, request.path_params["name"])
        return FileResponse(path, filename=name, headers={"content-security-policy": REPORT_POLICY})

    def _result(self, request: Request, name: str) -> tuple[Path, str]:
        """Return a file that a job made, and what it is called outside."""
        job = self._job(request)
        called = {job.fit: job.fit, REPORT: f"{job.stem}-{REPORT}"}
        path = self.jobs.folder_of(job.id) / name
        if name not in called or job.state not in (DONE, STOPPED) or not path.is_file():
            raise HTTPException(404, "There is no such file.")
        return path, called[name]

    # -- all together -----------------------------------------------------------------------------

    def build(self) -> Starlette:
        """Return the application, which nothing guards yet."""
        one = "/fits/{key}"
        routes = [
            Route("/", self.home),
            Route("/files", self.upload, methods=["POST"]),
            Route("/examples/{name}", self.example, methods=["POST"]),
            Route(one, self.show),
            Route(one, self.ask, methods=["POST"]),
            Route(f"{one}/status", self.status),
            Route(f"{one}/report", self.report),
            Route(f"{one}/files/{{name}}", self.download),
            *(
                Route(f"{one}/{act.__name__}", act, methods=["POST"])
                for act in (self.cancel, self.resume, self.again, self.delete)
            ),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        handlers: Any = {HTTPException: _refused, DataError: _refused}
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=self.lifespan)


def create_app(folder: Path, *, token: str, port: int, limit: int) -> ASGIApp:
    """Return the application that serves a folder of jobs to whoever knows the token."""
    return Guard(Site(folder, limit).build(), token, port, limit)


def _to(key: str) -> Response:
    return RedirectResponse(f"/fits/{key}", 303)


def _refused(request: Request, error: Exception) -> Response:
    """Show what is wrong."""
    code, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (400, None)
    said = error.detail if isinstance(error, HTTPException) else str(error)
    return HTMLResponse(pages.refused(said), code, headers)
