"""A web site on this machine, for the tests of downloads."""

import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from undrift_lab.corpora.addresses import Source


def tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Site:
    """A web site of `pages`; the first `n_failures` requests get an error."""

    def __init__(self):
        self.pages, self.requests, self.n_failures = {}, [], 0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.requests.append(self.path)
                content = site.pages.get(self.path)
                if len(site.requests) <= site.n_failures:
                    self.send_error(503)
                elif content is None:
                    self.send_error(404)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def source(self, *names, name="small", **kwargs):
        return Source(
            name, tuple(f"http://127.0.0.1:{self.server.server_port}/{file}" for file in names), **kwargs
        )

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
