"""A real HTTP server on a free port of this machine that answers what it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson


@dataclass(slots=True)
class CannedRoot:
    """``replies`` are given in order: status, body, headers; None says nothing and hangs up."""

    replies: list[tuple[int, Any, dict[str, str]] | None]
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    connections: int = 0
    url: str = ""

    def next(self) -> tuple[int, bytes, dict[str, str]] | None:
        """The next reply, written out."""
        reply = self.replies.pop(0)
        if reply is None:
            return None
        status, body, headers = reply
        return status, body if isinstance(body, bytes) else orjson.dumps(body), headers


@contextmanager
def canned(*replies: tuple[int, Any, dict[str, str]] | None) -> Iterator[CannedRoot]:
    """Serve some replies."""
    root = CannedRoot([*replies])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            root.connections += 1
            super().setup()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = orjson.loads(self.rfile.read(length)) if length else None
            root.asked.append((self.command, self.path, body))
            reply = root.next()
            self.close_connection = reply is None
            if reply is None:
                return
            status, sent, headers = reply
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(sent))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_GET  # noqa: N815 (the library's name)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        root.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield root
        finally:
            server.shutdown()
            thread.join()
