"""The server of `undrift label`: it answers a page on this machine, and scripts, that know its token."""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
import webbrowser
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..errors import UndriftError
from .labelling import LabelSession

MOST_BYTES = 65_536  # of a request's body
MOST_UNCHECKED = 32  # connections that have not shown the token yet; a browser opens six
TELL_SECONDS = 5.0  # that a page which pressed Finish has to hear that files are written
DISCARD_SECONDS = 1.0  # that a refused body may take to arrive
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RequestError(UndriftError):
    """A request that is refused, with its status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class LabelServer(ThreadingHTTPServer):
    """Serves a session on 127.0.0.1 to requests that know the token."""

    daemon_threads = True
    request_queue_size = 128  # connections that wait: a browser opens several at once

    def __init__(self, session: LabelSession, title: str, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), LabelHandler)
        self.session, self.title, self.token = session, title, secrets.token_urlsafe(24)
        self.lock, self.is_finished = threading.Lock(), threading.Event()
        self.learner = ThreadPoolExecutor(1)
        self.learning: Future[None] | None = None  # that runs, or has ended since somebody asked
        self.written: list[str] | None = None  # that the files of the session are written
        self.is_closing, self.is_told = threading.Event(), threading.Event()
        self.unchecked: dict[socket.socket, None] = {}  # in the order in which they came
        self.guard = threading.Lock()  # of `unchecked`
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"

    @contextmanager
    def serve(self, opens_browser: bool) -> Iterator[None]:
        """Serve until Finish is pressed, or Ctrl-C; the context then writes the files of the session.

        A page that waits for them is told that they are written, or that they are not.
        """
        threading.Thread(target=self.serve_forever, daemon=True).start()
        if opens_browser:
            threading.Thread(target=webbrowser.open, args=[self.address], daemon=True).start()
        is_awaited = False
        try:
            with suppress(KeyboardInterrupt):
                while not self.is_finished.wait(0.5):
                    pass
            is_awaited = self.is_finished.is_set()
            self.is_finished.set()
            with self.lock:  # an answer that came before is saved first
                pass
            self.learner.shutdown(cancel_futures=True)  # the error is then measured by all that is learnt
            yield
        finally:
            self.is_closing.set()
            if is_awaited:
                self.is_told.wait(TELL_SECONDS)
            self.shutdown()
            self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread; where too many have shown no token, the oldest of them ends."""
        with self.guard:
            if len(self.unchecked) >= MOST_UNCHECKED:
                oldest = next(iter(self.unchecked))
                del self.unchecked[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end and stops
            self.unchecked[request] = None
        super().process_request(request, client_address)

    def mark_checked(self, request: Any) -> None:
        """Count a connection no longer among those without a token."""
        with self.guard:
            self.unchecked.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self.mark_checked(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away."""

    def answer(self, method: str, path: str, given: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the API; `given` holds its query or body."""
        session, tab = self.session, str(given.get("tab", ""))
        if (method, path) == ("POST", "/api/finish"):
            self.is_finished.set()
            self.is_closing.wait()
            if self.written is None:
                message = f"Not written: the terminal says why. Your labels are in {session.file.path}."
                raise RequestError(HTTPStatus.INTERNAL_SERVER_ERROR, message)
            return {"written": self.written}
        with self.lock:
            if self.is_finished.is_set() and method == "POST":
                raise RequestError(HTTPStatus.CONFLICT, "the session is finished: run undrift label again")
            if (method, path) == ("GET", "/api/next"):
                return session.next_row(tab)
            if (method, path) == ("GET", "/api/state"):
                return self.state()
            if (method, path) == ("POST", "/api/label"):
                session.answer(given.get("row"), given.get("label"), tab)
                return self.state()
            if (method, path) == ("POST", "/api/undo"):
                return {"row": session.undo(tab)} | self.state()
        raise RequestError(HTTPStatus.NOT_FOUND, "there is nothing at this address")

    def state(self) -> dict[str, object]:
        """Return the state of the session, and whether it is learning; begin to learn where that is due.

        One learning runs at a time, and whoever asks next is told that it failed. The lock is held.
        """
        if self.learning is not None and self.learning.done():
            ended, self.learning = self.learning, None
            ended.result()
        if self.learning is None and not self.is_finished.is_set() and self.session.is_due:
            self.learning = self.learner.submit(self._learn)
        return self.session.state() | {"is_learning": self.learning is not None}

    def _learn(self) -> None:
        """Learn without the lock: keys are answered meanwhile."""
        learnt = self.session.study()
        with self.lock:
            self.session.take(learnt)


class LabelHandler(BaseHTTPRequestHandler):
    """Checks a request and answers it."""

    timeout = 60
    server: LabelServer

    def do_GET(self) -> None:
        """Answer with the page, or with JSON."""
        self._respond("GET")

    def do_POST(self) -> None:
        """Answer with JSON."""
        self._respond("POST")

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""

    def _respond(self, method: str) -> None:
        try:
            url = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            self._check(query)
            self.server.mark_checked(self.connection)
            if (method, url.path) == ("GET", "/"):
                self._send(HTTPStatus.OK, self._render(), "text/html")
            else:
                given = query if method == "GET" else _parse(self._read_body())
                self._send(HTTPStatus.OK, json.dumps(self.server.answer(method, url.path, given)))
        except RequestError as error:
            self._send(error.status, json.dumps({"error": str(error)}))
            self._discard_body()
        except ValueError as error:
            self._send(HTTPStatus.BAD_REQUEST, json.dumps({"error": str(error)}))
        except OSError as error:
            message = f"Not saved: {error.strerror or error}. Free some space, then press the key again."
            self._send(HTTPStatus.INSUFFICIENT_STORAGE, json.dumps({"error": message}))

    def _check(self, query: dict[str, str]) -> None:
        """Refuse other hosts, other origins, and requests without the token."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts:
            raise RequestError(HTTPStatus.FORBIDDEN, "this host name is not answered")
        if origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            raise RequestError(HTTPStatus.FORBIDDEN, "this origin is not answered")
        token = self.headers.get("X-Undrift-Token") or query.get("token", "")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            message = "the token is missing or wrong: open the address that undrift label printed"
            raise RequestError(HTTPStatus.FORBIDDEN, message)

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or len(length) > 9 or int(length) > MOST_BYTES:
            raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
        return self.rfile.read(int(length))

    def _discard_body(self) -> None:
        """Let a refused body arrive, or most of it: a client that still sends would not see the answer."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(DISCARD_SECONDS)
            self.connection.recv(2 * MOST_BYTES)

    def _render(self) -> str:
        from ..report import render_page

        session = self.server.session
        setup = {"classes": session.classes, "can_learn": session.can_learn, "goal": session.goal}
        setup["least_measured"] = session.least_measured
        labels_file = session.file.path.name
        page = {"kind": "label", "title": self.server.title, "labels_file": labels_file, "session": setup}
        return render_page(page)

    def finish(self) -> None:
        """Say that the page knows how its session ended, if this was the request for that."""
        super().finish()
        if getattr(self, "path", "").startswith("/api/finish"):
            self.server.is_told.set()

    def _send(self, status: HTTPStatus, content: str, kind: str = "application/json") -> None:
        body = content.encode("utf-8", "backslashreplace")
        self.send_response(status)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body)), **HEADERS}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _parse(body: bytes) -> dict[str, Any]:
    """Return a JSON object of numbers, strings and nulls."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or any(isinstance(value, dict | list) for value in given.values()):
        message = "the body is a JSON object whose values are numbers, strings or null"
        raise RequestError(HTTPStatus.BAD_REQUEST, message)
    return given
